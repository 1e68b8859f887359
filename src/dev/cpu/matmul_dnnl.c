/* SPDX-License-Identifier: Apache-2.0
 * matmul of bf16, by oneDNN, which sees transposes as strides. Large ones are cut into parts, each
 * a product of its own: panels of rows; where there are few rows, panels of columns, whose results
 * are copied to their place; or some of many matrices. For panels of rows the right factor is
 * first reordered for the library, in a round of its own. */
#include "dev/cpu/dnnl_glue.h"
#include "dev/cpu/matmul.h"
#include "dev/cpu/tail.h"

/* Tensor k of the leading walk, with its matrices of rows x columns behind. */
static struct dnnl_view view_of(const struct matmul_sizes *s, int k, int64_t rows, int64_t columns,
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

/* ---- parts ---- */

#define PART_WORK 16e6   /* flops: a tenth of a millisecond and more */
#define PANEL_ROWS 128   /* twice that where the right factor is large, for it is read for each */
#define PANEL_COLUMNS 256
#define LARGE_FACTOR (1 << 20)
#define MOST_PACKS 16

enum cut { CUT_NOT, CUT_ROWS, CUT_COLUMNS, CUT_MATRICES };

struct state {
    struct matmul_sizes sizes;
    enum cut cut;
    int64_t parts, each; /* rows, columns, or matrices of the first leading dimension, of a part;
                            the last has the rest as well */
    size_t step[3];          /* bytes from one part of a, b, y to the next */
    struct dnnl_job *job[2]; /* for `each`, and for the last part if it has more */
    const struct tail *tail; /* what comes behind; null: nothing */
    size_t panel; /* bytes of the scratch before the job's: the part's y, if not in place */
    /* The right factor in the library's order; null: as it is. */
    struct dnnl_order *order;
    int64_t packs, columns;  /* its parts: so many columns each, the last with the rest */
    struct dnnl_job *pack[2];
};

/* How many of `all` make a part, if each of them is `work` flops and `least` are wanted together.
 */
static int64_t panel_of(double work, int64_t least) {
    while ((double)least * work < PART_WORK) least *= 2;
    return least;
}

/* Columns of a right factor that is not transposed do not lie in one piece: that costs the library
 * more than it is worth for few rows. */
static void choose_cut(struct state *st) {
    const struct matmul_sizes *s = &st->sizes;
    double matrix = 2.0 * (double)s->m * (double)s->k * (double)s->n;
    int64_t all, least = 1;
    bool large = s->k * s->n > LARGE_FACTOR;
    if (s->lead.rank) {
        st->cut = CUT_MATRICES;
        all = s->lead.dim[0];
        matrix *= (double)(walk_count(&s->lead) / all);
        st->each = panel_of(matrix, 1);
    } else if (s->m >= 2 * PANEL_ROWS) {
        st->cut = CUT_ROWS;
        all = s->m;
        least = large && all >= 4 * PANEL_ROWS ? 2 * PANEL_ROWS : PANEL_ROWS;
        st->each = panel_of(matrix / (double)all, least);
    } else if (s->column_b != 1) {
        st->cut = CUT_COLUMNS;
        all = s->n;
        least = all >= 4 * PANEL_COLUMNS ? PANEL_COLUMNS : PANEL_COLUMNS / 2;
        st->each = panel_of(matrix / (double)all, least);
    } else {
        all = st->each = 1;
    }
    st->parts = all / st->each;
    if (st->parts > 1) return;
    st->parts = st->each = 1;
    st->cut = CUT_NOT;
}

/* The sizes of a part with `more` beyond `each`. */
static struct matmul_sizes part_of(const struct state *st, int64_t more) {
    struct matmul_sizes s = st->sizes;
    if (st->cut == CUT_ROWS) s.m = st->each + more;
    if (st->cut == CUT_COLUMNS) s.n = st->each + more;
    if (st->cut == CUT_MATRICES) s.lead.dim[0] = st->each + more;
    return s;
}

static int64_t rest_of(const struct state *st) {
    switch (st->cut) {
    case CUT_ROWS:
        return st->sizes.m % st->each;
    case CUT_COLUMNS:
        return st->sizes.n % st->each;
    case CUT_MATRICES:
        return st->sizes.lead.dim[0] % st->each;
    default:
        return 0;
    }
}

/* Elements of y for each row, column or matrix that is cut. */
static int64_t width_of(const tri_node *n, const struct state *st) {
    return cpu_out_count(n, 0) / (st->parts * st->each + rest_of(st));
}

/* Those of the largest part. */
static size_t panel_bytes(const tri_node *n, const struct state *st) {
    size_t count = (size_t)(width_of(n, st) * (st->each + rest_of(st)));
    return (count * tri_type_size(cpu_out(n, 0)->type) + 63) / 64 * 64;
}

static void find_steps(const tri_node *n, struct state *st) {
    const struct matmul_sizes *s = &st->sizes;
    size_t size = tri_type_size(cpu_out(n, 0)->type);
    int64_t step[3] = {0};
    if (st->cut == CUT_ROWS) {
        step[0] = s->row_a;
        step[2] = s->n;
    } else if (st->cut == CUT_COLUMNS) {
        step[1] = s->column_b;
        step[2] = 1;
    }
    for (int i = 0; i < 3; i++) {
        if (st->cut == CUT_MATRICES) step[i] = s->lead.stride[i][0];
        st->step[i] = (size_t)(step[i] * st->each) * size;
    }
}

/* ---- preparation ---- */

static void release(void *state) {
    struct state *st = state;
    for (int i = 0; i < 2; i++) {
        dnnl_glue_release(st->job[i]);
        dnnl_glue_release(st->pack[i]);
    }
    free(st->order);
    free(st);
}

struct views {
    struct dnnl_view a, b, y;
};

static struct views views_of(const struct matmul_sizes *s) {
    return (struct views){view_of(s, 0, s->m, s->k, s->row_a, s->column_a),
                          view_of(s, 1, s->k, s->n, s->row_b, s->column_b),
                          view_of(s, 2, s->m, s->n, s->n, 1)};
}

/* Round one: the right factor's columns. */
static tri_status make_packs(const tri_node *n, const struct dnnl_view *b, struct state *st) {
    int64_t together = dnnl_glue_order_columns(st->order), blocks = st->sizes.n / together;
    st->packs = blocks < 1 ? 1 : blocks < MOST_PACKS ? blocks : MOST_PACKS;
    st->columns = blocks < 1 ? st->sizes.n : blocks / st->packs * together;
    int64_t last = (st->packs - 1) * st->columns, rest = st->sizes.n - last;
    tri_status status = TRI_OK;
    if (st->packs > 1) status = dnnl_glue_pack(n, st->order, b, 0, st->columns, &st->pack[0]);
    if (!status) status = dnnl_glue_pack(n, st->order, b, last, rest, &st->pack[1]);
    return status;
}

static tri_status make_jobs(const tri_node *n, struct state *st) {
    tri_status status = TRI_OK;
    int64_t rest = rest_of(st);
    for (int i = 0; i < (rest ? 2 : 1) && !status; i++) {
        struct matmul_sizes part = part_of(st, i ? rest : 0);
        struct views v = views_of(&part);
        if (i == 0 && st->cut != CUT_COLUMNS) {
            status = dnnl_glue_order(n, &v.a, &v.b, &v.y, st->sizes.m, &st->order);
            if (!status && st->order) status = make_packs(n, &v.b, st);
        }
        if (!status) status = dnnl_glue_matmul(n, &v.a, &v.b, &v.y, st->order, &st->job[i]);
    }
    if (st->cut == CUT_COLUMNS) st->panel = panel_bytes(n, st);
    return status;
}

static tri_status prepare(const tri_node *n, void **state) {
    tri_status status = cpu_state(n, sizeof(struct state), state);
    if (status) return status;
    struct state *st = *state;
    st->sizes = matmul_sizes_of(n);
    choose_cut(st);
    find_steps(n, st);
    status = make_jobs(n, st);
    if (status) release(st);
    return status;
}

static void plan(const tri_node *n, struct kernel *k) {
    struct state *st = k->state;
    if (st->tail && !tail_stores(st->tail)) st->panel = panel_bytes(n, st);
    k->scratch = st->panel;
    for (int i = 0; i < 2; i++) {
        size_t job = st->job[i] ? st->panel + dnnl_glue_scratch(st->job[i]) : 0;
        size_t pack = st->pack[i] ? dnnl_glue_scratch(st->pack[i]) : 0;
        if (job > k->scratch) k->scratch = job;
        if (pack > k->scratch) k->scratch = pack;
    }
    k->parts = st->order ? st->packs : st->parts;
    k->then = st->order ? st->parts : 0;
    if (st->order) k->shared = dnnl_glue_order_bytes(st->order);
}

/* ---- running ---- */

static void run_job(const struct dnnl_job *job, const tri_call *c, const void *const *in, void *out,
                    size_t scratch) {
    tri_call inner = *c;
    inner.in = in;
    inner.out = &out;
    if (scratch) inner.scratch = (char *)c->scratch + scratch;
    dnnl_glue_run(job, &inner);
}

static void run_pack(const struct state *st, const tri_call *c) {
    int64_t first = c->part * st->columns;
    size_t size = tri_type_size(cpu_out(c->node, 0)->type);
    const void *in[] = {(const char *)c->in[1] + (size_t)(first * st->sizes.column_b) * size};
    void *out = (char *)c->shared + dnnl_glue_order_at(st->order, first);
    run_job(st->pack[c->part == st->packs - 1], c, in, out, 0);
}

/* A panel of columns, which lies in the scratch, between the others. */
static void put_columns(const struct state *st, const char *from, char *to, size_t row,
                        size_t columns) {
    for (int64_t i = 0; i < st->sizes.m; i++, from += columns, to += row) memcpy(to, from, columns);
}

static void run_part(const struct state *st, const tri_call *c, int64_t part) {
    bool more = part == st->parts - 1 && st->job[1];
    size_t at = (size_t)part, size = tri_type_size(cpu_out(c->node, 0)->type);
    const void *in[] = {(const char *)c->in[0] + at * st->step[0],
                        st->order ? c->shared : (const char *)c->in[1] + at * st->step[1]};
    char *y = st->panel ? c->scratch : (char *)c->out[0] + at * st->step[2];
    int64_t each = st->each + (more ? rest_of(st) : 0);
    run_job(st->job[more], c, in, y, st->panel);
    if (st->cut == CUT_COLUMNS)
        put_columns(st, y, (char *)c->out[0] + at * st->step[2], (size_t)st->sizes.n * size,
                    (size_t)each * size);
    else if (st->tail)
        tail_run(st->tail, y, (int64_t)(at * st->step[2] / size), each * width_of(c->node, st));
}

static void run(const tri_call *c) {
    const struct state *st = c->state;
    if (st->order && c->part < st->packs)
        run_pack(st, c);
    else
        run_part(st, c, st->order ? c->part - st->packs : c->part);
}

/* ---- as the head of a unit ---- */

#define SMALL 65536 /* elements that stay in the cache until all are there */

/* Panels of columns are no pieces of y. */
static bool leads(const tri_node *n) {
    struct state st = {.sizes = matmul_sizes_of(n)};
    choose_cut(&st);
    return st.cut == CUT_NOT ? cpu_out_count(n, 0) <= SMALL : st.cut != CUT_COLUMNS;
}

static void follow(void *state, const struct tail *tail) {
    ((struct state *)state)->tail = tail;
}

const struct dev_row cpu_matmul_dnnl[] = {
    {.op = "matmul", .run = run, .supports = cpu_dnnl_supports, .prepare = prepare,
     .release = release, .plan = plan, .leads = leads, .follow = follow},
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
    return type == TRI_BF16 && !dnnl_glue_takes_bf16() ? texts[i].bf16 : NULL;
}
