/* SPDX-License-Identifier: Apache-2.0
 *
 * Trireme: training neural networks in C. This header is the whole public interface and its
 * documentation; it reads top to bottom. A complete program:
 *
 *     #include <stdio.h>
 *     #include <trireme.h>
 *
 *     static void network(tri_graph *g) {
 *         int64_t n = tri_batch(g);
 *         tri_tensor *x = tri_input(g, "image", TRI_F32, TRI_SHAPE(n, 1, 28, 28));
 *         tri_tensor *y = tri_input(g, "label", TRI_I64, TRI_SHAPE(n), .below = 10);
 *         tri_tensor *h = tri_relu(tri_dense(tri_flatten(x, 1), "fc1", 128));
 *         tri_tensor *logits = tri_dense(h, "fc2", 10);
 *         tri_metric(tri_accuracy(logits, y, 1), "top1");
 *         tri_loss(tri_cross_entropy(logits, y));
 *     }
 *
 *     int main(int argc, char **argv) {
 *         tri_options o = tri_options_default();
 *         o.data = "idx:/usr/share/datasets/fashion-mnist";
 *         if (tri_options_parse(&o, &argc, argv)) return 2;
 *         if (argc > 1) return fprintf(stderr, "unknown: %s\n", argv[1]), 2;
 *         tri_graph *g = tri_graph_new(o.batch);
 *         network(g);
 *         tri_run *run = tri_open(g, &o);
 *         while (tri_step(run))
 *             if (tri_step_number(run) % 100 == 0)
 *                 printf("loss %g, top1 %g\n", tri_value(run, "loss"), tri_value(run, "top1"));
 *         char line[512];
 *         if (!tri_result_line(run, line, sizeof line)) puts(line);
 *         return tri_close(run);
 *     }
 *
 * Build it with: cc prog.c -o prog $(pkg-config --cflags --libs trireme)
 *
 * Write the network once, for a single device and the whole batch. Shapes, names and defaults are
 * those of PyTorch: dense weights are [out, in], convolution weights [out, in, height, width],
 * images [batch, channel, height, width].
 *
 * Contents: 1 status  2 types  3 graph  4 sources  5 operators  6 cells (operators with
 * parameters)  7 losses and metrics  8 gradients and updates  9 data  10 options  11 running
 * 12 files  13 user-defined operators  14 the zoo  15 meshes  16 source lines for messages
 */
#ifndef TRIREME_H
#define TRIREME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

#define TRI_VERSION "0.1.0"

/* Records the line of your file for messages; the macros of section 16 call it. */
void tri_here(const char *file, int line);
#define TRI_HERE tri_here(__FILE__, __LINE__)

#if defined __GNUC__
#define TRI_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define TRI_PRINTF(fmt, first)
#endif

/* ---- 1 Status ------------------------------------------------------------------------------ */

/* Every call that can fail returns one of these values, or a null pointer. They are also the exit
 * codes of programs. tri_message() returns the text of the last failure on the calling thread: what
 * failed, where, and what to do. User errors never abort the program. */
typedef enum tri_status {
    TRI_OK = 0,
    TRI_FAILED = 1, /* a file, the memory, the machine, or invalid data */
    TRI_USAGE = 2,  /* the call, the network or an option is wrong */
    TRI_STOPPED = 3 /* tri_train: a signal (SIGINT, SIGTERM, SIGHUP), `trireme ctl` or max_time
                       ended the run before its last step, or its output was closed. tri_close:
                       only if its output was closed. Everything that can be saved has been saved.
                       tri_evaluate: the evaluation was cut short */
} tri_status;

const char *tri_message(void);

/* ---- 2 Types and shapes -------------------------------------------------------------------- */

typedef enum tri_type { TRI_F32, TRI_BF16, TRI_F16, TRI_I32, TRI_I64, TRI_U8, TRI_BOOL } tri_type;

/* bf16 and f16 are stored as 16 bits; arithmetic on them is done in f32. */
size_t tri_type_size(tri_type type);
const char *tri_type_name(tri_type type); /* "f32", "bf16", "f16", "i32", "i64", "u8", "bool" */

#define TRI_MAX_RANK 8

typedef struct tri_shape {
    int rank;
    int64_t dim[TRI_MAX_RANK];
} tri_shape;

/* TRI_SHAPE(n, 3, 32, 32). The shape of a scalar is TRI_SCALAR. */
#define TRI_SHAPE(...)                                                                      \
    ((tri_shape){(int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})
#define TRI_SCALAR ((tri_shape){0, {0}})

int64_t tri_shape_count(const tri_shape *shape); /* elements; INT64_MAX if there are more */

/* Expands the last argument of a builder and its options, which may be absent, for the function
 * that the macro calls: "x" becomes x, (T){.none_ = 0}, and "x, .stride = 2" becomes
 * x, (T){.stride = 2, .none_ = 0}. Standard C17 allows neither an initialiser without a member nor
 * a macro call without an argument for its "...". */
#define TRI_WITH(T, ...) TRI_FIRST_(__VA_ARGS__, ), (T){TRI_REST_(__VA_ARGS__, ) .none_ = 0}
#define TRI_FIRST_(x, ...) x
#define TRI_REST_(x, ...) __VA_ARGS__

/* ---- 3 Graph ------------------------------------------------------------------------------- */

/* A graph owns all its tensors and nodes; tri_graph_free, or tri_close of the run that took the
 * graph, frees them together. Model code needs no checks: after a mistake every builder still
 * returns a tensor. The graph keeps the first mistake, and opening it reports that mistake with
 * operator, scope, shapes and source line.
 *
 * The library rebuilds a graph for other batch sizes, such as a smaller last batch of an
 * evaluation. Shapes may therefore contain tri_batch, but a constant must not depend on it. Use
 * tri_mean, which adjusts its divisor, instead of dividing by a constant. */
typedef struct tri_graph tri_graph;
typedef struct tri_tensor tri_tensor;
typedef struct tri_node tri_node;

tri_graph *tri_graph_new(int64_t batch); /* samples of a step; 0 means 64 */
void tri_graph_free(tri_graph *g);
/* Samples of several lengths. `g` is for the longest samples. `other` is the same network for
 * samples of at most `length`: its parameters and outputs have the same names, its outputs the same
 * order, and each of its inputs may be a shorter prefix of a sample. `g` owns `other` from then on.
 * Up to 7 networks may be added. A step runs one network; each sample goes to the shortest network
 * that holds it, which saves computation on padding. The data has to report lengths
 * (tri_data_lengths). Evaluations run `g`. In the zoo: "bert-base:seq=128/64/32". */
void tri_shorter(tri_graph *g, int64_t length, tri_graph *other);
int64_t tri_batch(const tri_graph *g);
tri_status tri_graph_status(const tri_graph *g); /* TRI_OK, or the first mistake (tri_message) */

/* The textual form, which `trireme dump` prints. Parsing it gives an equal graph. The caller frees
 * the text with free(). Messages of the parser start with `name`. */
char *tri_graph_print(const tri_graph *g);
tri_graph *tri_graph_parse(const char *text, size_t bytes, const char *name);
tri_graph *tri_graph_read(const char *path, int64_t batch); /* batch 0: that of the file */

/* Scopes prefix the names of parameters and operators: "layer1.0.conv1.weight". tri_push formats
 * the name like printf. */
void tri_push(tri_graph *g, const char *fmt, ...) TRI_PRINTF(2, 3);
void tri_pop(tri_graph *g);

tri_graph *tri_graph_of(const tri_tensor *t);
tri_type tri_type_of(const tri_tensor *t);
tri_shape tri_shape_of(const tri_tensor *t);
int tri_ndim(const tri_tensor *t);
int64_t tri_dim(const tri_tensor *t, int axis); /* negative axes count from the end */
const char *tri_name_of(const tri_tensor *t);

/* ---- 4 Sources ----------------------------------------------------------------------------- */

/* One field of the data. Dimension 0 is the sample. Give the size of the whole batch here; the
 * library divides it later. below: the library checks that values lie in [0, below); integers may
 * also be -100, a label to ignore. 0: values are not checked. */
typedef struct tri_input_options {
    int64_t below;
    char none_; /* for TRI_WITH */
} tri_input_options;
/* Options follow the arguments by name: tri_conv2d(x, w, .stride = 2, .pad = 1). The functions with
 * a trailing underscore take them as a struct (for C++ and other languages). */
tri_tensor *tri_input_(tri_graph *g, const char *name, tri_type type, tri_shape shape,
                       tri_input_options o);
#define tri_input(g, name, type, ...) \
    (TRI_HERE, tri_input_(g, name, type, TRI_WITH(tri_input_options, __VA_ARGS__)))

/* The initial value of a parameter or state. Random values are keyed by (seed, name, element), so
 * the order of construction does not matter. fan-in and fan-out follow from the shape, as in
 * PyTorch. The zero initialiser gives zeros. */
typedef struct tri_init {
    enum {
        TRI_CONSTANT,         /* a: the value */
        TRI_UNIFORM,          /* a, b: the bounds */
        TRI_NORMAL,           /* a: mean, b: standard deviation */
        TRI_TRUNCATED_NORMAL, /* a: mean, b: standard deviation; truncated at two of them */
        TRI_XAVIER_UNIFORM,   /* a: gain (0: 1) */
        TRI_XAVIER_NORMAL,
        TRI_HE_UNIFORM, /* a: gain (0: sqrt 2); fan-in */
        TRI_HE_NORMAL,
        TRI_HE_NORMAL_OUT /* the same with fan-out, as in torchvision's residual networks */
    } kind;
    double a, b;
} tri_init;

/* A trainable parameter. Its full name is the current scope, a dot, and `name`. */
tri_tensor *tri_param(tri_graph *g, const char *name, tri_shape shape, tri_init init);

/* A value that persists between steps and changes only by tri_assign: running statistics, the
 * optimizer's moments, a loss scale. */
tri_tensor *tri_state(tri_graph *g, const char *name, tri_type type, tri_shape shape,
                      tri_init init);

tri_tensor *tri_constant(tri_graph *g, double value, tri_type type);
tri_tensor *tri_array(tri_graph *g, tri_type type, tri_shape shape, const void *data); /* copied */

/* A scalar (f32) that the run sets before every step. "lr" follows the schedule unless
 * tri_set_scalar replaces it. "step" is the number of the step to be done, from 1. "samples" is how
 * many samples of the step count: the batch, or less where others fill up the last step of an epoch
 * (tri_options.tail); these come last. Set any other scalar with tri_set_scalar. */
tri_tensor *tri_scalar(tri_graph *g, const char *name);

/* ---- 5 Operators --------------------------------------------------------------------------- */

/* Elementwise, with broadcasting as in NumPy (shapes aligned at their last dimension). Types must
 * agree, except that a scalar constant follows the other operand's type. */
tri_tensor *tri_add(tri_tensor *a, tri_tensor *b);
tri_tensor *tri_sub(tri_tensor *a, tri_tensor *b);
tri_tensor *tri_mul(tri_tensor *a, tri_tensor *b);
tri_tensor *tri_div(tri_tensor *a, tri_tensor *b);
tri_tensor *tri_pow(tri_tensor *a, tri_tensor *b);
tri_tensor *tri_maximum(tri_tensor *a, tri_tensor *b);
tri_tensor *tri_minimum(tri_tensor *a, tri_tensor *b);
tri_tensor *tri_add_number(tri_tensor *a, double b); /* a + b */
tri_tensor *tri_scale(tri_tensor *a, double b);      /* a * b */

tri_tensor *tri_neg(tri_tensor *x);
tri_tensor *tri_exp(tri_tensor *x);
tri_tensor *tri_log(tri_tensor *x);
tri_tensor *tri_sqrt(tri_tensor *x);
tri_tensor *tri_rsqrt(tri_tensor *x);
tri_tensor *tri_abs(tri_tensor *x);
tri_tensor *tri_sign(tri_tensor *x);
tri_tensor *tri_erf(tri_tensor *x);
tri_tensor *tri_clip(tri_tensor *x, double low, double high);

tri_tensor *tri_relu(tri_tensor *x);
tri_tensor *tri_relu6(tri_tensor *x);
tri_tensor *tri_leaky_relu(tri_tensor *x, double slope);
tri_tensor *tri_gelu(tri_tensor *x);      /* x * Phi(x), by erf */
tri_tensor *tri_gelu_tanh(tri_tensor *x); /* the tanh approximation */
tri_tensor *tri_silu(tri_tensor *x);
tri_tensor *tri_sigmoid(tri_tensor *x);
tri_tensor *tri_tanh(tri_tensor *x);
tri_tensor *tri_softplus(tri_tensor *x); /* log(1 + exp x) */

/* Comparisons return bool; the logical operators take bool. */
tri_tensor *tri_equal(tri_tensor *a, tri_tensor *b);
tri_tensor *tri_not_equal(tri_tensor *a, tri_tensor *b);
tri_tensor *tri_less(tri_tensor *a, tri_tensor *b);
tri_tensor *tri_less_equal(tri_tensor *a, tri_tensor *b);
tri_tensor *tri_greater(tri_tensor *a, tri_tensor *b);
tri_tensor *tri_greater_equal(tri_tensor *a, tri_tensor *b);
tri_tensor *tri_and(tri_tensor *a, tri_tensor *b);
tri_tensor *tri_or(tri_tensor *a, tri_tensor *b);
tri_tensor *tri_not(tri_tensor *x);
tri_tensor *tri_where(tri_tensor *condition, tri_tensor *a, tri_tensor *b);
tri_tensor *tri_cast(tri_tensor *x, tri_type type);
tri_tensor *tri_stop_gradient(tri_tensor *x);

/* a [..., m, k] times b [..., k, n]; leading dimensions broadcast. trans_a: a is [..., k, m];
 * trans_b: b is [..., n, k]. */
typedef struct tri_matmul_options {
    bool trans_a, trans_b;
    char none_; /* for TRI_WITH */
} tri_matmul_options;
tri_tensor *tri_matmul_(tri_tensor *a, tri_tensor *b, tri_matmul_options o);
#define tri_matmul(a, ...) \
    (TRI_HERE, tri_matmul_(a, TRI_WITH(tri_matmul_options, __VA_ARGS__)))

/* x [n, in, h, w], weight [out, in / groups, kh, kw], bias [out] or null. 0 means the default: 1,
 * for padding 0, and for a _w field the value of the field without _w. */
typedef struct tri_conv_options {
    int64_t stride, pad, dilation, groups;
    int64_t stride_w, dilation_w;
    int64_t pad_w; /* 0: as pad; -1: no horizontal padding where pad is not 0 */
    tri_tensor *bias;
    char none_; /* for TRI_WITH */
} tri_conv_options;
tri_tensor *tri_conv2d_(tri_tensor *x, tri_tensor *weight, tri_conv_options o);
#define tri_conv2d(x, ...) \
    (TRI_HERE, tri_conv2d_(x, TRI_WITH(tri_conv_options, __VA_ARGS__)))

/* x [n, c, h, w]. stride 0 means the window size, as in PyTorch. The maximum ignores padding; the
 * average counts it unless exclude_pad is set. */
typedef struct tri_pool_options {
    int64_t size, stride, pad;
    int64_t size_w, stride_w, pad_w; /* as in tri_conv_options */
    bool ceil_mode, exclude_pad;
    char none_; /* for TRI_WITH */
} tri_pool_options;
tri_tensor *tri_max_pool_(tri_tensor *x, tri_pool_options o);
#define tri_max_pool(...) \
    (TRI_HERE, tri_max_pool_(TRI_WITH(tri_pool_options, __VA_ARGS__)))
tri_tensor *tri_avg_pool_(tri_tensor *x, tri_pool_options o);
#define tri_avg_pool(...) \
    (TRI_HERE, tri_avg_pool_(TRI_WITH(tri_pool_options, __VA_ARGS__)))
tri_tensor *tri_global_avg_pool(tri_tensor *x); /* [n, c, h, w] to [n, c] */

/* Normalisation. x [n, c, ...]; gamma, beta, mean, var [c]; gamma and beta may be null. In training
 * the statistics are those of each lane (section 10), or of `groups` equal parts of a lane. The
 * running mean and variance move by `momentum` (0 means 0.1, with PyTorch's meaning) towards the
 * mean of the statistics of all lanes and groups, all of equal weight. Evaluation uses the running
 * values. eps 0 means 1e-5. */
typedef struct tri_norm_options {
    double eps, momentum;
    int64_t groups; /* batch norm: groups of statistics in a lane (0: 1) */
    int axes;       /* layer norm: normalises the last `axes` dimensions (0: 1) */
    bool no_affine; /* cells only: no weight and bias */
    char none_; /* for TRI_WITH */
} tri_norm_options;
tri_tensor *tri_batch_norm_(tri_tensor *x, tri_tensor *gamma, tri_tensor *beta, tri_tensor *mean,
                            tri_tensor *var, tri_norm_options o);
#define tri_batch_norm(x, gamma, beta, mean, ...) \
    (TRI_HERE, tri_batch_norm_(x, gamma, beta, mean, TRI_WITH(tri_norm_options, __VA_ARGS__)))
tri_tensor *tri_layer_norm_(tri_tensor *x, tri_tensor *gamma, tri_tensor *beta,
                            tri_norm_options o);
#define tri_layer_norm(x, gamma, ...) \
    (TRI_HERE, tri_layer_norm_(x, gamma, TRI_WITH(tri_norm_options, __VA_ARGS__)))
tri_tensor *tri_group_norm_(tri_tensor *x, int64_t groups, tri_tensor *gamma, tri_tensor *beta,
                            tri_norm_options o);
#define tri_group_norm(x, groups, gamma, ...) \
    (TRI_HERE, tri_group_norm_(x, groups, gamma, TRI_WITH(tri_norm_options, __VA_ARGS__)))

tri_tensor *tri_softmax(tri_tensor *x, int axis);
tri_tensor *tri_log_softmax(tri_tensor *x, int axis);

/* Shapes. One dimension given to tri_reshape may be -1. */
tri_tensor *tri_reshape(tri_tensor *x, tri_shape shape);
tri_tensor *tri_flatten(tri_tensor *x, int from_axis); /* joins from_axis and all later axes */
tri_tensor *tri_transpose(tri_tensor *x, tri_shape order); /* TRI_SHAPE(0, 2, 1) */
tri_tensor *tri_slice(tri_tensor *x, int axis, int64_t begin, int64_t end);
tri_tensor *tri_concat(tri_tensor *const *parts, int n, int axis);
void tri_split(tri_tensor *x, int n, int axis, tri_tensor **parts); /* n equal parts */
tri_tensor *tri_pad(tri_tensor *x, tri_shape before, tri_shape after, double value);
tri_tensor *tri_expand(tri_tensor *x, tri_shape shape); /* broadcasts to `shape` */
tri_tensor *tri_gather(tri_tensor *table, tri_tensor *ids); /* rows: [v, ...], ids -> ids + [...] */
tri_tensor *tri_one_hot(tri_tensor *ids, int64_t depth);    /* f32; ids out of range give zeros */

/* Reductions. axes: TRI_SHAPE(0, 2), or TRI_ALL for all axes. */
#define TRI_ALL ((tri_shape){-1, {0}})
typedef struct tri_reduce_options {
    bool keep; /* keep reduced dimensions with length 1 */
    bool per_lane; /* over the samples of each lane, see below */
    char none_; /* for TRI_WITH */
} tri_reduce_options;
tri_tensor *tri_sum_(tri_tensor *x, tri_shape axes, tri_reduce_options o);
#define tri_sum(x, ...) \
    (TRI_HERE, tri_sum_(x, TRI_WITH(tri_reduce_options, __VA_ARGS__)))
tri_tensor *tri_mean_(tri_tensor *x, tri_shape axes, tri_reduce_options o);
#define tri_mean(x, ...) \
    (TRI_HERE, tri_mean_(x, TRI_WITH(tri_reduce_options, __VA_ARGS__)))
tri_tensor *tri_max_(tri_tensor *x, tri_shape axes, tri_reduce_options o);
#define tri_max(x, ...) \
    (TRI_HERE, tri_max_(x, TRI_WITH(tri_reduce_options, __VA_ARGS__)))
/* The sum, mean or maximum over the whole batch is a result of all lanes (section 10): with several
 * lanes it can be a loss or a metric and be used in updates, but no operator on samples can use it,
 * nor can the gradient of, say, its square. What needs that has two ways.
 *
 * - `lanes` = 1. The one lane is the whole batch, whoever computes it: threads, workers, the seats
 *   of a mesh, stages. That is also the way for losses between samples (tri_arange).
 * - .per_lane: the reduction is over the samples of each lane, and the result has a row for each
 *   lane: [lanes, ...], with `keep` the rest of x's shape, too. Every row comes from its own lane
 *   alone, and tri_mean over dimension 0 is the mean of all lanes:
 *
 *       tri_tensor *m = tri_mean(h, TRI_SHAPE(0), .per_lane = true);        // [lanes, d]
 *       tri_tensor *each = tri_sum(tri_mul(m, m), TRI_SHAPE(1));            // [lanes]
 *       tri_loss(tri_mean(each, TRI_ALL));
 *
 *   The number of lanes then is part of the loss, as the number of devices is elsewhere. It is 1
 *   while the network is built and in an evaluation: let no shape depend on it. `axes` must have
 *   dimension 0, which must be the samples, or rows of them, sample after sample. Samples that
 *   only fill up a step (tri_options.tail) do not count; a lane without any other gives 0. */
tri_tensor *tri_argmax(tri_tensor *x, int axis); /* i64; the first of equal values */
void tri_top_k(tri_tensor *x, int64_t k, tri_tensor **values, tri_tensor **indices); /* last axis */
tri_tensor *tri_all_finite(tri_tensor *const *xs, int n);  /* bool: all elements are finite */
tri_tensor *tri_global_norm(tri_tensor *const *xs, int n); /* sqrt of the sum of all squares */

/* For losses between the samples of a batch, with `lanes` = 1. x has the samples in dimension 0.
 * tri_arange: the place of each row of x in the batch, 0 to n - 1 (i64 [n]). tri_eye: [n, n] (f32),
 * 1 where two rows are the same, else 0. In contrastive training, row i of the one side belongs to
 * row i of the other:
 *
 *     tri_tensor *scores = tri_matmul(users, items, .trans_b = true);     // [n, n]
 *     tri_loss(tri_cross_entropy(scores, tri_arange(users)));
 */
tri_tensor *tri_arange(tri_tensor *x);
tri_tensor *tri_eye(tri_tensor *x);

/* In training, sets each element to zero with probability p and scales the others by 1 / (1 - p).
 * The choice depends on seed, step, sample, the operator's name and the element, on nothing
 * else. */
tri_tensor *tri_dropout(tri_tensor *x, double p);

/* Scaled dot-product attention: softmax(scale q k' + mask) v for every head of every sample.
 * q [b, h, s, d], k [b, h, t, d], v [b, h, t, e] give [b, h, s, e]. Heads may also lie side by side
 * in the last dimension, so that no transposes are needed: q [b, s, heads d], k [b, t, heads d],
 * v [b, t, heads e] give [b, s, heads e]. If k and v are null, q is [b, s, 3 heads d]: each row
 * holds q, then k, then v. Memory grows with s + t, not with s t. */
typedef struct tri_attention_options {
    tri_tensor *mask; /* broadcasts to [b, h, s, t]. bool: true where a query may attend; any other
                         type is added. A query that may attend to nothing gives 0 */
    bool causal;      /* query i attends to the keys up to i */
    double dropout;   /* of the softmax's result, as in tri_dropout */
    double scale;     /* 0: 1 / sqrt(d) */
    int64_t heads;    /* number of heads in the last dimension (0: 1) */
    char none_; /* for TRI_WITH */
} tri_attention_options;
tri_tensor *tri_attention_(tri_tensor *q, tri_tensor *k, tri_tensor *v, tri_attention_options o);
#define tri_attention(q, k, ...) \
    (TRI_HERE, tri_attention_(q, k, TRI_WITH(tri_attention_options, __VA_ARGS__)))

/* ---- 6 Cells: operators with parameters ----------------------------------------------------- */

/* Parameters are named `name`.weight and `name`.bias in the current scope, and initialised like
 * those of PyTorch's modules. `init` replaces the weight's initial value, `bias_init` the
 * bias's. */
typedef struct tri_cell_options {
    bool no_bias;
    const tri_init *init, *bias_init;
    int64_t stride, pad, dilation, groups; /* convolution */
    char none_; /* for TRI_WITH */
} tri_cell_options;

tri_tensor *tri_dense_(tri_tensor *x, const char *name, int64_t out, tri_cell_options o);
#define tri_dense(x, name, ...) \
    (TRI_HERE, tri_dense_(x, name, TRI_WITH(tri_cell_options, __VA_ARGS__)))
tri_tensor *tri_conv_(tri_tensor *x, const char *name, int64_t out, int64_t size,
                      tri_cell_options o);
#define tri_conv(x, name, out, ...) \
    (TRI_HERE, tri_conv_(x, name, out, TRI_WITH(tri_cell_options, __VA_ARGS__)))
tri_tensor *tri_bn_(tri_tensor *x, const char *name, tri_norm_options o);
#define tri_bn(x, ...) \
    (TRI_HERE, tri_bn_(x, TRI_WITH(tri_norm_options, __VA_ARGS__)))
tri_tensor *tri_ln_(tri_tensor *x, const char *name, tri_norm_options o);
#define tri_ln(x, ...) \
    (TRI_HERE, tri_ln_(x, TRI_WITH(tri_norm_options, __VA_ARGS__)))
tri_tensor *tri_gn_(tri_tensor *x, const char *name, int64_t groups, tri_norm_options o);
#define tri_gn(x, name, ...) \
    (TRI_HERE, tri_gn_(x, name, TRI_WITH(tri_norm_options, __VA_ARGS__)))
tri_tensor *tri_embed_(tri_tensor *ids, const char *name, int64_t rows, int64_t width,
                       tri_cell_options o);
#define tri_embed(ids, name, rows, ...) \
    (TRI_HERE, tri_embed_(ids, name, rows, TRI_WITH(tri_cell_options, __VA_ARGS__)))

/* ---- 7 Losses and metrics ------------------------------------------------------------------ */

typedef enum tri_reduction { TRI_MEAN, TRI_SUM, TRI_NONE } tri_reduction;

typedef struct tri_loss_options {
    tri_reduction reduction;
    double smoothing;     /* cross-entropy: label smoothing */
    bool ignore;          /* cross-entropy: labels equal to ignore_index do not count, neither in */
    int64_t ignore_index; /* the sum nor in the mean's divisor */
    double delta;         /* Huber (0: 1) */
    char none_; /* for TRI_WITH */
} tri_loss_options;

/* logits [..., classes]; labels [...] of i32 or i64, or f32 probabilities [..., classes]. */
tri_tensor *tri_cross_entropy_(tri_tensor *logits, tri_tensor *labels, tri_loss_options o);
#define tri_cross_entropy(logits, ...) \
    (TRI_HERE, tri_cross_entropy_(logits, TRI_WITH(tri_loss_options, __VA_ARGS__)))
/* Shapes must be equal: losses never broadcast. */
tri_tensor *tri_mse_(tri_tensor *prediction, tri_tensor *target, tri_loss_options o);
#define tri_mse(prediction, ...) \
    (TRI_HERE, tri_mse_(prediction, TRI_WITH(tri_loss_options, __VA_ARGS__)))
tri_tensor *tri_l1_(tri_tensor *prediction, tri_tensor *target, tri_loss_options o);
#define tri_l1(prediction, ...) \
    (TRI_HERE, tri_l1_(prediction, TRI_WITH(tri_loss_options, __VA_ARGS__)))
tri_tensor *tri_huber_(tri_tensor *prediction, tri_tensor *target, tri_loss_options o);
#define tri_huber(prediction, ...) \
    (TRI_HERE, tri_huber_(prediction, TRI_WITH(tri_loss_options, __VA_ARGS__)))
tri_tensor *tri_bce_(tri_tensor *logits, tri_tensor *target, tri_loss_options o);
#define tri_bce(logits, ...) \
    (TRI_HERE, tri_bce_(logits, TRI_WITH(tri_loss_options, __VA_ARGS__)))

/* The share of samples whose label is among the k largest logits. */
tri_tensor *tri_accuracy(tri_tensor *logits, tri_tensor *labels, int64_t k);

/* Declares the scalar that training minimises. It is also the output "loss". */
void tri_loss(tri_tensor *scalar);
/* A named scalar for the progress line and metrics.jsonl. */
void tri_metric(tri_tensor *scalar, const char *name);
/* Any other result that tri_read should return. */
void tri_output(tri_tensor *t, const char *name);

/* ---- 8 Gradients and updates --------------------------------------------------------------- */

/* If a graph has a loss and updates no parameter, opening it adds the usual step: gradients of all
 * parameters, clipping, and the optimizer of the options. To compose a step yourself, call the
 * functions below while building. The graph is then used as it is, for its own batch size only.
 * With tri_options.amp, types are chosen for the network as if the step came from the options; the
 * calls of tri_grad are then repeated, and the step itself keeps its types. */

int tri_param_count(const tri_graph *g);
tri_tensor *tri_param_at(const tri_graph *g, int i); /* in order of construction */
tri_tensor *tri_find(const tri_graph *g, const char *name); /* parameter, state, input, output */

/* Sets out[i] to the derivative of the scalar `y` by wrt[i], or to zeros if y does not depend on
 * wrt[i]. A derivative is part of the graph and can be differentiated again. Evaluations and
 * forward runs leave out every output that depends on a derivative. */
void tri_grad(tri_tensor *y, tri_tensor *const *wrt, int n, tri_tensor **out);

/* Scales all gradients by min(1, limit / norm) and replaces them in the array; returns the norm. */
tri_tensor *tri_clip_by_norm(tri_tensor **grads, int n, double limit);

/* Loss scaling, which tri_optimizer.loss_scale describes. tri_scale_loss returns the loss times the
 * scale, to be differentiated. tri_unscale divides gradients of that by the scale, in the array. It
 * returns whether they and the loss are finite, for the condition of the update. It also moves a
 * dynamic scale and declares the metrics "loss_scale" (if dynamic) and "skipped". Without a scale
 * tri_scale_loss returns `loss`, and tri_unscale does nothing and returns null. */
tri_tensor *tri_scale_loss(tri_tensor *loss, const char *loss_scale);
tri_tensor *tri_unscale(tri_tensor *scaled, tri_tensor **grads, int n);

/* At the end of the step, `target` (a parameter or state) takes `value`; tri_assign_if does so only
 * if the bool scalar `condition` is true. All updates read the values from before the step. */
void tri_assign(tri_tensor *target, tri_tensor *value);
void tri_assign_if(tri_tensor *target, tri_tensor *value, tri_tensor *condition);

/* For a parameter w with gradient g and decay d, where |x| is the norm of the whole tensor:
 *
 *     sgd        w - lr (g + d w)
 *     momentum   m = momentum m + (g + d w), w - lr m
 *     nesterov   the same m, w - lr (g + d w + momentum m)
 *     adam       g + d w instead of g; m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2,
 *                a = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps), w - lr a
 *     adamw      w (1 - lr d) - lr a, where decay is not part of g
 *     lars       r = trust |w| / (|g| + d |w| + eps), m = momentum m + r (g + d w), w - lr m
 *     lamb       u = a + d w, r = |w| / |u|, w - lr r u
 *
 * r is 1 if one of its norms is 0. It is also 1 for parameters exempt from decay, whatever
 * weight_decay is: those that tri_group_decay sets to 0. Parameters for which it sets nothing are
 * exempt if their rank is below 2, unless decay_all is set.
 *
 * A field of 0 means the default; where 0 itself is a legal value, write TRI_ZERO. */
#define TRI_ZERO (-1e-300)
typedef struct tri_optimizer {
    const char *name;    /* "sgd", "momentum", "nesterov", "adam", "adamw", "lars", "lamb" */
    double lr;           /* 0: the customary 0.01; adam, adamw, lamb 0.001; lars 1. All updates of
                            a graph share it */
    double momentum;     /* momentum, nesterov, lars. 0: 0.9; TRI_ZERO: 0 */
    double beta1, beta2; /* adam, adamw, lamb. 0: 0.9, 0.999; TRI_ZERO: 0 */
    double eps;          /* adam, adamw, lamb, lars. 0: 1e-8; lamb 1e-6; TRI_ZERO: 0 */
    double trust;        /* lars. 0: 0.001 */
    double weight_decay; /* d */
    bool decay_all;      /* otherwise norms and biases (rank below 2) do not decay */
    double clip_norm;    /* 0: none */
    bool gradients_sum;  /* true: gradients are multiplied by the number of lanes. false: they are
                            those of the loss, usually a mean over the batch */
    const char *schedule; /* see tri_options */
    /* The loss scale: null or "off" (none), a power of two, or "dynamic:start=X,every=N" (65536,
     * 2000). The loss is multiplied by the scale and its gradients are divided by it, so that small
     * gradients survive in 16-bit types. "dynamic" halves the scale after an overflow and doubles
     * it after N consecutive steps without one. With any scale, even 1, an update whose loss or
     * gradients are not finite is skipped. */
    const char *loss_scale;
} tri_optimizer;

/* tri_minimize adds the gradients of `loss` by all trainable parameters, clipping if clip_norm is
 * set, and the parameters' update. tri_update adds the update of n parameters from the given
 * gradients; it takes effect if `condition` (null: always) holds. Updates read tri_scalar "lr",
 * which follows lr and schedule of the options. What the options leave unset is taken from `o`.
 * Other settings of the options' optimizer must be those that the step was built with: a program
 * passes those that tri_options_parse has read to these functions, tri_clip_by_norm and
 * tri_scale_loss. */
void tri_minimize(tri_tensor *loss, tri_optimizer o);
void tri_update(tri_tensor *const *params, tri_tensor *const *grads, int n, tri_optimizer o,
                tri_tensor *condition);

/* Settings for all parameters whose full name matches the pattern (*, ?, [...]); the last call
 * wins. */
void tri_freeze(tri_graph *g, const char *pattern);
void tri_group_lr(tri_graph *g, const char *pattern, double factor);
void tri_group_decay(tri_graph *g, const char *pattern, double weight_decay);
/* Gradients are summed over the lanes in buckets, each as soon as the backward pass has completed
 * it. The gradients of all parameters that match the patterns of one number, from 1 to 1000, form a
 * bucket of their own; tri_options.bucket sizes the others. No bit depends on it. `trireme explain
 * --full` lists the buckets. */
void tri_bucket(tri_graph *g, const char *pattern, int number);
/* Saves memory and costs time: the backward pass recomputes what the matching scopes compute, bit
 * for bit the same, instead of keeping it. Patterns: "layer1.?", "*.relu*"; null: the current
 * scope. Each matching scope (of nested ones, the outermost) is one part; only results that
 * other parts use are kept. A pattern that matches an operator's own name selects that
 * operator alone. */
void tri_recompute(tri_graph *g, const char *pattern);
/* Puts the matching scopes (patterns as in tri_recompute; null: the open scope) in a stage of a
 * pipeline, 0 to 63. Other operators are in the latest stage of their inputs. Every stage needs the
 * results of earlier ones only. The lanes are the micro-batches; tri_options.pipeline orders them.
 * No bit depends on stages. */
void tri_stage(tri_graph *g, const char *pattern, int stage);
/* Computes the matching scopes (patterns as in tri_recompute) in this type, whatever
 * tri_options.amp says: TRI_F32; or TRI_BF16 or TRI_F16 for all but norms and losses. */
void tri_precision(tri_graph *g, const char *pattern, tri_type type);
/* A second name for a parameter, for files from other programs. The parameter is counted, hashed
 * and saved once. */
void tri_tie(tri_tensor *param, const char *other_name);

/* ---- 9 Data -------------------------------------------------------------------------------- */

/* A data set is a number of samples, each with named fields. Each input of the graph takes the
 * field of the same name; type and shape must fit. */
typedef struct tri_data tri_data;

#define TRI_MAX_FIELDS 64

typedef struct tri_field {
    const char *name;
    tri_type type;
    tri_shape shape; /* of one sample, without batch dimension */
} tri_field;

/* Opens a data set. spec: what `--data` takes; `man trireme` describes all sources and their keys.
 *
 * "idx:DIR[,split=train|test][,mean=X][,std=X]": images and labels of the MNIST family.
 * "synthetic[:size=N]": generated samples; needs the graph.
 * "images:DIR", "tar:PATTERN": JPEG and PNG pictures, DIR/SPLIT/CLASS/NAME, or KEY.jpg next to
 *   KEY.cls. "tar:-,samples=N" and "tar:pipe:COMMAND,samples=N" read such archives from a pipe, in
 *   sequence. All other files that the library opens must be regular files.
 * "cifar:DIR": CIFAR-10 and CIFAR-100 in their binary form.
 *   Pictures and CIFAR have "image" f32[3,size,size] and "label" i64[]; `man trireme`, under
 *   --data, lists their keys. A file that cannot be read is reported and another sample replaces
 *   it, up to max-bad times.
 * "npy:FILE;FILE": one field per file of numpy.save, named like the file.
 * "text:FILE[:FILE...][,tokenizer=KIND][,for=lm|bert][,length=N][,predictions=N]": texts as tokens.
 *   FILE may be a pattern ("books/part?.txt"). KIND: "bytes" (the default), "bert:FILE",
 *   "bert-cased:FILE", "gpt2:DIR". Fields are i64[length] unless stated otherwise. Keys that are
 *   not given follow from the graph's inputs; `for` is bert if there is an input "token_type_ids".
 *   for=lm: consecutive blocks of the text: "input_ids" and "labels" (the same). Size: the number
 *     of whole blocks.
 *   for=bert: "[CLS] A [SEP] B [SEP]", masked: "input_ids", "token_type_ids", "attention_mask",
 *     "labels" (-100 except at masked places); "masked_lm_positions", "masked_lm_ids" and
 *     "masked_lm_weights" (f32), all three [predictions]; "next_sentence_label" (a scalar; 1: B
 *     does not follow A). Size: the number of samples that the documents' sentences fill. Sample i
 *     depends only on seed, epoch and i. */
tri_data *tri_data_open(const char *spec, const tri_graph *g, uint64_t seed);

/* Your own data. `fill` writes sample `index` of `epoch`, through one pointer per field. The
 * library calls it in any order; it must write the same values for the same arguments. A sequential
 * source is exempt: `fill` is called exactly once per sample, in order, and the samples can be
 * neither shuffled nor divided by index. A return value other than 0 fails the step, with a message
 * that names the sample. */
typedef int tri_fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out);
tri_data *tri_data_new(const char *name, int64_t size, const tri_field *fields, int n,
                       tri_fill *fill, void *user, bool sequential);
/* Declares that any thread may call `fill`, even while your own code runs between two steps, and
 * that several threads may call it at once (never for a sequential source). Only then are samples
 * read ahead. */
void tri_data_concurrent(tri_data *d);
int64_t tri_data_size(const tri_data *d);
int tri_data_fields(const tri_data *d, const tri_field **fields);
tri_status tri_data_get(tri_data *d, int64_t index, int64_t epoch, uint64_t seed,
                        void *const *out);
void tri_data_free(tri_data *d);

/* For your own data: the class of a sample, out of `classes`. Stratified and class-weighted
 * samplers call it; it should be fast and not read the sample. `user` is that of tri_data_new. */
void tri_data_labels(tri_data *d, int64_t classes,
                     int64_t (*label)(const void *user, int64_t index));
/* For your own data: the greatest length of a sample in any epoch, for networks with tri_shorter.
 * It should be fast and not read the sample. `fill` still writes fields in their full size. */
void tri_data_lengths(tri_data *d, int64_t (*length)(const void *user, int64_t index));

/* Data made from other data. These functions take `d`, also on failure. They return null for null,
 * so that calls can be nested: tri_data_repeat(tri_data_take(tri_data_open(...), 0, 1000), 3). */
tri_data *tri_data_take(tri_data *d, int64_t first, int64_t n); /* n samples, starting at `first` */
tri_data *tri_data_subset(tri_data *d, const int64_t *index, int64_t n); /* the listed samples */
/* One epoch of the result is `times` consecutive epochs of `d`. */
tri_data *tri_data_repeat(tri_data *d, int64_t times);
/* `map` makes each sample from one of `d`: from `in`, one pointer per field of `d`, to `out`, one
 * per field given here. Without fields (null, 0) the fields are those of `d`, and `in` is `out`.
 * `map` is called in any order: key random numbers by seed, epoch and index. One thread at a time
 * calls it, unless the mapped data is given to tri_data_concurrent. A return value other than 0
 * fails the step. */
typedef int tri_map(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *in,
                    void *const *out);
tri_data *tri_data_map(tri_data *d, const tri_field *fields, int n, tri_map *map, void *user);
/* For sequential data: keeps `window` samples and returns one of them at random, keyed by the
 * seed. */
tri_data *tri_data_shuffle(tri_data *d, int64_t window);

/* ---- 10 Options ---------------------------------------------------------------------------- */

/* The options of `trireme train`, for your own program. Zero means the default everywhere. */
typedef struct tri_options {
    int64_t batch;  /* samples per step, over all workers; 0: the batch of the graph */
    int64_t lanes;  /* slices of the batch, which workers and threads share; their number changes
                       rounding. 0: chosen from model and batch */
    int64_t memory_limit; /* bytes; a run that needs more is refused before it begins. 0: what the
                             machine and the control group provide */
    int64_t threads; /* threads that compute a step; they change no bit. 0: one per core */
    int64_t steps;  /* steps to run; 0: use epochs */
    int64_t epochs; /* epochs to run, if steps is 0; 0: 1 */
    uint64_t seed;
    const char *device; /* "cpu" or "ref" */
    const char *data;   /* see tri_data_open; or "feed" (tri_feed). The default, "synthetic", is
                           announced */
    const char *tokenizer; /* for data "text:..." that names none: "bytes" (the default),
                              "bert:FILE", "bert-cased:FILE", "gpt2:DIR" */
    /* Threads per worker that read the next step's samples during a step. They take processor time
     * from the computation and change no bit. 0: one, if reading samples takes noticeable time; -1:
     * none. See tri_data_concurrent. */
    int64_t data_threads;
    tri_data *source;   /* instead of `data`: your own source, which the run then owns */
    bool no_shuffle;
    /* The order of samples, a function of seed, epoch and batch alone:
     *   "shuffled"    (the default) another order in every epoch
     *   "sequential"  (as no_shuffle) the order of the data
     *   "stratified"  every lane of every step has its share of each class, rounded up or down;
     *                 every sample comes once per epoch. The data has to report classes
     *                 (tri_data_labels)
     *   "weighted:balanced", "weighted:classes=X/X...", "weighted:FILE"  with replacement: all
     *                 classes equally likely; a weight per class; a file with a weight per
     *                 sample */
    const char *sampler;
    const char *subset; /* use only these samples: "FIRST:END", or a file with their numbers */
    /* "K/N": every N-th sample of the order, starting at the K-th (0 to N - 1), for N independent
     * programs that train on one data set. Workers of one run do not need it. If the shares would
     * be unequal, short ones start again from their beginning; with "K/N,drop" long ones lose a
     * sample. */
    const char *share;
    /* The rest of an epoch that does not fill a step.
     *   "drop"  (the default) leaves it out.
     *   "keep"  makes a smaller step of it, whose mean is over its own samples. The network must
     *           not bring its own updates. Outputs with a row per sample have fewer rows in this
     *           step.
     *   "pad"   fills the step with samples from the epoch's beginning that do not count: all their
     *           labels are set to -100. The loss has to ignore these (tri_cross_entropy with
     *           .ignore and .ignore_index = -100); the zoo's gpt2 does, bert does not. Norms over
     *           the batch do see these samples. */
    const char *tail;
    int64_t sink_size; /* step callbacks run every so many steps, and after the last step (1) */
    tri_optimizer optimizer; /* name "sgd"; schedule: "constant", "step:every=N,factor=X",
                                "poly:power=X,end=X", "cosine:end=X", each with warmup=N steps */
    /* Mixed precision. Parameters, and what updates compute from them, are always f32.
     *   "O0"  f32.
     *   "O1"  matrix products and convolutions in a 16-bit type; exponentials, sums and losses in
     *         f32; every other operator in the type of its inputs.
     *   "O2"  the whole network in the 16-bit type, except the loss and the weights and statistics
     *         of norms.
     *   "O3"  the loss too. */
    const char *amp;
    const char *amp_type; /* "bf16" (the default); or "f16", for which loss_scale is "dynamic",
                             unless the program composed its step: it then scales the loss itself */
    /* "auto" (the default): Winograd convolution, which rounds differently, where the device has it
     * and it is faster; "direct": never. */
    const char *conv;
    /* Who computes 16-bit products and convolutions. "portable" (the default): our own kernels,
     * with the same bits on every processor; "native": the library oneDNN, in a build with it. */
    const char *math;
    const char *out;  /* directory of metrics.jsonl, run.json, run.log; null: none (the program:
                         "run"; with several workers: the agent's directory) */
    int64_t metrics_every; /* steps per row of metrics.jsonl, which holds their means; 0: a row per
                              step, at most 100 per second */
    /* "steps=10..20": what every thread does in these steps, both included, is recorded in
     * out/profile/10, at most profile_most bytes (0: 1 GiB); see tri_profile. */
    const char *profile;
    int64_t profile_most;
    const char *load; /* a safetensors file, or a directory of checkpoints */
    bool partial;     /* take from `load` what fits and report the rest; else everything must fit */
    const char *save;
    /* The directory of checkpoints. The newest `keep` of them stay (0: all), and those of the steps
     * that keep_every divides. A step waits only for the copy in memory. A run saves its last step
     * when it ends, even if it was asked to stop. resume: continue from the newest undamaged
     * checkpoint, if there is one, as if the run had never ended. Without it the directory must
     * have no checkpoints. */
    const char *ckpt;
    /* A file with a key of 32 bytes, raw or as hexadecimal digits (`trireme ckpt key FILE` makes
     * one). Checkpoints are encrypted and authenticated with it, and `load` can read such files. */
    const char *ckpt_key;
    int64_t save_every;  /* save every so many steps, */
    double save_minutes; /* or minutes */
    int64_t keep, keep_every;
    bool resume;
    /* With `resume`: the network, its data and optimizer may be others than the checkpoint's, which
     * is an error otherwise. Parameters, states and the optimizer's moments of the same name, shape
     * and type keep their values, and the others, which are listed, begin anew. Steps go on being
     * counted, also for the schedule. */
    bool changed;
    /* Evaluations while training, like tri_evaluate: of the data eval_data, after every epoch or
     * every eval_every steps, and after the last step. Results appear in the progress line, in
     * metrics.jsonl and in tri_result. best: the result that evaluations are compared by,
     * "top1:max" or "loss:min" (the default is the loss; without ":", a loss is minimised and any
     * other result maximised). If it is set, the checkpoint of the best evaluation is kept whatever
     * `keep` says. early_stop: end the run, successfully, if none of so many consecutive
     * evaluations beat the best before them by more than early_stop_change. */
    const char *eval_data;
    tri_data *eval_source; /* instead: your own source, which the run then owns */
    int64_t eval_every;    /* 0: every epoch */
    const char *best;
    int64_t early_stop; /* 0: never */
    double early_stop_change;
    double max_time; /* after this many seconds the run ends at the next step boundary, as if asked
                        to stop; 0: no limit */
    /* A shell command, started at the events save-failure and end and, with several workers, stall
     * and death. TRIREME_EVENT, TRIREME_MESSAGE, TRIREME_STEP and other environment variables
     * describe the event (man trireme, --on-event). With several workers the agent starts it. */
    const char *on_event;
    /* A loss that is NaN or infinite. "stop" (the default) ends the run; nothing of that step
     * counts, and the message names the step, the lane and the operator whose result has the first
     * NaN or infinity. "warn" prints a line when the loss first becomes so. Updates skipped by a
     * loss scale are not reported, but 100 consecutive ones are. A checkpoint with a parameter that
     * is not finite is never written; with "stop" that ends the run. */
    const char *on_nan;
    /* How a network is divided. "data": workers share lanes. "semi": besides, operators are split
     * over the seats of a mesh, as strategies say. A mesh implies "semi", and without one "data" is
     * the default. "auto": the run finds its plan, of the same bits, and writes it to DIR/plan; a
     * program of one process searches threads, stages and recomputation, and `trireme run
     * --parallel auto` also the number of workers. */
    const char *parallel;
    const char *mesh; /* axes, as for tri_mesh: "model=2". If both are given, they must agree */
    /* Strategies, separated by commas: files, or names of ready ones: "megatron" for gpt2 and bert;
     * "megatron-sp", where norms and residuals are split over the sequence; "channels" for networks
     * of convolutions or dense layers. All three use an axis `model`. A line of a file is one of
     *     PATTERN FACTORS       as for tri_strategy
     *     layout NAME LAYOUT    as for tri_layout; NAME is a parameter's name, or a pattern
     *     maybe LINE            such a line, but it need not match anything, and leaves out
     *                           operators and tensors that cannot be split so
     *     use NODE USE          what one operator of a lane does, forward or backward: "out=model",
     *                           "partial=model", "-" (whole), "form" (it is rebuilt); nothing else
     *                           overrides it
     *     mesh AXES             as for tri_mesh; all meshes that are given must agree
     * and # begins a comment. A name that has a newline is such a file's text itself.
     * share/trireme/strategies has the ready ones, to read and copy. */
    const char *strategy;
    /* Operators without a strategy: "follow" (the default) their inputs; "batch": split by samples,
     * over as many seats as divide them; "whole". */
    const char *unset;
    /* Comma-separated patterns, as for tri_recompute; or "none", also of what the network asks for;
     * "full": all blocks of the network, such as its layers; "fit": the cheapest operators and
     * blocks with which the run needs at most memory_limit. */
    const char *recompute;
    int64_t bucket; /* bytes: gradients are summed over the lanes in buckets of at least so many,
                       while the backward pass goes on; see tri_bucket. 0: 4 MiB */
    /* In which format gradients of two or more dimensions travel between hosts: "f32" (the
     * default); "pack", without loss; "bf16", "fp16", "int8" or "topk:0.01"; or other ones for
     * parameters whose names match a pattern: "bf16,transformer.wte=f32". All but f32 and pack
     * round the wire_nodes (0: 4) uppermost sums of the lanes' tree, and but topk those above, also
     * on one host. So they belong to the grain: the result does not depend on the hosts, of which
     * at most wire_nodes can share a step. */
    const char *wire;
    int64_t wire_nodes;
    /* Stages of a pipeline, balanced by the work of their operators; instead of those that
     * tri_stage asks for. 1: none. 0: those of the network. */
    int64_t stages;
    /* The operators with which the stages from 1 on begin, "NAME,NAME". NULL: those that make all
     * stages about as long, by what was measured on this machine if that is known. */
    const char *cuts;
    /* In which order each track computes the legs of its stages: "1f1b" (the default), "gpipe",
     * "interleaved" with `chunks` stages per track, or "zero-bubble". */
    const char *pipeline;
    int64_t chunks;
    /* A worker computes a leg of another track "late": if that track's workers are dead or late
     * (the default), or "never". */
    const char *steal;
    /* What is kept of what depends on parameters: "0" and "1" sum a lane's gradients when it ends.
     * "2" (the default) sums them in buckets during the backward pass, so that fewer are kept. "3"
     * also computes weights of other types and in other formats again where they are read. All
     * workers share one copy of parameters and optimizer state in any case, so 0 is the same as 1.
     * No bit depends on it. */
    const char *zero;
    /* A text file that says how a run is divided; save_plan writes the run's own. Its grain decides
     * the bits (batch, lanes, mesh, strategies, precision, kernels): the network and the other
     * options must not contradict it. Its placement does not (threads, buckets, stages,
     * recomputation): options win over it, and it wins over the network. tri_options_parse reads
     * the plan too, so that `batch` is set when the network is built. */
    const char *plan, *save_plan;
    const char *passes; /* passes to leave out: "-cse,-fold"; "-all,+cse": all but one */
    bool forward; /* no training: compute outputs only, with operators in evaluation mode */
    bool quiet;   /* no progress line */
} tri_options;

tri_options tri_options_default(void);
/* An option that asks for what holds without it, such as pipeline "1f1b", counts as not given: it
 * contradicts nothing, and is no error where it has no effect. tri_options_parse lets a plan
 * (--plan) replace defaults that *o had before.
 *
 * Removes the options it knows from argv and leaves the rest for the program to read or refuse. On
 * a mistake, and on an option of `trireme run` (-n, --spares), it prints the correct form and
 * returns TRI_USAGE. On --help it prints the options that most runs need and the names of topics;
 * on --help TOPIC those of a topic; on --help all the text of tri_options_help. Then it exits. If
 * your program has an option of the same name, remove it from argv first. */
tri_status tri_options_parse(tri_options *o, int *argc, char **argv);
const char *tri_options_help(void);

/* ---- 11 Running ---------------------------------------------------------------------------- */

typedef struct tri_run tri_run;

/* Compiles the graph and takes it (also on failure). Returns null on failure: see tri_message.
 * With workers (`trireme run`), the thread that opens a run makes its steps, and lives until it is
 * closed.
 * While a run is open, a crash (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP) for
 * which the program has no handler is reported to stderr, with the run's current activity and a
 * stack trace; the process then dies of the signal as usual. tri_close restores what tri_open
 * changed. In a program that `trireme dump -- ./prog` has started (or explain, memory, bench,
 * compare, plan) this function runs the command and ends the process. */
tri_run *tri_open(tri_graph *g, const tri_options *o);

/* Does one step. Returns false if all steps are done, if one failed, or if run is null.
 * While a training run is open, SIGPIPE does not kill the process, unless the program handles that
 * signal itself; writing to a closed pipe fails. If that happens to stdout or stderr, tri_step
 * returns false, and tri_close saves what it saves and returns TRI_STOPPED. */
bool tri_step(tri_run *run);
/* Ends the run and frees it and its graph. Prints the message of the first failure (of tri_open, if
 * run is null) and returns its status, so that `return tri_close(run)` can end main. */
tri_status tri_close(tri_run *run);

/* The rank of this worker and the number of workers: 0 and 1 without `trireme run`, rank -1 in a
 * spare (a worker that waits to replace another). They count over all hosts, and change when hosts
 * come and go. They are for logs: no program needs them to divide the work, as workers share every
 * step by themselves, and data is never divided by them. One worker is the *reporter*: it calls the
 * callbacks, prints and saves. If it dies, another worker becomes the reporter. */
int tri_rank(const tri_run *run);
int tri_size(const tri_run *run);
/* The number of this host in a run over several (--hosts), and how many take part: 0 and 1 on one
 * host. For logs, too: data is never divided by them. */
int tri_host(const tri_run *run);
int tri_hosts(const tri_run *run);

int64_t tri_step_number(const tri_run *run); /* steps done */
int64_t tri_step_total(const tri_run *run);
int64_t tri_epoch(const tri_run *run);
double tri_value(const tri_run *run, const char *name); /* a scalar output; NaN if unknown */
/* Sets a tri_scalar for all later steps. "lr" replaces the schedule until it is set to NaN; the
 * next reporter and a resumed run keep it. Setting an unknown name, or "step", "lanes" or
 * "samples", fails the run. */
void tri_set_scalar(tri_run *run, const char *name, double value);
tri_status tri_run_status(const tri_run *run);

/* Whole tensors by name: outputs can be read, parameters and states read and written. `bytes` must
 * be the exact size. With several workers every worker calls tri_write, before the first step or
 * between two steps. Only the reporter's call takes effect. If the reporter dies, the next reporter
 * makes the same call again. So write values that do not depend on the old ones (not "half of it").
 * The same holds for tri_load and tri_set_scalar. */
tri_status tri_read(const tri_run *run, const char *name, void *data, size_t bytes);
tri_status tri_write(tri_run *run, const char *name, const void *data, size_t bytes);

/* Copies the whole batch of an input. With tri_options.forward, feed every input, run, and read the
 * outputs:
 *     tri_feed(run, "image", pixels, sizeof pixels);
 *     tri_forward(run);
 *     tri_read(run, "logits", scores, sizeof scores);
 *
 * To feed a training run, set tri_options.data = "feed" and `steps`, and write the loop yourself:
 *     do {
 *         make_batch(tri_step_number(run), pixels, labels);
 *         tri_feed(run, "image", pixels, sizeof pixels);
 *         tri_feed(run, "label", labels, sizeof labels);
 *     } while (tri_step(run));
 * The contract: the batch is a function of tri_step_number(run), and not of anything that the loop
 * counts or stores itself. Then any number of workers, deaths and a resume give the same weights.
 * Every worker feeds the whole batch; only the reporter's values are used. If the reporter dies,
 * the next one returns from the latest step once more and feeds again. A resumed run starts with
 * the number of its checkpoint. What tri_set_scalar and tri_write set should be a function of the
 * number too, and be set before the step, because checkpoints are written inside tri_step.
 *
 * tri_step fails and names the input if an input that the network uses has not been fed since the
 * previous step, or if a value is out of range (tri_input). tri_feed refuses an unused input, and
 * a run with other data. Data "feed" has neither epochs nor an order of samples; with it tri_train,
 * epochs, sampler, subset, share, tail, data_threads, tokenizer and tri_shorter are refused. */
tri_status tri_feed(tri_run *run, const char *input, const void *data, size_t bytes);
tri_status tri_forward(tri_run *run);

/* Records what every thread does in the steps `first` to `last`, both included, as
 * tri_options.profile; before tri_step makes the first of them, once at a time. With workers, all
 * call it alike. `trireme report DIR` says what follows from it, and `trireme profile DIR` makes
 * trace.json and tables. Not for a run that does not train. */
tri_status tri_profile(tri_run *run, int64_t first, int64_t last);

/* The mean of every scalar output over a data set, in evaluation mode, with the run's parameters.
 * Every sample counts once: batches are weighted by their samples. (Where a loss ignores labels,
 * the counted labels of a batch share the weight of its samples.) Outputs that depend on gradients
 * (tri_grad) have no value. Read the results with tri_result; they are NaN after a failure. The
 * status and tri_message report a failure; the run continues, and tri_close does not report it.
 * TRI_STOPPED: the evaluation was cut short because the run has been asked to end. */
tri_status tri_evaluate(tri_run *run, tri_data *data);
double tri_result(const tri_run *run, const char *name);

/* SHA-256 in hexadecimal. weights: all parameters in order of their names, as plain f32. state:
 * also running statistics, optimizer state, loss scale and data cursor. */
void tri_hash(const tri_run *run, char weights[65], char state[65]);
/* The line that `trireme train` and tri_train print at their end, for a loop of your own, without a
 * newline: steps, loss of the last step, both hashes, the best evaluation if there was one, and
 * seconds. 512 bytes suffice. Fails, with an empty text, if the run failed before its last step. */
tri_status tri_result_line(const tri_run *run, char *text, size_t bytes);

/* A callback of the usual loop; either function may be null. If one returns a value other than 0,
 * the run ends. With several workers only the reporter calls callbacks, at least once per step: if
 * it dies meanwhile, the next reporter calls again. The callback runs after the checkpoint and the
 * evaluation that are due after the step. */
typedef struct tri_callback {
    int (*step)(tri_run *run, void *user);
    int (*epoch)(tri_run *run, void *user);
    void *user;
    int64_t every; /* call `step` after the steps that it divides; 0: as tri_options.sink_size */
    const struct tri_ready *ready; /* set by the functions below */
    const void *settings;
} tri_callback;

/* The usual loop in one call, with progress line, metrics and final line. `callbacks` may be null,
 * or is a list that ends with an empty entry; they are called in this order:
 *
 *     tri_train(g, &o, TRI_CALLBACKS(tri_loss_monitor(100), tri_time_monitor(100),
 *                                    tri_saver(.directory = "ckpt", .every = 1000, .keep = 10),
 *                                    tri_evaluator(.data = "images:pets,split=val",
 *                                                  .best = "top1"),
 *                                    {.epoch = after_epoch, .user = &mine})); */
tri_status tri_train(tri_graph *g, const tri_options *o, const tri_callback *callbacks);
#define TRI_CALLBACKS(...) ((const tri_callback[]){__VA_ARGS__, {0}})

/* Every so many steps, a line on stderr: tri_loss_monitor prints the loss and all metrics of that
 * step; tri_time_monitor prints the mean time of a step since the line before, and after each epoch
 * the time of the epoch without evaluations. 0: after epochs only. */
tri_callback tri_loss_monitor(int64_t every);
tri_callback tri_time_monitor(int64_t every);

/* Checkpoints and evaluations, set in the program. Options on the command line win. */
typedef struct tri_saver_options {
    const char *directory, *prefix; /* prefix: a folder for this run, DIRECTORY/PREFIX */
    int64_t every;                  /* steps */
    double minutes;
    int64_t keep, keep_every;
    bool resume, changed;
} tri_saver_options;
tri_callback tri_saver_(const tri_saver_options *o); /* settings are read when the run begins */
#define tri_saver(...) tri_saver_(&(const tri_saver_options){__VA_ARGS__})

typedef struct tri_evaluator_options {
    const char *data;
    tri_data *source; /* instead: your own source, which the run then owns */
    int64_t every;    /* steps; 0: every epoch */
    const char *best;
    int64_t early_stop;
    double early_stop_change;
} tri_evaluator_options;
tri_callback tri_evaluator_(const tri_evaluator_options *o);
#define tri_evaluator(...) tri_evaluator_(&(const tri_evaluator_options){__VA_ARGS__})

/* ---- 12 Files ------------------------------------------------------------------------------ */

/* safetensors files with the parameters and running statistics under PyTorch's names. Loading is
 * strict unless tri_options.partial is set: it reports missing, unexpected and mis-shaped tensors.
 * A prefix that only the file or only the network has ("module.", "_orig_mod.", "model.", "bert.",
 * "transformer.") is ignored. gamma, beta, moving_mean and moving_variance are recognised;
 * num_batches_tracked and the like are skipped. f64 is rounded to f32. From a directory of
 * checkpoints the newest undamaged one is loaded and named. If tri_model_open made the network from
 * a name of the zoo, the file's metadata stores its specification as "trireme.model", and the
 * options that prepared its data as "trireme.data". */
tri_status tri_save(const tri_run *run, const char *path);
tri_status tri_load(tri_run *run, const char *path);

/* ---- 13 User-defined operators ------------------------------------------------------------- */

typedef struct tri_spec {
    tri_type type;
    tri_shape shape;
} tri_spec;

#define TRI_MAX_OUTPUTS 16

/* An attribute's value; the row's `attributes` say which member is used. */
typedef struct tri_attr {
    const char *name;
    int64_t i; /* int; type; bool */
    double f;  /* float */
    tri_shape list; /* ints, shape */
    const char *text;
} tri_attr;

/* The arguments of a kernel. Tensors are contiguous, row-major. */
typedef struct tri_call {
    const tri_node *node;
    const void *const *in;
    void *const *out;
    void *state;         /* made by the kernel's preparation, if it has one */
    uint64_t seed;
    int64_t step;
    int64_t first;       /* index of element 0 of output 0 in the tensor of the whole batch: random
                            kernels key their numbers by first + i */
    int64_t sample;      /* number of the lane's first sample in the batch */
    int64_t part;        /* which part of the kernel to run; a row's own kernel has one */
    void *scratch;       /* memory for the duration of the call, if the kernel asked for it */
    void *shared;        /* the same, shared by all parts of the kernel */
    struct tri_fault *fault; /* written by tri_call_fail */
} tri_call;

typedef void tri_kernel(const tri_call *call);

/* One operator, one row.
 *
 * attributes  the attributes of a node: "stride:ints=1,1 pad:ints=0,0 axis:int=-1 p:float
 *             mode:text=same shape:shape to:type". One without "=" must be given. A `shape` is the
 *             output's shape and is divided when the output is. An evaluation sets "training"
 *             to 0.
 * infer       checks the inputs and writes the specs of the outputs. Returns their number, or 0
 *             after tri_op_error.
 * gradient    given the node and the derivative by each output (null where there is none), sets the
 *             derivative by each input that has one (dx starts as nulls). tri_grad_none: there is
 *             no derivative. tri_grad_refused: not provided; asking for it is an error that names
 *             the operator.
 * factors     how the operator may be split, like einsum: "mk,kn->mn". One letter per dimension;
 *             capitals may not be split; "1" is a dimension of length 1; "..." stands for leading
 *             dimensions, with broadcasting; "(ns)" is one dimension made of two factors, the outer
 *             one first. A letter missing from an output is summed over. Without factors,
 *             factor_fn and samplewise the operator is never split.
 * factor_fn   the same where it depends on the node: writes the string.
 * linear      which sums may be taken after the operator instead of before: TRI_LINEAR_JOINTLY,
 *             sums of all inputs at once (add); TRI_LINEAR_EACH, sums of any one input (mul). Lanes
 *             use the first; the second is for splits inside a lane. TRI_LINEAR_FIRST: of input 0
 *             alone (div).
 * examples    inputs to test it with, at least one: "f32[2,3]@0.5:2, i64[4]@0:9 {axis=1}". Values
 *             are drawn from the range @low:high.
 * flops       arithmetic operations of a node, for planning and benchmarks; null: not counted.
 * count       the divisor of a mean. It is stored in the attribute "count" when the batch is
 *             divided.
 * group_values  for a row with attributes "training" and "groups", sets of samples that share
 *             statistics: how many values one statistic is computed from. Training needs at least
 *             2; an evaluation sets groups to 1.
 * values      where the elements of output 0 come from:
 *             TRI_VALUES_COMPUTED   the operator computes them
 *             TRI_VALUES_MOVED      from other places of input 0; the rest is the attribute
 *                                   "value", if there is one (transpose, slice, pad)
 *             TRI_VALUES_SAME       input 0, in the same order (reshape): both may share memory
 * piece       the first element of output 0 in input 0, if output 0 is a piece of it without gaps;
 *             -1: it is not. Such a piece of a parameter needs no memory of its own.
 * leaves_out  the number of the input (labels) in which elements equal to `value` make output 0
 *             zero, false or a constant at the same places; -1: none. --tail pad gives such labels
 *             to its extra samples, and refuses a network whose loss would still count them.
 * precision   the types that mixed precision (tri_options.amp) gives a node whose inputs are f32 or
 *             a 16-bit type:
 *             TRI_PRECISION_FULL    f32; the default
 *             TRI_PRECISION_ANY     its inputs' types: it computes in f32 whatever they are
 *             TRI_PRECISION_WIDE    f32 in O1, 16 bits from O2 on: exponentials, sums
 *             TRI_PRECISION_FOLLOW  16 bits where its inputs are, and from O2 on
 *             TRI_PRECISION_LOW     16 bits: matrix products, convolution
 * in_f32      bit i: input i is always f32 (the weights of a norm)
 * kernel      used where the device lacks a kernel, if the device works in host memory.
 *
 * On a mesh (tri_mesh) a node may be split along any factor:
 * names       public names of factors, by letter, and of the first dimensions of "...":
 *             "...:batch,heads m:rows k:in". Any other factor is named after its dimension in the
 *             operand of highest rank: batch; batch, features; batch, seq, features; batch,
 *             features, height, width; from rank 5 on batch, dim1, dim2 and so on. Where that name
 *             is in use, and for a factor that no operand has alone in a dimension, the name is the
 *             letter. A name that two letters have is that of the first whose extent is not 1.
 * follows     int attributes that change with the part of a factor that a seat has:
 *             "groups=size:g first=begin:v all=extent:v": how many places of the factor the part
 *             has, the first of them, how many there are in all. A node that is not split has the
 *             values that mean all of it, first=0 and all=0. A random row with attributes "local",
 *             "origin" and "whole" of kind ints gets the shape of its part of output 0, the place
 *             of the part's first element, and the shape of the whole, with dimensions divided
 *             where that is needed to describe the part; they are empty while nothing is split.
 * partial     how results are combined over a factor that an output lacks: by sum, maximum or
 *             `and`. Lanes take sums only.
 * split_form  for a row that fixes a factor (a capital letter): rebuilds node n from operators that
 *             can be split along it, and sets the tensors that replace its outputs. Results may
 *             differ by rounding. False: this node cannot be rebuilt.
 * costly_form the form is slower than the whole node, and used only where a strategy asks for it;
 *             else the inputs are gathered.
 * reach       for a row with windows. The dimensions they lie in are marked by "~" before the
 *             letter of a factor of another operand: "nc~p~q->ncpq". It says which places of such
 *             a dimension a place of the factor concerns: see tri_reach.
 * part        for a row with windows: changes the attributes of node n to those of a part: places
 *             [part[0], part[1]) of the factor, with places [seen[0], seen[1]) of the dimension
 *             that has windows. */

/* Place i of a factor concerns the places from (i * times + low) / over to (i * times + high) /
 * over, both rounded down, of a dimension with windows; of these, those that exist. */
typedef struct {
    int64_t times, over, low, high;
} tri_reach;

typedef struct tri_op {
    const char *name;
    int inputs, inputs_max; /* inputs_max 0: exactly `inputs`; -1: any number from `inputs` up */
    const char *attributes;
    int (*infer)(const tri_node *n, tri_spec *out);
    void (*gradient)(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx);
    const char *factors;
    void (*factor_fn)(const tri_node *n, char *text, size_t bytes);
    enum { TRI_NOT_LINEAR, TRI_LINEAR_JOINTLY, TRI_LINEAR_EACH, TRI_LINEAR_FIRST } linear;
    const char *const *examples; /* ends with null */
    double (*flops)(const tri_node *n);
    int64_t (*count)(const tri_node *n);
    enum {
        TRI_PRECISION_FULL,
        TRI_PRECISION_ANY,
        TRI_PRECISION_WIDE,
        TRI_PRECISION_FOLLOW,
        TRI_PRECISION_LOW
    } precision;
    unsigned in_f32;
    tri_kernel *kernel;
    bool samplewise;     /* without factors and factor_fn: dimension 0 of every tensor is the
                            sample, and the operator may be split along it alone */
    unsigned shape_only; /* bit i: only the shape of input i is used, never its contents */
    bool random;         /* the result also depends on seed and step, or on the lane's first sample
                            (tri_call.sample). tri_recompute may compute it again only if the
                            row has an attribute "key:text=", which, if not empty, is the name
                            that keys its random numbers */
    bool tests_finite;   /* the result is true only if all inputs are finite. If it is the condition
                            of a parameter's update, a step in which it is false skips the update,
                            and --on-nan stop ignores a loss that is not finite */
    int64_t (*group_values)(const tri_node *n);
    enum { TRI_VALUES_COMPUTED, TRI_VALUES_MOVED, TRI_VALUES_SAME } values;
    int64_t (*piece)(const tri_node *n);
    int (*leaves_out)(const tri_node *n, double value);
    const char *names;
    const char *follows;
    enum { TRI_PARTIAL_SUM, TRI_PARTIAL_MAX, TRI_PARTIAL_AND } partial;
    bool (*split_form)(const tri_node *n, tri_tensor **out);
    bool costly_form;
    void (*reach)(const tri_node *n, char factor, tri_reach *out);
    void (*part)(const tri_node *n, char factor, const int64_t part[2], const int64_t seen[2],
                 tri_attr *attr);
} tri_op;

/* Registers a row, before any graph uses it. The row must live as long as the process. */
tri_status tri_register(const tri_op *op);
const tri_op *tri_op_find(const char *name);

/* Adds a node and returns its output 0. Attributes that are not given take their defaults. */
tri_tensor *tri_apply(tri_graph *g, const char *op, tri_tensor *const *in, int n,
                      const tri_attr *attrs, int n_attrs);

const tri_op *tri_node_op(const tri_node *n);
int tri_node_inputs(const tri_node *n);
tri_tensor *tri_node_in(const tri_node *n, int i); /* null beyond the last */
int tri_node_outputs(const tri_node *n);
tri_tensor *tri_node_out(const tri_node *n, int i);
tri_node *tri_node_of(const tri_tensor *t);
int64_t tri_attr_int(const tri_node *n, const char *name);
double tri_attr_float(const tri_node *n, const char *name);
tri_shape tri_attr_list(const tri_node *n, const char *name);
const char *tri_attr_text(const tri_node *n, const char *name);
/* Reports a mistake in the node being inferred; returns 0. */
int tri_op_error(const tri_node *n, const char *fmt, ...) TRI_PRINTF(2, 3);
/* Fails the step from inside a kernel: "label 12 at element 77 is not below 10". */
void tri_call_fail(const tri_call *c, const char *fmt, ...) TRI_PRINTF(2, 3);

void tri_grad_none(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx);
void tri_grad_refused(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx);

/* Runs the row's examples: gradients against finite differences, split against unsplit, device
 * against reference. Returns TRI_OK, or fails with what differed. */
tri_status tri_op_check(const tri_op *op, const char *device);

/* ---- 14 The zoo ---------------------------------------------------------------------------- */

/* A model in a shared object exports `void tri_model(tri_graph *g, tri_args *args)`. Its arguments
 * follow the colon in "resnet50:classes=100". An argument that the model does not ask for is an
 * error. */
typedef struct tri_args tri_args;
typedef void tri_builder(tri_graph *g, tri_args *args);
tri_builder tri_model; /* yours: the library does not define it */
int64_t tri_args_int(tri_args *a, const char *name, int64_t otherwise);
double tri_args_float(tri_args *a, const char *name, double otherwise);
const char *tri_args_text(tri_args *a, const char *name, const char *otherwise);

/* A name of the zoo with arguments, a textual graph (*.tri) or a shared object (*.so). The graph
 * carries any mistake. */
tri_graph *tri_model_open(const char *spec, int64_t batch);

/* ---- 15 Meshes ----------------------------------------------------------------------------- */

/* A mesh splits the operators of a network, inside each lane, over several *seats*. It has named
 * axes; along each axis an operator is split by one of its factors, or computed whole. Strategies
 * say how. The network itself stays as it is, and so do its parameters and files.
 *
 *     tri_mesh(g, "model=4,rows=2");
 *     tri_strategy(g, "*.mlp.c_fc", "out=model");
 *     tri_layout(words, "model,-");
 *
 * Operators to which no strategy applies follow their inputs, so that as little as possible moves
 * between seats; see tri_options.unset. Gradients follow the forward pass. Mesh and strategies
 * change rounding, as the number of lanes does. Without a mesh all strategies have no effect. */

/* The mesh: its axes and their sizes, at most 1024 seats; the last axis varies fastest. The same as
 * tri_options.mesh. A number alone, "4", is a mesh for the tuples of tri_shard, which make its
 * axes when the graph is opened. These are named "0", "1" and so on. */
void tri_mesh(tri_graph *g, const char *axes);
/* The axes of tri_mesh: their number; the name of the i-th and, unless null, its size. The mesh "4"
 * has one axis, named "". */
int tri_mesh_axes(const tri_graph *g);
const char *tri_mesh_axis(const tri_graph *g, int i, int64_t *size); /* null beyond the last */
/* How a tensor lies on the mesh in a run: "(model,-)", "(-,-) partial sum over model". A parameter
 * or input: how its first reader takes it. The tensor is named after the operator that made it, as
 * in `explain`, or is a parameter, state or input. Null with a message if a lane has no such tensor
 * (passes replace some) or there is no mesh; else to be freed. */
char *tri_layout_of(const tri_run *run, const char *tensor);

/* How to split the operators of the scopes or operators that match the pattern (as in
 * tri_recompute; null: the open scope): "out=model", or several, separated by commas,
 * "batch=data,out=model".
 *
 * Factors are named batch, rows, in, out, heads, vocab, features, seq, groups, height, width; of a
 * dense layer, `out` are the columns of its result and `in` those of its input. An operator takes
 * what concerns its own factors. Later calls win, and tri_options.strategy wins over all calls.
 *
 *     out=model     along the axis `model` the operator is split by its factor `out`
 *     out/3=model   the same; the places of `out` are 3 blocks, and each is split: for layers that
 *                   give query, key and value side by side
 *     out=-         not split by `out`, nor along any axis that no other strategy gives it
 *
 * It is a mistake if no operator has the factor, or if nothing at all uses an axis of the mesh. */
void tri_strategy(tri_graph *g, const char *pattern, const char *factors);

/* The same for the one operator that made t, as MindSpore's `shard` does: a tuple per input with a
 * number per dimension, the parts into which it is split: "(1,2),(2,1)". After "->" there may be a
 * tuple per output: "(1,2),(2,1)->(1,1)". Its numbers are 1, for a whole dimension, or the number
 * of parts that follows from the inputs. If the operator sums over a split dimension, one number
 * may be multiplied by the parts of that: "->(2,1)" gives each seat the sums of its own rows.
 * The seats are numbered as MindSpore numbers devices: in rows of the operator's own matrix, whose
 * dimensions are the factors in the order in which the tuples have them; left-over seats repeat
 * the work. The axes of a mesh given as a number are the coarsest that suit all tuples. Tuples win
 * over strategies. Returns t. */
tri_tensor *tri_shard(tri_tensor *t, const char *tuples);

/* How a tensor lies on the mesh: for each dimension the axis that splits it, or -. It may be a
 * parameter. Returns t. */
tri_tensor *tri_layout(tri_tensor *t, const char *layout);

/* ---- 16 Source lines for messages ---------------------------------------------------------- */

/* Each builder records its source line, so that a message can name the line of a mistake. The
 * macros do nothing else: (tri_add)(a, b) calls the function directly. */
#ifndef TRI_NO_LINES
#define tri_neg(x) (TRI_HERE, (tri_neg)(x))
#define tri_exp(x) (TRI_HERE, (tri_exp)(x))
#define tri_log(x) (TRI_HERE, (tri_log)(x))
#define tri_sqrt(x) (TRI_HERE, (tri_sqrt)(x))
#define tri_rsqrt(x) (TRI_HERE, (tri_rsqrt)(x))
#define tri_abs(x) (TRI_HERE, (tri_abs)(x))
#define tri_sign(x) (TRI_HERE, (tri_sign)(x))
#define tri_erf(x) (TRI_HERE, (tri_erf)(x))
#define tri_relu(x) (TRI_HERE, (tri_relu)(x))
#define tri_relu6(x) (TRI_HERE, (tri_relu6)(x))
#define tri_gelu(x) (TRI_HERE, (tri_gelu)(x))
#define tri_gelu_tanh(x) (TRI_HERE, (tri_gelu_tanh)(x))
#define tri_silu(x) (TRI_HERE, (tri_silu)(x))
#define tri_sigmoid(x) (TRI_HERE, (tri_sigmoid)(x))
#define tri_tanh(x) (TRI_HERE, (tri_tanh)(x))
#define tri_softplus(x) (TRI_HERE, (tri_softplus)(x))
#define tri_not(x) (TRI_HERE, (tri_not)(x))
#define tri_stop_gradient(x) (TRI_HERE, (tri_stop_gradient)(x))
#define tri_global_avg_pool(x) (TRI_HERE, (tri_global_avg_pool)(x))
#define tri_loss(x) (TRI_HERE, (tri_loss)(x))
#define tri_add(a, b) (TRI_HERE, (tri_add)(a, b))
#define tri_sub(a, b) (TRI_HERE, (tri_sub)(a, b))
#define tri_mul(a, b) (TRI_HERE, (tri_mul)(a, b))
#define tri_div(a, b) (TRI_HERE, (tri_div)(a, b))
#define tri_pow(a, b) (TRI_HERE, (tri_pow)(a, b))
#define tri_maximum(a, b) (TRI_HERE, (tri_maximum)(a, b))
#define tri_minimum(a, b) (TRI_HERE, (tri_minimum)(a, b))
#define tri_add_number(a, b) (TRI_HERE, (tri_add_number)(a, b))
#define tri_scale(a, b) (TRI_HERE, (tri_scale)(a, b))
#define tri_clip(x, low, high) (TRI_HERE, (tri_clip)(x, low, high))
#define tri_leaky_relu(x, slope) (TRI_HERE, (tri_leaky_relu)(x, slope))
#define tri_equal(a, b) (TRI_HERE, (tri_equal)(a, b))
#define tri_not_equal(a, b) (TRI_HERE, (tri_not_equal)(a, b))
#define tri_less(a, b) (TRI_HERE, (tri_less)(a, b))
#define tri_less_equal(a, b) (TRI_HERE, (tri_less_equal)(a, b))
#define tri_greater(a, b) (TRI_HERE, (tri_greater)(a, b))
#define tri_greater_equal(a, b) (TRI_HERE, (tri_greater_equal)(a, b))
#define tri_and(a, b) (TRI_HERE, (tri_and)(a, b))
#define tri_or(a, b) (TRI_HERE, (tri_or)(a, b))
#define tri_where(condition, a, b) (TRI_HERE, (tri_where)(condition, a, b))
#define tri_cast(x, type) (TRI_HERE, (tri_cast)(x, type))
#define tri_softmax(x, axis) (TRI_HERE, (tri_softmax)(x, axis))
#define tri_log_softmax(x, axis) (TRI_HERE, (tri_log_softmax)(x, axis))
#define tri_reshape(x, shape) (TRI_HERE, (tri_reshape)(x, shape))
#define tri_flatten(x, from_axis) (TRI_HERE, (tri_flatten)(x, from_axis))
#define tri_transpose(x, order) (TRI_HERE, (tri_transpose)(x, order))
#define tri_slice(x, axis, begin, end) (TRI_HERE, (tri_slice)(x, axis, begin, end))
#define tri_concat(...) (TRI_HERE, (tri_concat)(__VA_ARGS__))
#define tri_split(x, n, axis, parts) (TRI_HERE, (tri_split)(x, n, axis, parts))
#define tri_pad(x, before, after, value) (TRI_HERE, (tri_pad)(x, before, after, value))
#define tri_expand(x, shape) (TRI_HERE, (tri_expand)(x, shape))
#define tri_gather(table, ids) (TRI_HERE, (tri_gather)(table, ids))
#define tri_one_hot(ids, depth) (TRI_HERE, (tri_one_hot)(ids, depth))
#define tri_argmax(x, axis) (TRI_HERE, (tri_argmax)(x, axis))
#define tri_arange(x) (TRI_HERE, (tri_arange)(x))
#define tri_eye(x) (TRI_HERE, (tri_eye)(x))
#define tri_top_k(x, k, values, indices) (TRI_HERE, (tri_top_k)(x, k, values, indices))
#define tri_all_finite(...) (TRI_HERE, (tri_all_finite)(__VA_ARGS__))
#define tri_global_norm(...) (TRI_HERE, (tri_global_norm)(__VA_ARGS__))
#define tri_dropout(x, p) (TRI_HERE, (tri_dropout)(x, p))
#define tri_accuracy(logits, labels, k) (TRI_HERE, (tri_accuracy)(logits, labels, k))
#define tri_metric(scalar, name) (TRI_HERE, (tri_metric)(scalar, name))
#define tri_output(t, name) (TRI_HERE, (tri_output)(t, name))
#define tri_param(g, name, ...) (TRI_HERE, (tri_param)(g, name, __VA_ARGS__))
#define tri_state(g, name, ...) (TRI_HERE, (tri_state)(g, name, __VA_ARGS__))
#define tri_constant(g, value, type) (TRI_HERE, (tri_constant)(g, value, type))
#define tri_array(...) (TRI_HERE, (tri_array)(__VA_ARGS__))
#define tri_scalar(g, name) (TRI_HERE, (tri_scalar)(g, name))
#define tri_grad(...) (TRI_HERE, (tri_grad)(__VA_ARGS__))
#define tri_scale_loss(loss, loss_scale) (TRI_HERE, (tri_scale_loss)(loss, loss_scale))
#define tri_unscale(scaled, grads, n) (TRI_HERE, (tri_unscale)(scaled, grads, n))
#define tri_clip_by_norm(grads, n, limit) (TRI_HERE, (tri_clip_by_norm)(grads, n, limit))
#define tri_assign(target, value) (TRI_HERE, (tri_assign)(target, value))
#define tri_assign_if(target, value, condition) \
    (TRI_HERE, (tri_assign_if)(target, value, condition))
#define tri_apply(...) (TRI_HERE, (tri_apply)(__VA_ARGS__))
#define tri_mesh(g, axes) (TRI_HERE, (tri_mesh)(g, axes))
#define tri_strategy(g, pattern, factors) (TRI_HERE, (tri_strategy)(g, pattern, factors))
#define tri_shard(t, tuples) (TRI_HERE, (tri_shard)(t, tuples))
#define tri_layout(t, layout) (TRI_HERE, (tri_layout)(t, layout))
#define tri_stage(g, pattern, stage) (TRI_HERE, (tri_stage)(g, pattern, stage))
#endif

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
