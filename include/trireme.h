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
 *         return tri_close(run);
 *     }
 *
 * Build it with: cc prog.c $(pkg-config --cflags --libs trireme)
 *
 * The network is written once, as for one device and the whole batch. Shapes, names and defaults
 * are those that PyTorch users know: dense weights are [out, in], convolution weights
 * [out, in, height, width], images [batch, channel, height, width].
 *
 * Contents: 1 status  2 types  3 graph  4 sources  5 operators  6 cells (operators with
 * parameters)  7 losses and metrics  8 gradients and updates  9 data  10 options  11 running
 * 12 files  13 operators of your own  14 the zoo  15 where in your file
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

/* Notes the line of your file for messages; the macros of section 15 call it. */
void tri_here(const char *file, int line);
#define TRI_HERE tri_here(__FILE__, __LINE__)

#if defined __GNUC__
#define TRI_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#else
#define TRI_PRINTF(fmt, first)
#endif

/* ---- 1 Status ------------------------------------------------------------------------------ */

/* Every call that can fail returns one of these, or a null pointer; they are also the exit codes
 * of programs. The text of the last failure on the calling thread is tri_message(): what, where,
 * and what to do. Mistakes of the user never abort. */
typedef enum tri_status {
    TRI_OK = 0,
    TRI_FAILED = 1, /* a file, the memory, the machine, or data that is not what it should be */
    TRI_USAGE = 2,  /* the call, the network or an option is wrong */
    TRI_STOPPED = 3 /* of tri_train: asked to end (SIGINT, SIGTERM, SIGHUP) before all steps were done;
                       of tri_close too: nobody read its output any more. What can be saved has been */
} tri_status;

const char *tri_message(void);

/* ---- 2 Types and shapes -------------------------------------------------------------------- */

typedef enum tri_type { TRI_F32, TRI_BF16, TRI_F16, TRI_I32, TRI_I64, TRI_U8, TRI_BOOL } tri_type;

/* bf16 and fp16 are kept as their 16 bits; arithmetic on them is done in fp32. */
size_t tri_type_size(tri_type type);
const char *tri_type_name(tri_type type); /* "f32", "bf16", "f16", "i32", "i64", "u8", "bool" */

#define TRI_MAX_RANK 8

typedef struct tri_shape {
    int rank;
    int64_t dim[TRI_MAX_RANK];
} tri_shape;

/* TRI_SHAPE(n, 3, 32, 32); a scalar is TRI_SCALAR. */
#define TRI_SHAPE(...)                                                                      \
    ((tri_shape){(int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}})
#define TRI_SCALAR ((tri_shape){0, {0}})

int64_t tri_shape_count(const tri_shape *shape); /* elements; INT64_MAX if more */

/* The last argument of a builder and its options, which may be none, for the function behind it:
 * "x" becomes x, (T){.none_ = 0} and "x, .stride = 2" becomes x, (T){.stride = 2, .none_ = 0}. An
 * initialiser without any member, or a macro without an argument for its "...", is no standard C17. */
#define TRI_WITH(T, ...) TRI_FIRST_(__VA_ARGS__, ), (T){TRI_REST_(__VA_ARGS__, ) .none_ = 0}
#define TRI_FIRST_(x, ...) x
#define TRI_REST_(x, ...) __VA_ARGS__

/* ---- 3 Graph ------------------------------------------------------------------------------- */

/* A graph owns all its tensors and nodes; tri_graph_free, or tri_close of the run that took it,
 * frees them together. The first mistake made in building sticks to the graph and is told, with
 * operator, scope, shapes and place, when the graph is opened; until then every builder returns
 * some tensor, so that model code needs no checks.
 *
 * A graph is made again for other batches (a last, smaller one of an evaluation): shapes may hold
 * tri_batch, but numbers that depend on it must not be constants; tri_mean knows its divisor. */
typedef struct tri_graph tri_graph;
typedef struct tri_tensor tri_tensor;
typedef struct tri_node tri_node;

tri_graph *tri_graph_new(int64_t batch); /* samples of a step; 0: 64 */
void tri_graph_free(tri_graph *g);
/* Samples of several lengths: `g` is for the longest, `other` the same network (parameters by the same names;
 * outputs, too, and in the same order) for samples no longer than `length`; each of its inputs may have less of a
 * sample, from the front. A step takes samples of one network alone, each sample the shortest that holds it, so that
 * little is computed of padding; the data has to tell lengths (tri_data_lengths). Up to 7; `g` takes `other`. An
 * evaluation runs `g`. Of the zoo: "bert-base:seq=128/64/32". */
void tri_shorter(tri_graph *g, int64_t length, tri_graph *other);
int64_t tri_batch(const tri_graph *g);
tri_status tri_graph_status(const tri_graph *g); /* TRI_OK, or the first mistake (tri_message) */

/* The textual form: what `trireme dump` prints. It reads back to an equal graph. The caller frees
 * the text with free(). `name` stands in messages. */
char *tri_graph_print(const tri_graph *g);
tri_graph *tri_graph_parse(const char *text, size_t bytes, const char *name);
tri_graph *tri_graph_read(const char *path, int64_t batch); /* batch 0: the file's own */

/* Scopes prefix the names of parameters and operators: "layer1.0.conv1.weight". The name is
 * formatted like printf. */
void tri_push(tri_graph *g, const char *fmt, ...) TRI_PRINTF(2, 3);
void tri_pop(tri_graph *g);

tri_graph *tri_graph_of(const tri_tensor *t);
tri_type tri_type_of(const tri_tensor *t);
tri_shape tri_shape_of(const tri_tensor *t);
int tri_ndim(const tri_tensor *t);
int64_t tri_dim(const tri_tensor *t, int axis); /* negative axes count from the end */
const char *tri_name_of(const tri_tensor *t);

/* ---- 4 Sources ----------------------------------------------------------------------------- */

/* One field of the data. Dimension 0 is the sample; the whole batch is written here, however it is
 * cut later. below: the values lie in [0, below); integers may also be -100, which marks a place
 * to ignore. What the data brings is checked against it. 0: anything. */
typedef struct tri_input_options {
    int64_t below;
    char none_; /* of TRI_WITH */
} tri_input_options;
/* Options go by name, after the arguments: tri_conv2d(x, w, .stride = 2, .pad = 1). The functions
 * with a trailing underscore take them as a struct (for C++ and other languages). */
tri_tensor *tri_input_(tri_graph *g, const char *name, tri_type type, tri_shape shape,
                       tri_input_options o);
#define tri_input(g, name, type, ...) \
    (TRI_HERE, tri_input_(g, name, type, TRI_WITH(tri_input_options, __VA_ARGS__)))

/* How a parameter or state begins: drawn from (seed, name, element), so the order of construction
 * does not matter. fan-in and fan-out are taken from the shape as PyTorch does. Zero is zeros. */
typedef struct tri_init {
    enum {
        TRI_CONSTANT,         /* a: the value */
        TRI_UNIFORM,          /* a, b: the bounds */
        TRI_NORMAL,           /* a: mean, b: standard deviation */
        TRI_TRUNCATED_NORMAL, /* a: mean, b: standard deviation; cut at two of them */
        TRI_XAVIER_UNIFORM,   /* a: gain (0: 1) */
        TRI_XAVIER_NORMAL,
        TRI_HE_UNIFORM, /* a: gain (0: sqrt 2); fan-in */
        TRI_HE_NORMAL,
        TRI_HE_NORMAL_OUT /* the same with fan-out, as torchvision's residual networks */
    } kind;
    double a, b;
} tri_init;

/* A trainable parameter. Its full name is the scope's, a dot, and `name`. */
tri_tensor *tri_param(tri_graph *g, const char *name, tri_shape shape, tri_init init);

/* A value that lives from step to step and is changed by tri_assign alone: running statistics, the
 * optimizer's moments, a loss scale. */
tri_tensor *tri_state(tri_graph *g, const char *name, tri_type type, tri_shape shape,
                      tri_init init);

tri_tensor *tri_constant(tri_graph *g, double value, tri_type type);
tri_tensor *tri_array(tri_graph *g, tri_type type, tri_shape shape, const void *data); /* copied */

/* A scalar (f32) that the run sets before every step: "lr" follows the schedule unless tri_set_scalar
 * replaces that, "step" is the number of the step about to be done, from 1; any other is set with
 * tri_set_scalar. */
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

/* Comparisons give bool; the logical operators take it. */
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
    char none_; /* of TRI_WITH */
} tri_matmul_options;
tri_tensor *tri_matmul_(tri_tensor *a, tri_tensor *b, tri_matmul_options o);
#define tri_matmul(a, ...) \
    (TRI_HERE, tri_matmul_(a, TRI_WITH(tri_matmul_options, __VA_ARGS__)))

/* x [n, in, h, w], weight [out, in / groups, kh, kw]; 0 means the default (1; for padding 0; for
 * the _w fields the same as without). bias [out] or null. */
typedef struct tri_conv_options {
    int64_t stride, pad, dilation, groups;
    int64_t stride_w, dilation_w;
    int64_t pad_w; /* 0: as pad; for none beside a padded height, say -1 */
    tri_tensor *bias;
    char none_; /* of TRI_WITH */
} tri_conv_options;
tri_tensor *tri_conv2d_(tri_tensor *x, tri_tensor *weight, tri_conv_options o);
#define tri_conv2d(x, ...) \
    (TRI_HERE, tri_conv2d_(x, TRI_WITH(tri_conv_options, __VA_ARGS__)))

/* x [n, c, h, w]. stride 0 means the size, as in PyTorch. Maximum ignores padding; the average
 * counts it unless exclude_pad. */
typedef struct tri_pool_options {
    int64_t size, stride, pad;
    int64_t size_w, stride_w, pad_w; /* as in tri_conv_options */
    bool ceil_mode, exclude_pad;
    char none_; /* of TRI_WITH */
} tri_pool_options;
tri_tensor *tri_max_pool_(tri_tensor *x, tri_pool_options o);
#define tri_max_pool(...) \
    (TRI_HERE, tri_max_pool_(TRI_WITH(tri_pool_options, __VA_ARGS__)))
tri_tensor *tri_avg_pool_(tri_tensor *x, tri_pool_options o);
#define tri_avg_pool(...) \
    (TRI_HERE, tri_avg_pool_(TRI_WITH(tri_pool_options, __VA_ARGS__)))
tri_tensor *tri_global_avg_pool(tri_tensor *x); /* [n, c, h, w] to [n, c] */

/* Normalisation. x [n, c, ...]; gamma, beta, mean, var [c] (gamma, beta may be null). In training
 * the statistics are those of each lane (see section 10), or of `groups` equal parts of it, and
 * running mean and variance move by momentum (0: 0.1, PyTorch's meaning), towards the mean of all
 * lanes' and groups' statistics, where each counts the same whatever its samples; evaluation uses
 * the running ones. eps 0 means 1e-5. */
typedef struct tri_norm_options {
    double eps, momentum;
    int64_t groups; /* batch norm: statistics groups of a lane (0: 1) */
    int axes;       /* layer norm: the last `axes` dimensions are normalised (0: 1) */
    bool no_affine; /* cells only: no weight and bias */
    char none_; /* of TRI_WITH */
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

/* Shape. In tri_reshape one dimension may be -1. */
tri_tensor *tri_reshape(tri_tensor *x, tri_shape shape);
tri_tensor *tri_flatten(tri_tensor *x, int from_axis); /* from_axis and all after it become one */
tri_tensor *tri_transpose(tri_tensor *x, tri_shape order); /* TRI_SHAPE(0, 2, 1) */
tri_tensor *tri_slice(tri_tensor *x, int axis, int64_t begin, int64_t end);
tri_tensor *tri_concat(tri_tensor *const *parts, int n, int axis);
void tri_split(tri_tensor *x, int n, int axis, tri_tensor **parts); /* n equal parts */
tri_tensor *tri_pad(tri_tensor *x, tri_shape before, tri_shape after, double value);
tri_tensor *tri_expand(tri_tensor *x, tri_shape shape); /* broadcast to */
tri_tensor *tri_gather(tri_tensor *table, tri_tensor *ids); /* rows: [v, ...], ids -> ids + [...] */
tri_tensor *tri_one_hot(tri_tensor *ids, int64_t depth);    /* f32; ids outside give zeros */

/* Reductions. axes: TRI_SHAPE(0, 2); TRI_ALL for every one. */
#define TRI_ALL ((tri_shape){-1, {0}})
typedef struct tri_reduce_options {
    bool keep; /* keep reduced dimensions with length 1 */
    char none_; /* of TRI_WITH */
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
tri_tensor *tri_argmax(tri_tensor *x, int axis); /* i64; the first of equals */
void tri_top_k(tri_tensor *x, int64_t k, tri_tensor **values, tri_tensor **indices); /* last axis */
tri_tensor *tri_all_finite(tri_tensor *const *xs, int n);  /* bool scalar */
tri_tensor *tri_global_norm(tri_tensor *const *xs, int n); /* sqrt of the sum of all squares */

/* Zeroes each element with probability p in training and scales the others by 1 / (1 - p). What is
 * dropped depends on seed, step, sample, the operator's name and the element, and nothing else. */
tri_tensor *tri_dropout(tri_tensor *x, double p);

/* Scaled dot-product attention: softmax(scale q k' + mask) v for every head of every sample.
 * q [b, h, s, d], k [b, h, t, d], v [b, h, t, e] give [b, h, s, e]. With the heads side by side in
 * the last dimension no transposes are needed: q [b, s, heads d], k [b, t, heads d],
 * v [b, t, heads e] give [b, s, heads e]; and k and v may be null if q is [b, s, 3 heads d], the
 * three behind one another in every row. Memory grows with s + t, not with s t. */
typedef struct tri_attention_options {
    tri_tensor *mask; /* broadcasts to [b, h, s, t]; bool: true where a query may attend; else it is
                         added. A query that may attend to nothing gives 0 */
    bool causal;      /* query i attends to the keys up to i */
    double dropout;   /* of the softmax's result, as tri_dropout */
    double scale;     /* 0: 1 / sqrt(d) */
    int64_t heads;    /* where they lie in the last dimension (0: 1) */
    char none_; /* of TRI_WITH */
} tri_attention_options;
tri_tensor *tri_attention_(tri_tensor *q, tri_tensor *k, tri_tensor *v, tri_attention_options o);
#define tri_attention(q, k, ...) \
    (TRI_HERE, tri_attention_(q, k, TRI_WITH(tri_attention_options, __VA_ARGS__)))

/* ---- 6 Cells: operators with parameters of their own ---------------------------------------- */

/* Parameters are named `name`.weight and `name`.bias inside the current scope, initialised as
 * PyTorch's modules are; `init` overrides the weight's, `bias_init` the bias's. */
typedef struct tri_cell_options {
    bool no_bias;
    const tri_init *init, *bias_init;
    int64_t stride, pad, dilation, groups; /* convolution */
    char none_; /* of TRI_WITH */
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
    bool ignore;          /* cross-entropy: places whose label is ignore_index do not count, */
    int64_t ignore_index; /* neither in the sum nor in the mean's divisor */
    double delta;         /* Huber (0: 1) */
    char none_; /* of TRI_WITH */
} tri_loss_options;

/* logits [..., classes]; labels [...] of i32 or i64, or f32 probabilities [..., classes]. */
tri_tensor *tri_cross_entropy_(tri_tensor *logits, tri_tensor *labels, tri_loss_options o);
#define tri_cross_entropy(logits, ...) \
    (TRI_HERE, tri_cross_entropy_(logits, TRI_WITH(tri_loss_options, __VA_ARGS__)))
/* Shapes must be equal: a loss never broadcasts. */
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

/* Declares the scalar that training makes small; it is also the output "loss". */
void tri_loss(tri_tensor *scalar);
/* A named scalar for the progress line and metrics.jsonl. */
void tri_metric(tri_tensor *scalar, const char *name);
/* Any other result that tri_read should give. */
void tri_output(tri_tensor *t, const char *name);

/* ---- 8 Gradients and updates --------------------------------------------------------------- */

/* A graph with a loss and no updates of parameters gets the usual step when it is opened: gradients
 * of all parameters, clipping, the optimizer that the options name. To compose a step yourself,
 * call these while building; then the graph is taken as it is, and for its own batch only. */

int tri_param_count(const tri_graph *g);
tri_tensor *tri_param_at(const tri_graph *g, int i); /* in order of construction */
tri_tensor *tri_find(const tri_graph *g, const char *name); /* parameter, state, input, output */

/* out[i] becomes the derivative of the scalar `y` by wrt[i]: more graph, which can be
 * differentiated again. Where y does not depend on it: zeros. Evaluations and forward runs leave out
 * outputs that depend on a derivative. */
void tri_grad(tri_tensor *y, tri_tensor *const *wrt, int n, tri_tensor **out);

/* Scales all gradients by min(1, limit / norm), in place in the array; returns the norm. */
tri_tensor *tri_clip_by_norm(tri_tensor **grads, int n, double limit);

/* At the end of the step, target (a parameter or state) takes value; with a condition (a bool
 * scalar), only if it is true. All updates see the values from before the step. */
void tri_assign(tri_tensor *target, tri_tensor *value);
void tri_assign_if(tri_tensor *target, tri_tensor *value, tri_tensor *condition);

/* For a parameter w with gradient g and decay d, where |x| is the norm of the whole tensor:
 *
 *     sgd        w - lr (g + d w)
 *     momentum   m = momentum m + (g + d w), w - lr m
 *     nesterov   the same m, w - lr (g + d w + momentum m)
 *     adam       g + d w instead of g; m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2,
 *                a = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps), w - lr a
 *     adamw      w (1 - lr d) - lr a, where decay is no part of g
 *     lars       r = trust |w| / (|g| + d |w| + eps), m = momentum m + r (g + d w), w - lr m
 *     lamb       u = a + d w, r = |w| / |u|, w - lr r u
 *
 * In lars and lamb r is 1 where |w|, or |g| or |u|, is 0, and for parameters that are excluded:
 * those that do not decay, or would not if weight_decay were above 0. That is: rank below 2 unless
 * decay_all, and what tri_group_decay gives 0.
 *
 * In the structure 0 means the default; where 0 itself is legal, TRI_ZERO stands for it. */
#define TRI_ZERO (-1e-300)
typedef struct tri_optimizer {
    const char *name;    /* "sgd", "momentum", "nesterov", "adam", "adamw", "lars", "lamb" */
    double lr;           /* 0: the customary 0.01; adam, adamw, lamb 0.001; lars 1. One for all
                            updates of a graph */
    double momentum;     /* momentum, nesterov, lars. 0: 0.9; TRI_ZERO: 0 */
    double beta1, beta2; /* adam, adamw, lamb. 0: 0.9, 0.999; TRI_ZERO: 0 */
    double eps;          /* adam, adamw, lamb, lars. 0: 1e-8; lamb 1e-6; TRI_ZERO: 0 */
    double trust;        /* lars. 0: 0.001 */
    double weight_decay; /* d */
    bool decay_all;      /* otherwise norms and biases (rank below 2) do not decay */
    double clip_norm;    /* 0: none */
    bool gradients_sum;  /* gradients are the batch's mean times the number of lanes; else the batch's
                            mean, so that the number of lanes does not change the size of a step */
    const char *schedule; /* see tri_options */
    /* The loss is multiplied by a power of two before its gradients, which are then divided by it,
     * so that small ones are not lost in half types; an update whose loss or gradients are
     * not finite is left out, also at a scale of 1. Null or "off"; a number; or "dynamic:start=X,every=N" (65536, 2000): half of it after an
     * overflow, twice as much after N good steps. */
    const char *loss_scale;
} tri_optimizer;

/* tri_minimize adds the gradients of `loss` by all trainable parameters, clipped if clip_norm says
 * so, and their update; tri_update the update of n parameters by the gradients given, if the
 * condition (null: always) holds. Updates read tri_scalar "lr", which follows lr and schedule of
 * the options or, where these name none, of the update. */
void tri_minimize(tri_tensor *loss, tri_optimizer o);
void tri_update(tri_tensor *const *params, tri_tensor *const *grads, int n, tri_optimizer o,
                tri_tensor *condition);

/* Settings of all parameters whose full name matches the pattern (*, ?, [...]); later ones win. */
void tri_freeze(tri_graph *g, const char *pattern);
void tri_group_lr(tri_graph *g, const char *pattern, double factor);
void tri_group_decay(tri_graph *g, const char *pattern, double weight_decay);
/* Saves memory for time: what lies in the scopes that match the pattern ("layer1.?", "*.relu*"; null:
 * the scope that is open) is computed again in the backward pass instead of being kept, bit for bit
 * the same. What a scope hands on to others is kept; the shortest scope that matches counts as one.
 * A pattern that matches an operator's own name stands for it alone. */
void tri_recompute(tri_graph *g, const char *pattern);
/* What lies in the scopes that match the pattern (as in tri_recompute) is computed in this type,
 * whatever tri_options.amp says: TRI_F32, or all but norms and losses in TRI_BF16 or TRI_F16. */
void tri_precision(tri_graph *g, const char *pattern, tri_type type);
/* A second name for a parameter, for files written elsewhere: counted, hashed and saved once. */
void tri_tie(tri_tensor *param, const char *other_name);

/* ---- 9 Data -------------------------------------------------------------------------------- */

/* A data set is a number of samples, each with named fields. Inputs of the graph take the fields
 * of the same name; type and shape must fit. */
typedef struct tri_data tri_data;

#define TRI_MAX_FIELDS 64

typedef struct tri_field {
    const char *name;
    tri_type type;
    tri_shape shape; /* of one sample, without the batch dimension */
} tri_field;

/* "idx:DIR[,split=train|test][,mean=X][,std=X]": images and labels of the MNIST family.
 * "synthetic[:size=N]": made up; needs the graph.
 * "images:DIR", "tar:PATTERN": JPEG and PNG pictures, DIR/SPLIT/CLASS/NAME, or KEY.jpg beside KEY.cls.
 * "tar:-,samples=N", "tar:pipe:COMMAND,samples=N": such archives through a pipe; sequential.
 *   All other files that the library opens have to be regular files.
 * "cifar:DIR": CIFAR-10 and CIFAR-100 in their binary form. These have "image" f32[3,size,size] and
 *   "label" i64[]; man trireme, under --data, has their keys. A file that cannot be read is told, and
 *   another sample stands for it, up to max-bad of them.
 * "npy:FILE;FILE": a field for each file of numpy.save, named as the file is.
 * "text:FILE[:FILE...][,tokenizer=KIND][,for=lm|bert][,length=N][,predictions=N]": texts as tokens. A
 * FILE may be a pattern ("books/part?.txt"). KIND: "bytes" (the default), "bert:FILE", "bert-cased:FILE",
 * "gpt2:DIR". The fields are i64 and, where nothing else is said, [length].
 *   for=lm: blocks of the text, one behind the other: "input_ids", "labels" (the same). Size: the number
 *     of whole blocks.
 *   for=bert: "[CLS] A [SEP] B [SEP]", masked: "input_ids", "token_type_ids", "attention_mask", "labels"
 *     (-100 but where masked), "masked_lm_positions", "masked_lm_ids", "masked_lm_weights" (f32), all
 *     three [predictions], "next_sentence_label" (a scalar; 1: B does not follow A). Size: how many
 *     samples the documents' sentences fill. Sample i depends on nothing but seed, epoch and i.
 * What is not given follows from the graph's inputs: bert if there are "token_type_ids". */
tri_data *tri_data_open(const char *spec, const tri_graph *g, uint64_t seed);

/* Your own: fill writes sample `index` of `epoch`, one pointer per field. It is called in any order
 * and must give the same for the same arguments, unless the source declares itself sequential: then
 * it is called exactly once a sample, in order, and can be neither shuffled nor drawn by others.
 * A return other than 0 fails the step, naming the sample. */
typedef int tri_fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out);
tri_data *tri_data_new(const char *name, int64_t size, const tri_field *fields, int n,
                       tri_fill *fill, void *user, bool sequential);
/* Says that its fill function may be called by several threads at a time (of a sequential one: by one), also
 * beside your own code between two steps. Only then are its samples read ahead. */
void tri_data_concurrent(tri_data *d);
int64_t tri_data_size(const tri_data *d);
int tri_data_fields(const tri_data *d, const tri_field **fields);
tri_status tri_data_get(tri_data *d, int64_t index, int64_t epoch, uint64_t seed,
                        void *const *out);
void tri_data_free(tri_data *d);

/* Of your own data: which of `classes` classes a sample has, quickly and without the sample, as samplers that are
 * stratified or weigh classes need it. `user` is that of tri_data_new. */
void tri_data_labels(tri_data *d, int64_t classes, int64_t (*label)(const void *user, int64_t index));
/* Of your own data: how long a sample is at most, in any epoch, quickly and without the sample; for networks with
 * others for shorter ones (tri_shorter). Its fields are filled to their full size all the same. */
void tri_data_lengths(tri_data *d, int64_t (*length)(const void *user, int64_t index));

/* Data over other data, which they take, also on failure; of null they make null, so that calls can stand within
 * one another: tri_data_repeat(tri_data_take(tri_data_open(...), 0, 1000), 3). */
tri_data *tri_data_take(tri_data *d, int64_t first, int64_t n); /* n samples from `first` on */
tri_data *tri_data_subset(tri_data *d, const int64_t *index, int64_t n); /* those listed */
/* An epoch of it has `times` epochs of the other, one behind the other. */
tri_data *tri_data_repeat(tri_data *d, int64_t times);
/* Samples as `map` makes them of the other's: from `in`, a pointer a field, to `out`, which has the fields given.
 * Where none are given (null, 0) they are the other's, and `in` is `out`. What it draws at random it should
 * draw by seed, epoch and index, as it is called in any order; by one thread at a time, unless tri_data_concurrent
 * says otherwise of the mapped data. Other than 0 fails the step. */
typedef int tri_map(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *in, void *const *out);
tri_data *tri_data_map(tri_data *d, const tri_field *fields, int n, tri_map *map, void *user);
/* Of data that is sequential: `window` samples are kept ready, and one of them is drawn each time, by the seed. */
tri_data *tri_data_shuffle(tri_data *d, int64_t window);

/* ---- 10 Options ---------------------------------------------------------------------------- */

/* What `trireme train` takes, for your own program. Zero means the default everywhere. */
typedef struct tri_options {
    int64_t batch;  /* samples of a step, over all workers (those the graph was made for) */
    int64_t lanes;  /* parts of a step, the unit of scheduling; 0: chosen from model and batch */
    int64_t memory_limit; /* bytes; a run that needs more is refused before it begins. 0: what the
                             machine and the cgroup can give */
    int64_t threads; /* that work on a step; they change no bit. 0: one for each core */
    int64_t steps;  /* or epochs */
    int64_t epochs; /* (1) */
    uint64_t seed;
    const char *device; /* "cpu" or "ref" */
    const char *data;   /* see tri_data_open; the default, "synthetic", is announced; "feed": tri_feed */
    const char *tokenizer; /* of data "text:..." that names none: "bytes" (the default), "bert:FILE",
                              "bert-cased:FILE", "gpt2:DIR" */
    /* Threads of each worker that read the next step's samples while this one's are in use: what is read ahead
     * takes its share of the cores, and changes no bit. 0: one, if samples take their time; -1: none. See
     * tri_data_concurrent. */
    int64_t data_threads;
    tri_data *source;   /* or a source of your own, which the run then owns */
    bool no_shuffle;
    /* In which order samples come, as a function of seed, epoch and batch alone:
     *   "shuffled"    (the default) another order in every epoch
     *   "sequential"  (as no_shuffle) as the data has them
     *   "stratified"  every lane of every step has its share of each class, rounded up or down, and every
     *                 sample comes once in an epoch; the data has to tell classes (tri_data_labels)
     *   "weighted:balanced", "weighted:classes=X/X...", "weighted:FILE"  drawn with replacement: each class as
     *                 likely as every other; by the weight of its class; by a file with a weight for each sample */
    const char *sampler;
    const char *subset; /* of the data these samples: "FIRST:END", or a file with their numbers */
    /* "K/N": every N-th sample of the order, from the K-th (0 to N - 1) on, where N programs that know nothing
     * of one another train on one set of data. Shares that come out unequal begin anew, or lose a sample: "K/N,drop".
     * Workers of one run need none. */
    const char *share;
    /* The rest of an epoch that fills no step: "drop" (the default) leaves it out, "pad" makes a step of it, filled
     * up with samples from the epoch's beginning that do not count. For that the loss has to leave them out:
     * tri_cross_entropy with .ignore and .ignore_index = -100, which is what all their labels are set to: the zoo's
     * gpt2 does, bert does not. Norms over the batch do see them. "keep" makes a smaller step of it, with a mean over its own samples, of any network that
     * does not bring its own updates; outputs by the sample have as many rows then. */
    const char *tail;
    int64_t sink_size; /* callbacks of a step come every so many steps, and behind the last one (1) */
    tri_optimizer optimizer; /* name "sgd"; schedule: "constant", "step:every=N,factor=X",
                                "poly:power=X,end=X", "cosine:end=X", each with warmup=N steps */
    /* Mixed precision. "O0": f32. "O1": products of matrices and convolutions in a half type,
     * exponentials, sums and losses in f32, the rest as its inputs are. "O2": all of the network
     * but the weights and statistics of norms, and the loss. "O3": the loss too. Parameters and what
     * updates compute of them are f32 in any case. */
    const char *amp;
    const char *amp_type; /* "bf16" (the default) or "f16", with which loss_scale is "dynamic" */
    /* "auto" (the default): Winograd's way for convolutions where the device has it and it pays, which
     * rounds otherwise; "direct": never. */
    const char *conv;
    const char *out;  /* directory for metrics.jsonl; null: none (the program: "run"; with several
                         workers: that of their agent) */
    int64_t metrics_every; /* steps of a row of metrics.jsonl, which holds their means; 0: a row for each step,
                              at most 100 a second */
    const char *load; /* a safetensors file, or a directory of checkpoints */
    bool partial;     /* of `load` what fits is taken, and the rest is told; else all must fit */
    const char *save;
    /* Checkpoints, in a directory; the newest `keep` of them stay (0: all), and those of steps that keep_every
     * divides. A step waits only until what is saved has been copied. At the end of the run, also one that is
     * asked to end, its last step is saved. resume: goes on from the newest that is whole, if there is one,
     * as if the run had never ended; else there must be none in the directory. */
    const char *ckpt;
    /* A file with a key of 32 bytes, raw or as hexadecimal digits (`trireme ckpt key FILE` makes one): checkpoints
     * are sealed with it, encrypted and authenticated, and `load` takes a sealed file. */
    const char *ckpt_key;
    int64_t save_every;  /* steps */
    double save_minutes; /* or minutes */
    int64_t keep, keep_every;
    bool resume;
    /* Evaluation while training, as tri_evaluate does it: of this data, behind every epoch, or every eval_every
     * steps, and behind the last step. Results are told in the progress, in metrics.jsonl, and by tri_result. best:
     * by which result evaluations are compared, "top1:max" or "loss:min" (of a name alone the most is best, of the
     * loss the least; the default is the loss); where it is given, the checkpoint of the best one is kept, whatever
     * `keep` says. early_stop: the run ends, well, when so many evaluations in succession were not better than the
     * best before by more than early_stop_change. */
    const char *eval_data;
    tri_data *eval_source; /* or a source of your own, which the run then owns */
    int64_t eval_every;    /* 0: every epoch */
    const char *best;
    int64_t early_stop; /* 0: never */
    double early_stop_change;
    double max_time; /* seconds, after which the run ends behind a step as if it were asked to; 0: none */
    /* A command for the shell, which is started when something happens: save-failure, end; and, of several workers,
     * stall and death. TRIREME_EVENT, TRIREME_MESSAGE, TRIREME_STEP and others in its environment say what (man
     * trireme, --on-event). Of several workers their agent starts it. */
    const char *on_event;
    /* A loss that is NaN or infinite: "stop" (the default) ends the run with a message that names the step, the lane
     * and the operator where the first NaN or infinity begins, and nothing of that step counts; "warn" prints a line
     * when it begins. With a loss scale, updates that are skipped are no such case, but 100 in succession are. A
     * checkpoint with a parameter that is not finite is never written; with "stop" it ends the run. */
    const char *on_nan;
    const char *parallel;  /* "data" (the default): lanes are shared among workers; other ways to split
                              a network are not there yet */
    const char *recompute; /* as by tri_recompute: patterns with commas between them */
    const char *passes; /* passes over the graph left out: "-cse,-fold"; "-all,+cse": all but one */
    bool forward; /* no training: outputs only, operators in evaluation mode */
    bool quiet;   /* no progress */
} tri_options;

tri_options tri_options_default(void);
/* Takes the options it knows out of argv and leaves the rest, for the program to read or to refuse. On a mistake, and
 * on an option that is of `trireme run` (-n, --spares), it prints what would be right and returns TRI_USAGE; on --help
 * it prints the options and exits. Options of your own by such a name are taken out of argv before. */
tri_status tri_options_parse(tri_options *o, int *argc, char **argv);
const char *tri_options_help(void);

/* ---- 11 Running ---------------------------------------------------------------------------- */

typedef struct tri_run tri_run;

/* Compiles the graph and takes it (also on failure). Null on failure: see tri_message.
 * While a run is open, a crash (SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP) for which
 * the program has no handler is reported to stderr, with what the run was at and a trace of the calls;
 * then the process dies of it as it would without. tri_close restores what tri_open has changed. */
tri_run *tri_open(tri_graph *g, const tri_options *o);

/* Does one step; false when all are done or one failed. A null run gives false.
 * While a run that trains is open, a write to a closed pipe fails and does not kill (SIGPIPE), unless the
 * program handles that signal itself. After one to stdout or stderr tri_step ends the run: it gives false,
 * and tri_close saves what it saves and returns TRI_STOPPED. */
bool tri_step(tri_run *run);
/* Ends the run, frees it and its graph; returns the first failure, also of tri_open if run is
 * null, so that `return tri_close(run)` ends a main function; the message has then been printed. */
tri_status tri_close(tri_run *run);

/* Which of how many workers this is: 0 and 1 without `trireme run`. Nothing has to depend on it: steps are
 * shared without it. A spare's rank is -1. */
int tri_rank(const tri_run *run);
int tri_size(const tri_run *run);

int64_t tri_step_number(const tri_run *run); /* steps done */
int64_t tri_step_total(const tri_run *run);
int64_t tri_epoch(const tri_run *run);
double tri_value(const tri_run *run, const char *name); /* a scalar output; NaN if unknown */
/* Sets a tri_scalar for all steps to come. "lr" takes the place of the schedule, to which NaN returns; the worker that
 * reports next and a run that resumes keep it. A name that the network does not have, and "step" and "lanes", which are
 * the run's own, fail the run. */
void tri_set_scalar(tri_run *run, const char *name, double value);
tri_status tri_run_status(const tri_run *run);

/* Whole tensors by name: outputs can be read, parameters and states read and written. bytes must be
 * the exact size. Where several workers run the program, each of them comes here: what the one that
 * reports writes counts, before the first step or between two, and what is written by one that comes later
 * does not. If it dies meanwhile, the worker that reports next does the same once more: so write what does
 * not depend on what was there (not "half of it"). The same holds for tri_load and tri_set_scalar. */
tri_status tri_read(const tri_run *run, const char *name, void *data, size_t bytes);
tri_status tri_write(tri_run *run, const char *name, const void *data, size_t bytes);

/* Copies the whole batch of an input. With tri_options.forward: feed every input, run, read outputs.
 *     tri_feed(run, "image", pixels, sizeof pixels);
 *     tri_forward(run);
 *     tri_read(run, "logits", scores, sizeof scores);
 *
 * A run that trains is fed with tri_options.data = "feed", in a loop of your own, for so many `steps`:
 *     do {
 *         make_batch(tri_step_number(run), pixels, labels);
 *         tri_feed(run, "image", pixels, sizeof pixels);
 *         tri_feed(run, "label", labels, sizeof labels);
 *     } while (tri_step(run));
 * The contract: the batch follows from tri_step_number(run), and from nothing that the loop counts or keeps itself.
 * Then 1 or more workers, deaths of any of them and a resume give the same weights: of several workers each feeds, and
 * only the rows of the one that reports count; if it dies, the worker that reports next returns once more from the
 * latest step and feeds again; and a run that resumes begins with the number of its checkpoint. What tri_set_scalar and
 * tri_write set should follow from the number in the same way, and be set before the step: a checkpoint is written
 * within tri_step, before the lines after it.
 *
 * tri_step fails, and names the input, if one that the network uses has not been fed since the step before, or if a
 * value is out of its range (tri_input). tri_feed refuses an input that is unused, and a run with other data. Data
 * "feed" knows no epochs and no order of samples: tri_train, epochs, sampler, subset, share, tail, data_threads,
 * tokenizer and tri_shorter are refused with it. */
tri_status tri_feed(tri_run *run, const char *input, const void *data, size_t bytes);
tri_status tri_forward(tri_run *run);

/* The mean of every scalar output over a data set, in evaluation mode, with the run's parameters.
 * Outputs that depend on gradients (tri_grad) have no value there.
 * Batches are weighted by their samples, so every sample counts once; where a loss ignores labels,
 * the places of a batch share the weight of its samples. Read the results with tri_result: NaN where it
 * failed, which its status and tri_message tell; the run goes on, and tri_close does not tell of it. TRI_STOPPED:
 * it was broken off, for the run has been asked to end. */
tri_status tri_evaluate(tri_run *run, tri_data *data);
double tri_result(const tri_run *run, const char *name);

/* SHA-256 in hexadecimal. weights: all parameters in name order as plain fp32; state: also running
 * statistics, optimizer state, loss scale and data cursor. */
void tri_hash(const tri_run *run, char weights[65], char state[65]);

/* What the usual loop calls back; either function may be null. One that returns other than 0 ends the run. Of
 * several workers one alone calls back, at least once for each step: if it dies meanwhile, another does so again.
 * Checkpoints and evaluations that are due behind a step have been made by then. */
typedef struct tri_callback {
    int (*step)(tri_run *run, void *user);
    int (*epoch)(tri_run *run, void *user);
    void *user;
    int64_t every; /* `step` is called behind the steps that it divides (0: all, or by tri_options.sink_size) */
    const struct tri_ready *ready; /* of those below */
    const void *settings;
} tri_callback;

/* The usual loop in one call, with progress, metrics and the final line. `callbacks` may be null, or is a list,
 * ended by an empty one; they are called in its order:
 *
 *     tri_train(g, &o, TRI_CALLBACKS(tri_loss_monitor(100), tri_time_monitor(100),
 *                                    tri_saver(.directory = "ckpt", .every = 1000, .keep = 10),
 *                                    tri_evaluator(.data = "images:pets,split=val", .best = "top1"),
 *                                    {.epoch = after_epoch, .user = &mine})); */
tri_status tri_train(tri_graph *g, const tri_options *o, const tri_callback *callbacks);
#define TRI_CALLBACKS(...) ((const tri_callback[]){__VA_ARGS__, {0}})

/* A line on stderr every so many steps: the loss and all metrics of that step; how long a step took, on average
 * since the line before, and behind each epoch how long that was, without evaluations. 0: behind epochs alone. */
tri_callback tri_loss_monitor(int64_t every);
tri_callback tri_time_monitor(int64_t every);

/* Checkpoints and evaluations without options of the command line, which count where they are given. */
typedef struct tri_saver_options {
    const char *directory, *prefix; /* prefix: of a folder of this run's own in it, DIRECTORY/PREFIX */
    int64_t every;                  /* steps */
    double minutes;
    int64_t keep, keep_every;
    bool resume;
} tri_saver_options;
tri_callback tri_saver_(const tri_saver_options *o); /* they are read when the run begins */
#define tri_saver(...) tri_saver_(&(const tri_saver_options){__VA_ARGS__})

typedef struct tri_evaluator_options {
    const char *data;
    tri_data *source; /* or a source of your own, which the run then owns */
    int64_t every;    /* steps; 0: every epoch */
    const char *best;
    int64_t early_stop;
    double early_stop_change;
} tri_evaluator_options;
tri_callback tri_evaluator_(const tri_evaluator_options *o);
#define tri_evaluator(...) tri_evaluator_(&(const tri_evaluator_options){__VA_ARGS__})

/* ---- 12 Files ------------------------------------------------------------------------------ */

/* safetensors with the parameters and running statistics under PyTorch's names. Loading is strict, unless
 * tri_options.partial says otherwise: missing, unexpected and mis-shaped tensors are listed. Names with a
 * prefix more or less ("module.", "model.", "bert.", "transformer."), and gamma, beta, moving_mean and
 * moving_variance of others are understood; num_batches_tracked and the like are passed over. Of a directory of
 * checkpoints the newest that is whole is loaded, and it is said which. F64 is rounded to f32. The file of a
 * network that tri_model_open made by a name of the zoo has its specification as metadata "trireme.model", and
 * the options that prepared its data as "trireme.data". */
tri_status tri_save(const tri_run *run, const char *path);
tri_status tri_load(tri_run *run, const char *path);

/* ---- 13 Operators of your own -------------------------------------------------------------- */

typedef struct tri_spec {
    tri_type type;
    tri_shape shape;
} tri_spec;

#define TRI_MAX_OUTPUTS 16

/* An attribute's value; which member counts follows from the row's schema. */
typedef struct tri_attr {
    const char *name;
    int64_t i; /* int; type; bool */
    double f;  /* float */
    tri_shape list; /* ints, shape */
    const char *text;
} tri_attr;

/* What a kernel is given. Tensors are contiguous, row-major. */
typedef struct tri_call {
    const tri_node *node;
    const void *const *in;
    void *const *out;
    void *state;         /* what the kernel's preparation made, if any */
    uint64_t seed;
    int64_t step;
    int64_t first;       /* where element 0 of output 0 stands in the tensor of the whole batch:
                            random kernels key their numbers by first + i */
    int64_t part;        /* which of the kernel's parts; a row's own kernel has one */
    void *scratch;       /* memory for the time of the call, if the kernel asked for it */
    void *shared;        /* the same, which all parts of the kernel see */
    struct tri_fault *fault; /* tri_call_fail writes here */
} tri_call;

typedef void tri_kernel(const tri_call *call);

/* One operator, one row.
 *
 * attributes  what a node of it carries: "stride:ints=1,1 pad:ints=0,0 axis:int=-1 p:float
 *             mode:text=same shape:shape to:type"; without "=" it must be given. A `shape` is the
 *             output's shape, which is cut where the output is.
 * infer       checks the inputs and writes the specs of the outputs; returns their number, or 0
 *             after tri_op_error.
 * gradient    given the node and the derivative by each output (null where none flows), sets the
 *             derivative by each input that has one (dx starts as nulls). tri_grad_none: nothing
 *             flows back; tri_grad_refused: not provided, an error that names the operator.
 * factors     how it may be split, like einsum: "mk,kn->mn". A letter for each dimension; capitals
 *             may not be split; "1" is a dimension of length 1; "..." stands for leading dimensions,
 *             broadcast; "(ns)" for one dimension made of two factors, the outer first. A letter
 *             missing from an output is summed over. Null and no factor_fn: never split, but over
 *             dimension 0 of everything if `samplewise`.
 * factor_fn   the same, where it depends on the node: writes the string.
 * linear      which sums may be taken after it rather than before: TRI_LINEAR_JOINTLY in all inputs
 *             at once (add), TRI_LINEAR_EACH in any one of them (mul). Lanes use the former; the
 *             latter is for splits inside a lane.
 * examples    inputs to test it with, "f32[2,3]@0.5:2, i64[4]@0:9 {axis=1}"; @low:high is the
 *             range from which values are drawn. At least one.
 * flops       arithmetic of a node, for planning; null: one per output element.
 * count       what a mean divides by, frozen into the attribute "count" when the batch is cut.
 * precision   what mixed precision (tri_options.amp) makes of a node whose inputs are f32 or half:
 *             TRI_PRECISION_FULL    f32, also where nothing is said
 *             TRI_PRECISION_ANY     inputs as they come: it computes in f32 whatever they are
 *             TRI_PRECISION_WIDE    f32 in O1, half from O2 on: exponentials, sums
 *             TRI_PRECISION_FOLLOW  half where its inputs are, and from O2 on
 *             TRI_PRECISION_LOW     half: products of matrices, convolution
 * in_f32      bit i: input i is f32 in any case (the weights of a norm)
 * kernel      runs where the backend has no kernel of its own and memory is the host's. */
typedef struct tri_op {
    const char *name;
    int inputs, inputs_max; /* inputs_max 0: exactly `inputs`; -1: any number from `inputs` up */
    const char *attributes;
    int (*infer)(const tri_node *n, tri_spec *out);
    void (*gradient)(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx);
    const char *factors;
    void (*factor_fn)(const tri_node *n, char *text, size_t bytes);
    enum { TRI_NOT_LINEAR, TRI_LINEAR_JOINTLY, TRI_LINEAR_EACH } linear;
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
    bool samplewise;
    unsigned shape_only; /* bit i: of input i only the shape is used, its contents never */
    bool random;         /* the result depends on seed and step besides its inputs. It is computed
                            again by tri_recompute only if the row has an attribute "key:text=":
                            the name to key numbers by, where it is not empty */
} tri_op;

/* Registers a row, which must live as long as the process; before any graph uses it. */
tri_status tri_register(const tri_op *op);
const tri_op *tri_op_find(const char *name);

/* Adds a node. Attributes not given take their defaults. Returns output 0. */
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
/* Tells a mistake in the node being inferred; returns 0. */
int tri_op_error(const tri_node *n, const char *fmt, ...) TRI_PRINTF(2, 3);
/* Fails the step from inside a kernel: "label 12 at element 77 is not below 10". */
void tri_call_fail(const tri_call *c, const char *fmt, ...) TRI_PRINTF(2, 3);

void tri_grad_none(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx);
void tri_grad_refused(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx);

/* Runs the row's examples: against finite differences, split against unsplit, device against
 * reference. TRI_OK, or what differed. */
tri_status tri_op_check(const tri_op *op, const char *device);

/* ---- 14 The zoo ---------------------------------------------------------------------------- */

/* A model in a shared object exports `void tri_model(tri_graph *g, tri_args *args)`. The arguments
 * are what stands behind the colon in "resnet50:classes=100"; one that nobody asked for is an
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

/* ---- 15 Where in your file ----------------------------------------------------------------- */

/* So that a message can name the line of the mistake, each builder notes it. The macros hide
 * nothing else: (tri_add)(a, b) calls the function alone. */
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
#define tri_clip_by_norm(grads, n, limit) (TRI_HERE, (tri_clip_by_norm)(grads, n, limit))
#define tri_assign(target, value) (TRI_HERE, (tri_assign)(target, value))
#define tri_assign_if(target, value, condition) \
    (TRI_HERE, (tri_assign_if)(target, value, condition))
#define tri_apply(...) (TRI_HERE, (tri_apply)(__VA_ARGS__))
#endif

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
