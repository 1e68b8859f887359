/* SPDX-License-Identifier: Apache-2.0
 * Attention in tiles of ATTENTION_QUERIES x ATTENTION_KEYS scores, which stay in the second-level
 * cache, so that memory grows with the rows of q and k, not with their product. A part of the
 * kernel is one head of one sample.
 *
 * gemm_direct computes the products of a tile; k and, backward, v are packed once per head.
 * attention_rows.c does the steps between the products. A query's sums over several tiles of keys
 * are accumulated online: when a larger score appears, the earlier sums are scaled down. bf16 and
 * f16 are widened before and rounded after, a tile or a head at a time. Masked keys have weight 0
 * where others of a group of queries see them: a NaN there reaches the whole group. */
#include "base/random.h"
#include "base/vmath.h"
#include "dev/cpu/attention_rows.h"
#include "dev/cpu/gemm.h"
#include "dev/cpu/vec.h"
#include "ops/attention.h"

#define TILE_FLOATS (ATTENTION_QUERIES * ATTENTION_PITCH)

struct state {
    struct attention a;
    tri_type type; /* of q, k, v, y */
};

/* One head in progress. Scratch is allocated in order. */
struct head {
    const tri_call *c;
    const struct attention *a;
    tri_type type;
    int64_t b, h;
    float *free;
    struct attention_tile tile;
    struct gemm_ahead *ahead; /* the next head's rows */
};

/* Rows of a matrix as floats. */
struct rows {
    float *at;
    int64_t row;
};

static float *take(struct head *w, int64_t floats) {
    float *taken = w->free;
    w->free += (floats + 15) / 16 * 16;
    return taken;
}

static int64_t place(const struct head *w, const struct attention_view *v, int64_t row) {
    return v->offset + w->b * v->batch + w->h * v->head + row * v->row;
}

/* A row in another type. */
static void store_as(tri_type from_type, const void *from, tri_type to_type, void *to, int64_t n) {
    ROW(n, STORE(to_type, to, LOAD(from_type, from, 0)));
}

/* n rows of an input from `first`: in place, or widened into the buffer. */
static struct rows read(const struct head *w, const struct attention_view *v, int input,
                        int64_t width, int64_t first, int64_t n, float *buffer) {
    const void *from = w->c->in[input];
    if (w->type == TRI_F32)
        return (struct rows){(float *)from + place(w, v, first), v->row};
    for (int64_t i = 0; i < n; i++)
        store_as(w->type, (const uint16_t *)from + place(w, v, first + i), TRI_F32,
                buffer + i * width, width);
    return (struct rows){buffer, width};
}

/* Where rows of an output are computed: in place, or in the buffer, to be stored afterwards. */
static struct rows begin(const struct head *w, const struct attention_view *v, int output,
                         int64_t width, int64_t first, float *buffer) {
    if (w->type != TRI_F32) return (struct rows){buffer, width};
    return (struct rows){(float *)w->c->out[output] + place(w, v, first), v->row};
}

static void end(const struct head *w, const struct attention_view *v, int output, int64_t width,
                int64_t first, int64_t n, const float *buffer) {
    for (int64_t i = 0; i < n && w->type != TRI_F32; i++)
        store_as(TRI_F32, buffer + i * width, w->type,
                (uint16_t *)w->c->out[output] + place(w, v, first + i), width);
}

/* ---- common to all kernels ---- */

/* Scratch floats that only bf16 and f16 need. */
static int64_t halves(const struct state *s, int64_t floats) {
    return s->type == TRI_F32 ? 0 : (floats + 15) / 16 * 16;
}
static float *half(struct head *w, int64_t floats) {
    return w->type == TRI_F32 ? NULL : take(w, floats);
}

static void want(const struct head *next, struct gemm_ahead *x, const void *tensor,
                 const struct attention_view *v, int64_t rows, int64_t width) {
    int64_t size = (int64_t)tri_type_size(next->type);
    x->matrix[x->n++] = (struct gemm_next){(const char *)tensor + place(next, v, 0) * size, rows,
                                           v->row * size, width * size, 0};
}

/* rows of q and k worth prefetching; a part of a longer head takes long enough without */
#define FETCHED 2048

/* Prefetches the next head's rows, those that the kernel reads and writes. If heads lie side by
 * side these rows are apart, and hardware does not prefetch them. */
static void look_ahead(const struct head *w, struct gemm_ahead *x) {
    const struct attention *a = w->a;
    struct head next = *w;
    int64_t part = w->b * a->heads + w->h + 1;
    const tri_call *c = w->c;
    x->n = x->now = 0;
    if (part == a->batch * a->heads || a->queries + a->keys > FETCHED) return;
    next.b = part / a->heads;
    next.h = part % a->heads;
    want(&next, x, c->in[a->k.tensor], &a->k, a->keys, a->size);
    want(&next, x, c->in[a->q.tensor], &a->q, a->queries, a->size);
    want(&next, x, c->in[a->v.tensor], &a->v, a->keys, a->value_size);
    if (!a->first) {
        want(&next, x, c->out[0], &a->y, a->queries, a->value_size);
        return;
    }
    for (int i = 0; i < 2; i++) want(&next, x, c->in[i], &a->y, a->queries, a->value_size);
    int last = c->node->n_out - 1;
    want(&next, x, c->out[last], &a->v, a->keys, a->value_size);
    want(&next, x, c->out[last / 2], &a->k, a->keys, a->size);
    want(&next, x, c->out[0], &a->q, a->queries, a->size);
}

static struct head open(const tri_call *c, int64_t part, struct gemm_ahead *ahead) {
    const struct state *s = c->state;
    const struct attention *a = &s->a;
    struct head w = {.c = c, .a = a, .type = s->type, .b = part / a->heads,
                     .h = part % a->heads, .free = c->scratch, .ahead = ahead};
    w.tile = (struct attention_tile){.scale = (float)a->scale, .stream = (uint64_t)c->step,
                                     .draw_row = a->keys,
                                     .draw_key = random_key(c->seed, base_hash_text(a->key)),
                                     .limit = (uint32_t)(a->dropout * 4294967296.0),
                                     .kept = (float)(1 / (1 - a->dropout))};
    if (a->mask >= 0) {
        w.tile.mask_type = cpu_in(c->node, a->mask)->type;
        w.tile.mask_row = a->mask_stride[2];
        w.tile.mask_key = a->mask_stride[3];
    }
    if (ahead) look_ahead(&w, ahead);
    return w;
}

/* Selects the tile of n keys from k for the queries from i. */
static void aim(struct head *w, int64_t i, int64_t rows, int64_t k, int64_t n) {
    const struct attention *a = w->a;
    struct attention_tile *t = &w->tile;
    t->rows = rows;
    t->keys = n;
    t->diagonal = a->causal ? i - k : n;
    t->first_draw = attention_draw(w->c, a, w->b, w->h, i) + (uint64_t)k;
    if (a->mask < 0) return;
    const int64_t *s = a->mask_stride;
    t->mask = (const char *)w->c->in[a->mask] +
              (w->b * s[0] + w->h * s[1] + i * s[2] + k * s[3]) *
                  (int64_t)tri_type_size(t->mask_type);
}

/* [queries, keys] of the tile = rows of x times packed rows of `width`; k: the first key. */
static void score(const struct head *w, struct rows x, const float *packed, int64_t width,
                  int64_t k, float *to) {
    const struct attention_tile *t = &w->tile;
    gemm_direct(&(struct gemm){
        .m = t->rows, .n = t->keys, .k = width, .a = x.at, .a_row = x.row,
        .a_k = 1, .b = packed + k * width, .b_k = GEMM_PANEL,
        .b_panel = GEMM_PANEL * width, .padded = true, .c = to, .c_row = ATTENTION_PITCH,
        .shape = GEMM_C_LOWER, .diagonal = t->diagonal, .ahead = w->ahead});
}

/* [queries, width] = or += the tile times rows of x, one per key. */
static void gather(const struct head *w, const float *tile, struct rows x, int64_t width,
                   struct rows to, bool add) {
    const struct attention_tile *t = &w->tile;
    gemm_direct(&(struct gemm){
        .m = t->rows, .n = width, .k = t->keys, .a = tile,
        .a_row = ATTENTION_PITCH, .a_k = 1, .b = x.at, .b_k = x.row,
        .b_panel = GEMM_PANEL, .c = to.at, .c_row = to.row, .add = add,
        .shape = GEMM_A_LOWER, .diagonal = t->diagonal, .ahead = w->ahead});
}

/* [keys, width] += the tile's transpose times rows of x, one per query. */
static void scatter(const struct head *w, const float *tile, struct rows x, int64_t width,
                    struct rows to) {
    const struct attention_tile *t = &w->tile;
    gemm_direct(&(struct gemm){
        .m = t->keys, .n = width, .k = t->rows, .a = tile, .a_row = 1,
        .a_k = ATTENTION_PITCH, .b = x.at, .b_k = x.row, .b_panel = GEMM_PANEL,
        .c = to.at, .c_row = to.row, .add = true, .shape = GEMM_A_UPPER,
        .diagonal = t->diagonal, .ahead = w->ahead});
}

static struct rows from(struct rows x, int64_t row) {
    return (struct rows){x.at + row * x.row, x.row};
}

/* ---- forward ---- */

/* Multiplies row i of x by by[i]. */
static void scale_rows(struct rows x, int64_t rows, int64_t width, const float *by) {
    for (int64_t i = 0; i < rows; i++) {
        float *a = x.at + i * x.row;
        ROW(width, STORE(TRI_F32, a, LOAD(TRI_F32, a, 0) * by[i]));
    }
}

/* Stores the logsumexp, and the factors that turn sums of weighted rows into means. */
static void conclude(const struct attention_sums *sums, int64_t rows, float kept, float *lse,
                     float *by) {
    INDEPENDENT for (int64_t i = 0; i < rows; i++) {
        float sum = (float)sums->sum[i];
        lse[i] = sums->max[i] + vmath_log(sum);
        by[i] = sum == 0 ? 0 : kept / sum;
    }
}

static size_t forward_floats(const struct state *s) {
    const struct attention *a = &s->a;
    return (size_t)(gemm_packed(a->keys, a->size) + TILE_FLOATS +
                    halves(s, a->keys * a->size) + halves(s, a->keys * a->value_size) +
                    halves(s, ATTENTION_QUERIES * a->size) +
                    halves(s, ATTENTION_QUERIES * a->value_size));
}

static void forward(const tri_call *c) {
    struct gemm_ahead ahead;
    struct head w = open(c, c->part, &ahead);
    const struct attention *a = w.a;
    int64_t d = a->size, e = a->value_size;
    float *packed = take(&w, gemm_packed(a->keys, d)), *s = take(&w, TILE_FLOATS);
    float *buffer[] = {half(&w, a->keys * d), half(&w, a->keys * e),
                     half(&w, ATTENTION_QUERIES * d), half(&w, ATTENTION_QUERIES * e)};
    struct rows k = read(&w, &a->k, a->k.tensor, d, 0, a->keys, buffer[0]);
    struct rows v = read(&w, &a->v, a->v.tensor, e, 0, a->keys, buffer[1]);
    gemm_pack(k.at, 1, k.row, d, a->keys, packed);
    w.tile.s = s;
    for (int64_t i = 0; i < a->queries; i += ATTENTION_QUERIES) {
        struct attention_sums sums;
        float by[ATTENTION_QUERIES];
        int64_t n = least(ATTENTION_QUERIES, a->queries - i);
        int64_t reach = attention_reach(a, i + n - 1);
        struct rows q = read(&w, &a->q, a->q.tensor, d, i, n, buffer[2]);
        struct rows y = begin(&w, &a->y, 0, e, i, buffer[3]);
        attention_begin(&sums);
        for (int64_t t = 0; t < reach; t += ATTENTION_KEYS) {
            aim(&w, i, n, t, least(ATTENTION_KEYS, reach - t));
            score(&w, q, packed, d, t, s);
            attention_weigh(&w.tile, &sums);
            if (t) scale_rows(y, n, e, sums.shrink);
            gather(&w, s, from(v, t), e, y, t);
        }
        conclude(&sums, n, w.tile.kept,
                 (float *)c->out[1] + (w.b * a->heads + w.h) * a->queries + i, by);
        scale_rows(y, n, e, by);
        end(&w, &a->y, 0, e, i, n, buffer[3]);
    }
}

/* ---- backward ---- */

static size_t backward_floats(const struct state *s) {
    const struct attention *a = &s->a;
    return (size_t)(gemm_packed(a->keys, a->size) + gemm_packed(a->keys, a->value_size) +
                    2 * TILE_FLOATS + 2 * halves(s, a->keys * a->size) +
                    2 * halves(s, a->keys * a->value_size) +
                    2 * halves(s, ATTENTION_QUERIES * a->size) +
                    2 * halves(s, ATTENTION_QUERIES * a->value_size));
}

/* Common to all queries of a head. */
struct keys {
    float *packed_k, *packed_v;
    struct rows k, v;
    float *ds;
    float *buffer[4]; /* q, dq, dy, y of a tile, as floats */
};

static void open_keys(struct head *w, struct keys *x) {
    const struct attention *a = w->a;
    int64_t d = a->size, e = a->value_size;
    x->packed_k = take(w, gemm_packed(a->keys, d));
    x->packed_v = take(w, gemm_packed(a->keys, e));
    w->tile.s = take(w, TILE_FLOATS);
    x->ds = take(w, TILE_FLOATS);
    x->k = read(w, &a->k, a->k.tensor, d, 0, a->keys, half(w, a->keys * d));
    x->v = read(w, &a->v, a->v.tensor, e, 0, a->keys, half(w, a->keys * e));
    gemm_pack(x->k.at, 1, x->k.row, d, a->keys, x->packed_k);
    gemm_pack(x->v.at, 1, x->v.row, e, a->keys, x->packed_v);
    for (int i = 0; i < 4; i++) x->buffer[i] = half(w, ATTENTION_QUERIES * (i < 2 ? d : e));
}

/* The queries of a tile. */
struct queries {
    int64_t first, n, reach;
    struct rows q, dy;
    const float *lse;
    float delta[ATTENTION_QUERIES]; /* sum(dy y) */
};

static void dot_rows(const struct rows x, const struct rows y, int64_t rows, int64_t width,
                            float *to) {
    for (int64_t i = 0; i < rows; i++) {
        const float *a = x.at + i * x.row, *b = y.at + i * y.row;
        vec sum[SUM_VECS] = {{0}};
        ROW(width, sum[k] = vec_fma(LOAD(TRI_F32, a, 0), LOAD(TRI_F32, b, 0), sum[k]));
        to[i] = vec_total(sum);
    }
}

static void open_queries(const struct head *w, const struct keys *x, int64_t i, struct queries *q) {
    const struct attention *a = w->a;
    q->first = i;
    q->n = least(ATTENTION_QUERIES, a->queries - i);
    q->reach = attention_reach(a, i + q->n - 1);
    q->q = read(w, &a->q, a->q.tensor, a->size, i, q->n, x->buffer[0]);
    q->dy = read(w, &a->y, 0, a->value_size, i, q->n, x->buffer[2]);
    q->lse = (const float *)w->c->in[2] + (w->b * a->heads + w->h) * a->queries + i;
    dot_rows(q->dy, read(w, &a->y, 1, a->value_size, i, q->n, x->buffer[3]), q->n, a->value_size,
             q->delta);
}

/* p and ds of the queries for the keys from t. */
static void derive(struct head *w, const struct keys *x, const struct queries *q, int64_t t,
                   float factor) {
    aim(w, q->first, q->n, t, least(ATTENTION_KEYS, q->reach - t));
    score(w, q->q, x->packed_k, w->a->size, t, w->tile.s);
    score(w, q->dy, x->packed_v, w->a->value_size, t, x->ds);
    attention_derive(&w->tile, q->lse, q->delta, factor, x->ds);
}

static void clear(struct rows x, int64_t rows, int64_t width) {
    for (int64_t i = 0; i < rows; i++) memset(x.at + i * x.row, 0, (size_t)width * sizeof(float));
}

static void backward(const tri_call *c) {
    struct gemm_ahead ahead;
    struct head w = open(c, c->part, &ahead);
    const struct attention *a = w.a;
    int64_t d = a->size, e = a->value_size;
    int last = c->node->n_out - 1, out[] = {0, last / 2, last};
    struct keys x;
    struct queries q;
    open_keys(&w, &x);
    float *room_k = half(&w, a->keys * d), *room_v = half(&w, a->keys * e);
    struct rows dk = begin(&w, &a->k, out[1], d, 0, room_k);
    struct rows dv = begin(&w, &a->v, out[2], e, 0, room_v);
    clear(dk, a->keys, d);
    clear(dv, a->keys, e);
    for (int64_t i = 0; i < a->queries; i += ATTENTION_QUERIES) {
        open_queries(&w, &x, i, &q);
        struct rows dq = begin(&w, &a->q, out[0], d, i, x.buffer[1]);
        for (int64_t t = 0; t < q.reach; t += ATTENTION_KEYS) {
            derive(&w, &x, &q, t, (float)a->scale);
            scatter(&w, w.tile.s, q.dy, e, from(dv, t));
            scatter(&w, x.ds, q.q, d, from(dk, t));
            gather(&w, x.ds, from(x.k, t), d, dq, t);
        }
        end(&w, &a->q, out[0], d, i, q.n, x.buffer[1]);
    }
    end(&w, &a->k, out[1], d, 0, a->keys, room_k);
    end(&w, &a->v, out[2], e, 0, a->keys, room_v);
}

/* ---- with a mask ---- */

/* A part is a sample. */
static void mask(const tri_call *c) {
    const struct state *s = c->state;
    const int64_t *dim = cpu_out(c->node, 0)->shape.dim, *stride = s->a.mask_stride;
    int64_t count = dim[1] * dim[2] * dim[3], last = dim[3] > 1;
    float *sums = c->scratch;
    memset(sums, 0, (size_t)count * sizeof *sums);
    tri_call inner = *c;
    inner.scratch = sums + (count + 15) / 16 * 16;
    for (int64_t h = 0; h < s->a.heads; h++) {
        struct head w = open(&inner, c->part * s->a.heads + h, NULL);
        struct keys x;
        struct queries q;
        open_keys(&w, &x);
        for (int64_t i = 0; i < s->a.queries; i += ATTENTION_QUERIES) {
            open_queries(&w, &x, i, &q);
            for (int64_t t = 0; t < q.reach; t += ATTENTION_KEYS) {
                derive(&w, &x, &q, t, 1);
                for (int64_t r = 0; r < q.n; r++)
                    for (int64_t k = 0; k <= w.tile.diagonal + r && k < w.tile.keys; k++)
                        sums[((stride[1] ? h : 0) * dim[2] + (stride[2] ? i + r : 0)) * dim[3] +
                             (t + k) * last] += x.ds[r * ATTENTION_PITCH + k];
            }
        }
    }
    tri_type type = cpu_out(c->node, 0)->type;
    char *to = (char *)c->out[0] + c->part * count * (int64_t)tri_type_size(type);
    store_as(TRI_F32, sums, type, to, count);
}

static size_t mask_floats(const struct state *s, const tri_node *n) {
    return backward_floats(s) + (size_t)(cpu_out_count(n, 0) / s->a.batch) + 16;
}

/* ---- rows ---- */

static tri_status prepare(const tri_node *n, void **state) {
    tri_status status = cpu_state(n, sizeof(struct state), state);
    if (status) return status;
    struct state *s = *state;
    attention_of(n, &s->a);
    s->type = cpu_in(n, s->a.first)->type;
    return TRI_OK;
}

static void plan(const tri_node *n, struct kernel *k) {
    const struct state *s = k->state;
    k->parts = s->a.batch * s->a.heads;
    k->scratch = forward_floats(s) * sizeof(float);
    if (node_is(n, "attention_dx")) k->scratch = backward_floats(s) * sizeof(float);
    if (!node_is(n, "attention_dmask")) return;
    k->parts = s->a.batch;
    k->scratch = mask_floats(s, n) * sizeof(float);
}

const struct dev_row FOR_ISA(cpu_attention)[] = {
    {.op = "attention", .run = forward, .prepare = prepare, .release = free, .plan = plan},
    {.op = "attention_dx", .run = backward, .prepare = prepare, .release = free, .plan = plan},
    {.op = "attention_dmask", .run = mask, .prepare = prepare, .release = free, .plan = plan},
    {0},
};
