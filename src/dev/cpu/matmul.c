/* SPDX-License-Identifier: Apache-2.0
 * matmul of f32 and bf16, by gemm.h. A large product is cut into rectangles of y, its parts;
 * several small matrices make a part. How it is cut changes no bit. Every part packs its own
 * factors, so there are no more parts than the threads need. */
#include "dev/cpu/matmul.h"

#include "dev/cpu/gemm.h"
#include "dev/cpu/tail.h"

#define DECLARE(isa) extern const struct gemm_set gemm_set_##isa;
EVERY_PRODUCT_ISA(DECLARE)

#define NARROW 8 /* columns: they fill only half of a vector of AVX-512 */
#ifdef CPU_AVX512
#define NARROW_ISA(isa) ((isa) == ISA_avx512 ? ISA_avx2 : (isa))
#else
#define NARROW_ISA(isa) (isa)
#endif

static const struct gemm_set *best(tri_type type, int64_t columns) {
#define SET(isa) &gemm_set_##isa,
    static const struct gemm_set *const sets[] = {EVERY_PRODUCT_ISA(SET)};
    enum isa isa = isa_products(type == TRI_BF16);
    if (type == TRI_F32 && columns <= NARROW) isa = NARROW_ISA(isa);
    return sets[isa];
}

/* ---- sizes ---- */

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

struct matmul_sizes matmul_sizes_of(const tri_node *node) {
    const tri_spec *a = cpu_in(node, 0), *b = cpu_in(node, 1), *y = cpu_out(node, 0);
    const int64_t *da = a->shape.dim + a->shape.rank - 2, *db = b->shape.dim + b->shape.rank - 2;
    bool ta = tri_attr_int(node, "trans_a"), tb = tri_attr_int(node, "trans_b");
    tri_shape lead = leading(y);
    struct matmul_sizes s = {.lead = walk_over(&lead, 3), .m = da[ta], .k = da[!ta], .n = db[!tb],
                             .row_a = ta ? 1 : da[1], .column_a = ta ? da[1] : 1,
                             .row_b = tb ? 1 : db[1], .column_b = tb ? db[1] : 1};
    if (s.n == 1) s.column_b = 1;
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

bool matmul_takes(const tri_node *n) {
    const tri_type type = cpu_out(n, 0)->type;
    return node_is(n, "matmul") && (type == TRI_F32 || type == TRI_BF16);
}

/* ---- parts ---- */

#define FEW 32             /* rows, for which transposing b costs too much; k, likewise */
#define FEW_ROWS 8         /* for which packing b costs too much, even if it is not transposed */
#define FEW_COLUMNS 64     /* for which packing a costs too much */
#define STREAMS 4          /* rows of b that hardware prefetches well side by side */
#define PART_WORK 16e6     /* operations: a tenth of a millisecond and more */
#define THREADS 4          /* that share the parts, if their number is open */
#define ROWS 512           /* of a part: a block of their k fits a cache */
#define COLUMNS 1024       /* of a part, so that it is still in a cache after the next block */
#define MADE_COLUMNS 512   /* likewise, of a part that is made in scratch */
#define ALIGN 32           /* columns of a part begin at a multiple of it */

/* A direct product reads its left factor in place, and its right one too, or packs that as a whole
 * (packs). TURNED: with few rows and a transposed b, y' = b' a' is computed. */
enum way { DIRECT, TURNED, BLOCKED };

struct state {
    struct matmul_sizes sizes;
    const struct gemm_set *gemm;
    tri_type type;           /* bf16: y is rounded from f32, which may need a place */
    enum way way;
    int64_t matrices, each;  /* in all; of a part, if a part is no piece of one */
    int64_t down, across;    /* parts of a matrix */
    int64_t parts;
    const struct tail *tail; /* null: none */
    size_t made, rounded;    /* bytes of the scratch that hold a part's y; 0: it is in place */
};

struct rectangle {
    int64_t top, rows, left, columns;
};

static int64_t ceil_of(int64_t x, int64_t y) { return (x + y - 1) / y; }

static enum way way_of(const struct matmul_sizes *s, tri_type type) {
    if (type == TRI_BF16) return BLOCKED;
    if (s->m <= FEW && s->n > s->m && s->column_b != 1) return TURNED;
    return s->m <= FEW_ROWS || s->n <= FEW_COLUMNS || s->k <= FEW ? DIRECT : BLOCKED;
}

/* Whether a direct product of m rows packs b: it is transposed, or its rows are many for hardware
 * to prefetch, and few enough to pack cheaply. */
static bool packs(int64_t m, int64_t k, int64_t b_column) {
    return b_column != 1 || (m > FEW_ROWS && k > STREAMS && k <= FEW);
}

/* Cuts the longer side, until there is the same number of parts for each thread, or about that, or
 * they have little work. */
static void cut(const struct matmul_sizes *s, double work, int threads, bool made,
                struct state *st) {
    if (st->way == BLOCKED) {
        st->down = ceil_of(s->m, ROWS);
        st->across = ceil_of(s->n, made ? MADE_COLUMNS : COLUMNS);
    }
    const int64_t share = threads ? threads : THREADS;
    const double most = work / PART_WORK;
    while ((double)(st->down * st->across) < most / 2) {
        const int64_t parts = st->matrices * st->down * st->across;
        if (parts % share == 0 || parts >= 2 * share) break;
        const int64_t rows = s->m / st->down, columns = s->n / st->across;
        if (columns >= rows && columns >= 4 * ALIGN)
            st->across++;
        else if (rows >= 2 * FEW)
            st->down++;
        else
            break;
    }
}

/* made: in scratch. */
static void divide(struct state *st, int threads, bool made) {
    const struct matmul_sizes *s = &st->sizes;
    const double work = 2.0 * (double)s->m * (double)s->n * (double)s->k;
    st->way = way_of(s, st->type);
    st->matrices = walk_count(&s->lead);
    st->each = st->down = st->across = 1;
    if (st->matrices > 1 && work < PART_WORK) {
        st->each = (int64_t)(PART_WORK / work);
        if (st->each > st->matrices) st->each = st->matrices;
        st->parts = ceil_of(st->matrices, st->each);
        return;
    }
    cut(s, work, threads, made, st);
    st->parts = st->matrices * st->down * st->across;
}

static struct rectangle rectangle_of(const struct state *st, int64_t part) {
    const struct matmul_sizes *s = &st->sizes;
    const int64_t i = part / st->across, j = part % st->across;
    const int64_t top = s->m * i / st->down, left = s->n * j / st->across / ALIGN * ALIGN;
    const int64_t right = j + 1 < st->across ? s->n * (j + 1) / st->across / ALIGN * ALIGN : s->n;
    return (struct rectangle){top, s->m * (i + 1) / st->down - top, left, right - left};
}

/* Elements of y in a part, at most. */
static int64_t largest(const struct state *st) {
    const struct matmul_sizes *s = &st->sizes;
    if (st->each > 1) return st->each * s->m * s->n;
    return ceil_of(s->m, st->down) * (ceil_of(s->n, st->across) + ALIGN);
}

/* ---- preparation ---- */

static tri_status prepare(const tri_node *n, void **state) {
    tri_status status = cpu_state(n, sizeof(struct state), state);
    if (status) return status;
    struct state *st = *state;
    st->sizes = matmul_sizes_of(n);
    st->type = cpu_out(n, 0)->type;
    const int64_t columns = way_of(&st->sizes, st->type) == TURNED ? st->sizes.m : st->sizes.n;
    st->gemm = best(st->type, columns);
    return TRI_OK;
}

static int64_t scratch_floats(const struct state *st) {
    const struct matmul_sizes *s = &st->sizes;
    const int64_t rows = ceil_of(s->m, st->down);
    const int64_t columns = st->across > 1 ? ceil_of(s->n, st->across) + ALIGN : s->n;
    switch (st->way) {
    case BLOCKED:
        return gemm_scratch(rows, s->k, st->type == TRI_BF16, st->gemm->half_k);
    case TURNED:
        return gemm_packed(s->m, s->k) + columns * s->m;
    default:
        return packs(s->m, s->k, s->column_b) ? gemm_packed(columns, s->k) : 0;
    }
}

/* Elements in whole lines of a cache. */
static size_t lines(int64_t n) { return (size_t)ceil_of(n, 32) * 32; }

static void plan(const tri_node *n, struct kernel *k) {
    (void)n;
    struct state *st = k->state;
    const bool stores = !st->tail || tail_stores(st->tail);
    const bool made = st->type == TRI_BF16 ? st->sizes.k > st->gemm->half_k : !stores;
    divide(st, k->threads, made);
    const int64_t all = largest(st), one = all / st->each; /* bf16 is rounded matrix by matrix */
    if (made) st->made = lines(st->type == TRI_BF16 ? one : all) * sizeof(float);
    if (st->type == TRI_BF16 && !stores) st->rounded = lines(all) * sizeof(uint16_t);
    k->scratch = st->made + st->rounded + (size_t)scratch_floats(st) * sizeof(float);
    k->parts = st->parts;
}

/* ---- running ---- */

/* Reads b in place, or packs it. */
static void set_b(const struct state *st, const float *b, int64_t b_k, int64_t b_column,
                  float *scratch, struct gemm *g) {
    g->b = b;
    g->b_k = b_k;
    g->b_panel = GEMM_PANEL;
    if (!packs(g->m, g->k, b_column)) return;
    st->gemm->pack(b, b_k, b_column, g->k, g->n, scratch);
    g->b = scratch;
    g->b_k = GEMM_PANEL;
    g->b_panel = g->k * GEMM_PANEL;
    g->padded = true;
}

/* The rectangle of y [.., row] = a b, of matrices whose element 0 is number a_at and b_at. made: a
 * place to sum it up, of bf16. */
static void multiply(const struct state *st, const struct rectangle *r, const void *a, int64_t a_at,
                     const void *b, int64_t b_at, void *to, int64_t row, float *made,
                     float *scratch) {
    float *y = to;
    const struct matmul_sizes *s = &st->sizes;
    a_at += r->top * s->row_a;
    b_at += r->left * s->column_b;
    if (st->way == BLOCKED) {
        const bool half = st->type == TRI_BF16;
        const int64_t size = half ? 2 : 4;
        st->gemm->blocked(&(struct product){
            .m = r->rows, .n = r->columns, .k = s->k, .a = (const char *)a + a_at * size,
            .a_row = s->row_a, .a_k = s->column_a, .b = (const char *)b + b_at * size,
            .b_k = s->row_b, .b_column = s->column_b, .c = half ? made : y,
            .c_row = half ? r->columns : row, .half = half, .y = to, .y_row = row}, scratch);
        return;
    }
    const float *rows = (const float *)a + a_at, *columns = (const float *)b + b_at;
    if (st->way == DIRECT) {
        struct gemm g = {.m = r->rows, .n = r->columns, .k = s->k, .a = rows, .a_row = s->row_a,
                         .a_k = s->column_a, .c = y, .c_row = row};
        set_b(st, columns, s->row_b, s->column_b, scratch, &g);
        st->gemm->direct(&g);
        return;
    }
    float *turned = scratch + gemm_packed(r->rows, s->k); /* [columns, rows] */
    struct gemm g = {.m = r->columns, .n = r->rows, .k = s->k, .a = columns,
                     .a_row = s->column_b, .a_k = s->row_b, .c = turned, .c_row = r->rows};
    set_b(st, rows, s->column_a, s->row_a, scratch, &g);
    st->gemm->direct(&g);
    for (int64_t i = 0; i < r->rows; i++, y += row)
        for (int64_t j = 0; j < r->columns; j++) y[j] = turned[j * r->rows + i];
}

/* Elements of y from `first` on are made, and lie at `made`, or a rectangle of them, whose rows are
 * `row` apart. */
static void finish(const struct state *st, const struct rectangle *r, int64_t first,
                   const void *made, int64_t row) {
    const int64_t n = st->sizes.n, size = (int64_t)tri_type_size(st->type);
    first += r->top * n + r->left;
    if (r->columns == n)
        tail_run(st->tail, made, first, r->rows * n);
    else
        for (int64_t i = 0; i < r->rows; i++, first += n)
            tail_run(st->tail, (const char *)made + i * row * size, first, r->columns);
}

static void run(const tri_call *c) {
    const struct state *st = c->state;
    const struct matmul_sizes *s = &st->sizes;
    struct rectangle r = {0, s->m, 0, s->n};
    struct place at = {0};
    int64_t first = 0, matrices = st->matrices;
    if (st->parts > 1) {
        const int64_t pieces = st->down * st->across;
        first = c->part / pieces * st->each;
        matrices = matrices - first < st->each ? matrices - first : st->each;
        r = rectangle_of(st, c->part % pieces);
        walk_seek(&s->lead, first, &at);
    }
    const bool half = st->type == TRI_BF16, stores = !st->rounded && (half || !st->made);
    const int64_t at_y = at.offset[2] + r.top * s->n + r.left;
    char *scratch = c->scratch;
    const int64_t size = (int64_t)tri_type_size(st->type), row = stores ? s->n : r.columns;
    char *y = stores ? (char *)c->out[0] + at_y * size : scratch + (half ? st->made : 0);
    if (st->made + st->rounded) scratch += st->made + st->rounded; /* else there may be none */
    for (int64_t i = 0; i < matrices; i++) {
        multiply(st, &r, c->in[0], at.offset[0], c->in[1], at.offset[1], y + i * s->m * s->n * size,
                 row, c->scratch, (float *)(void *)scratch);
        walk_next(&s->lead, s->lead.rank, &at);
    }
    r.rows *= matrices; /* several lie one after the other */
    if (st->tail) finish(st, &r, first * s->m * s->n, y, row);
}

/* ---- as the head of a unit ---- */

static bool leads(const tri_node *n) {
    (void)n;
    return true;
}

static void follow(void *state, const struct tail *tail) {
    ((struct state *)state)->tail = tail;
}

const struct dev_row cpu_matmul[] = {
    {.op = "matmul", .run = run, .prepare = prepare, .release = free, .plan = plan,
     .leads = leads, .follow = follow},
    {0},
};
