/* SPDX-License-Identifier: Apache-2.0
 * matmul: by oneDNN, which sees transposes as strides; tiny ones by a loop of our own, for which a
 * call into oneDNN would cost more than the work. */
#include "dev/cpu/cpu.h"
#include "dev/cpu/dnnl_glue.h"
#include "dev/cpu/walk.h"

#define TINY 4096 /* multiplications */
#define SHORT 8   /* elements of a row */

/* Matrices over leading dimensions: tensors 0, 1, 2 of the walk are a, b and y. */
struct sizes {
    struct walk lead;
    int64_t m, k, n;
    int64_t row_a, column_a, row_b, column_b; /* strides */
};

static tri_shape leading(const tri_spec *s) {
    tri_shape lead = s->shape;
    lead.rank -= 2;
    return lead;
}

/* Strides of the leading dimensions of a tensor whose matrices have `size` elements. */
static void lead_strides(struct walk *w, int k, const tri_spec *s, int64_t size) {
    tri_shape lead = leading(s);
    walk_broadcast(w, k, &lead);
    for (int d = 0; d < w->rank; d++) w->stride[k][d] *= size;
}

static struct sizes sizes_of(const tri_node *node) {
    const tri_spec *a = cpu_in(node, 0), *b = cpu_in(node, 1), *y = cpu_out(node, 0);
    const int64_t *da = a->shape.dim + a->shape.rank - 2, *db = b->shape.dim + b->shape.rank - 2;
    bool ta = tri_attr_int(node, "trans_a"), tb = tri_attr_int(node, "trans_b");
    tri_shape lead = leading(y);
    struct sizes s = {.lead = walk_over(&lead, 3), .m = da[ta], .k = da[!ta], .n = db[!tb],
                      .row_a = ta ? 1 : da[1], .column_a = ta ? da[1] : 1,
                      .row_b = tb ? 1 : db[1], .column_b = tb ? db[1] : 1};
    lead_strides(&s.lead, 0, a, s.m * s.k);
    lead_strides(&s.lead, 1, b, s.k * s.n);
    lead_strides(&s.lead, 2, y, s.m * s.n);
    walk_simplify(&s.lead);
    /* One b for all rows of all a: one large matrix. */
    int last = s.lead.rank - 1;
    if (last >= 0 && !ta && !s.lead.stride[1][last] && s.lead.stride[0][last] == s.m * s.k) {
        s.m *= s.lead.dim[last];
        walk_remove(&s.lead, last);
    }
    return s;
}

/* ---- tiny ---- */

/* Every element of y is summed over k in order, here one after the other: rows of y are too short for
 * vectors. */
static void tiny_dots(const struct sizes *s, const float *a, const float *b, float *y) {
    for (int64_t i = 0; i < s->m; i++, a += s->row_a)
        for (int64_t j = 0; j < s->n; j++) {
            const float *x = a, *z = b + j * s->column_b;
            float sum = *x * *z;
            for (int64_t k = 1; k < s->k; k++) sum += *(x += s->column_a) * *(z += s->row_b);
            *y++ = sum;
        }
}

CLONES static void tiny_matrix(const struct sizes *s, const float *a, const float *b, float *y) {
    for (int64_t i = 0; i < s->m; i++, y += s->n) {
        for (int64_t j = 0; j < s->n; j++) y[j] = a[i * s->row_a] * b[j * s->column_b];
        for (int64_t k = 1; k < s->k; k++) {
            float v = a[i * s->row_a + k * s->column_a];
            const float *row = b + k * s->row_b;
            for (int64_t j = 0; j < s->n; j++) y[j] += v * row[j * s->column_b];
        }
    }
}

static void tiny(const struct sizes *s, const tri_call *c) {
    struct place at = {0};
    for (int64_t left = walk_count(&s->lead); left; left--) {
        (s->n < SHORT ? tiny_dots : tiny_matrix)(s, (const float *)c->in[0] + at.offset[0],
                                                 (const float *)c->in[1] + at.offset[1],
                                                 (float *)c->out[0] + at.offset[2]);
        walk_next(&s->lead, s->lead.rank, &at);
    }
}

/* ---- oneDNN ---- */

/* Tensor k of the leading walk, with its matrices of rows x columns behind. */
static struct dnnl_view view_of(const struct sizes *s, int k, int64_t rows, int64_t columns,
                                int64_t row, int64_t column) {
    struct dnnl_view v = {.rank = s->lead.rank + 2};
    for (int d = 0; d < s->lead.rank; d++) {
        bool repeated = s->lead.stride[k][d] == 0;
        v.dim[d] = repeated ? 1 : s->lead.dim[d];
        v.stride[d] = repeated ? rows * columns : s->lead.stride[k][d];
    }
    v.dim[v.rank - 2] = rows;
    v.dim[v.rank - 1] = columns;
    v.stride[v.rank - 2] = row;
    v.stride[v.rank - 1] = column;
    return v;
}

struct state {
    struct sizes sizes;   /* of a tiny one */
    struct dnnl_job *job; /* of others */
};

static tri_status prepare(const tri_node *n, void **state) {
    tri_status status = cpu_state(n, sizeof(struct state), state);
    if (status) return status;
    struct state *st = *state;
    struct sizes s = st->sizes = sizes_of(n);
    if (cpu_out(n, 0)->type == TRI_F32 && walk_count(&s.lead) * s.m * s.k * s.n <= TINY)
        return TRI_OK;
    struct dnnl_view a = view_of(&s, 0, s.m, s.k, s.row_a, s.column_a);
    struct dnnl_view b = view_of(&s, 1, s.k, s.n, s.row_b, s.column_b);
    struct dnnl_view y = view_of(&s, 2, s.m, s.n, s.n, 1);
    status = dnnl_glue_matmul(n, &a, &b, &y, &st->job);
    if (status) free(st);
    return status;
}

static void run(const tri_call *c) {
    const struct state *st = c->state;
    if (st->job)
        dnnl_glue_run(st->job, c);
    else
        tiny(&st->sizes, c);
}

static void plan(const tri_node *n, struct kernel *k) {
    const struct state *st = k->state;
    (void)n;
    if (st->job) k->scratch = dnnl_glue_scratch(st->job);
}

static void release(void *state) {
    dnnl_glue_release(((struct state *)state)->job);
    free(state);
}

const struct dev_row cpu_matmul[] = {
    {.op = "matmul", .run = run, .supports = cpu_dnnl_supports, .prepare = prepare,
     .release = release, .plan = plan},
    {0},
};

const char *cpu_dnnl_supports(const tri_node *n) {
    static const struct {
        const char *op, *f16, *bf16;
    } texts[] = {
#define TEXTS(op)                                                                           \
    {op, "f16 " op " is not supported on cpu; cast to f32 or bf16",                          \
     "bf16 " op " needs AVX-512, which this machine lacks; cast to f32"}
        TEXTS("matmul"), TEXTS("conv2d"), TEXTS("conv2d_dx"), TEXTS("conv2d_dw"),
    };
    size_t i = 0;
    while (!node_is(n, texts[i].op)) CHECK(++i < COUNT(texts));
    tri_type type = cpu_out(n, 0)->type;
    if (type == TRI_F16) return texts[i].f16;
    return type == TRI_BF16 && !dnnl_glue_has_bf16() ? texts[i].bf16 : NULL;
}
