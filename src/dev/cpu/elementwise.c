/* SPDX-License-Identifier: Apache-2.0
 * The driver of elementwise operators: walks the output in tiles, brings each input into a run of
 * its own (in place where it lies so already), calls the operator's tile function and stores the
 * result in the output's type. All index arithmetic is prepared. */
#include "base/convert.h"
#include "dev/cpu/tile.h"
#include "dev/cpu/walk.h"
#include "ops/op.h"

#define MAX_IN 3

/* Rows of the innermost dimension that are at least this long are cut into tiles one by one, so
 * that repeated rows are read in place; shorter ones are gathered, several to a tile. */
#define LONG_ROW 256

struct operand {
    tri_type type;
    bool dense;   /* lies as the output does */
    bool uniform; /* one element for all */
};

struct state {
    struct walk walk; /* tensor k is input k */
    int64_t row;      /* length of the innermost dimension, which the walk has lost */
    int64_t step[MAX_IN];
    int64_t rows_per_tile; /* 0: several tiles per row */
    int64_t count;
    int n_in;
    struct operand in[MAX_IN];
    tri_type out;
    tile_fn *fn;
    float p[2];
};

/* What an input needs for one tile: its elements gathered, and widened. */
struct buffers {
    _Alignas(64) int64_t raw[TILE];
    _Alignas(64) float wide[TILE];
};

/* ---- gathering ---- */

#define FILL(T)                                                                             \
    static void fill_##T(void *to, const void *from, size_t n) {                            \
        T *t = to, v = *(const T *)from;                                                    \
        for (size_t i = 0; i < n; i++) t[i] = v;                                            \
    }
FILL(uint8_t)
FILL(uint16_t)
FILL(uint32_t)
FILL(uint64_t)

static void fill(void *to, const void *from, size_t n, size_t size) {
    if (size == 1)
        fill_uint8_t(to, from, n);
    else if (size == 2)
        fill_uint16_t(to, from, n);
    else if (size == 4)
        fill_uint32_t(to, from, n);
    else
        fill_uint64_t(to, from, n);
}

void cpu_fill(const tri_spec *spec, void *to, double value) {
    uint64_t one = 0;
    convert_store(spec->type, &one, 0, value);
    fill(to, &one, (size_t)tri_shape_count(&spec->shape), tri_type_size(spec->type));
}

/* n elements of input k from row `at` on, `rows` rows long. */
static void gather(const struct state *s, int k, const char *from, struct place at, int64_t rows,
                   int64_t n, char *to) {
    size_t size = tri_type_size(s->in[k].type);
    int64_t row = rows > 1 ? s->row : n;
    for (int64_t r = 0; r < rows; r++, to += (size_t)row * size) {
        const char *first = from + at.offset[k] * (int64_t)size;
        if (s->step[k])
            memcpy(to, first, (size_t)row * size);
        else
            fill(to, first, (size_t)row, size);
        walk_next(&s->walk, s->walk.rank, &at);
    }
}

/* Input k as the tile function wants it: `begin` elements into the row at `at`, element `first` of
 * the output. */
static const void *operand_tile(const struct state *s, int k, const char *from,
                                const struct place *at, int64_t rows, int64_t begin,
                                int64_t first, int64_t n, struct buffers *b) {
    const struct operand *o = &s->in[k];
    size_t size = tri_type_size(o->type);
    const void *raw = b->raw;
    if (o->dense) {
        raw = from + (size_t)first * size;
    } else if (o->uniform) {
        if (first) return cpu_is_half(o->type) ? (const void *)b->wide : b->raw;
        fill(b->raw, from, (size_t)(s->count < TILE ? s->count : TILE), size);
        n = s->count < TILE ? s->count : TILE;
    } else if (rows == 1 && s->step[k]) {
        raw = from + (at->offset[k] + begin) * (int64_t)size;
    } else {
        gather(s, k, from, *at, rows, n, (char *)b->raw);
    }
    if (!cpu_is_half(o->type)) return raw;
    tile_widen(o->type, b->wide, raw, (size_t)n);
    return b->wide;
}

static void tile(const struct state *s, const tri_call *c, const struct place *at, int64_t rows,
                 int64_t begin, int64_t first, int64_t n, struct buffers *b) {
    const void *in[MAX_IN];
    for (int k = 0; k < s->n_in; k++)
        in[k] = operand_tile(s, k, c->in[k], at, rows, begin, first, n, &b[k]);
    char *out = (char *)c->out[0] + (size_t)first * tri_type_size(s->out);
    if (!cpu_is_half(s->out)) {
        s->fn(out, in, s->p, (size_t)n);
        return;
    }
    s->fn(b[MAX_IN].wide, in, s->p, (size_t)n);
    tile_narrow(s->out, out, b[MAX_IN].wide, (size_t)n);
}

static void run(const tri_call *c) {
    const struct state *s = c->state;
    struct buffers b[MAX_IN + 1];
    struct place at = {0};
    int64_t first = 0;
    while (first < s->count && s->rows_per_tile) {
        int64_t left = (s->count - first) / s->row;
        int64_t rows = left < s->rows_per_tile ? left : s->rows_per_tile;
        tile(s, c, &at, rows, 0, first, rows * s->row, b);
        first += rows * s->row;
        for (int64_t r = 0; r < rows; r++) walk_next(&s->walk, s->walk.rank, &at);
    }
    for (; first < s->count; first += s->row) {
        for (int64_t begin = 0; begin < s->row; begin += TILE) {
            int64_t n = s->row - begin < TILE ? s->row - begin : TILE;
            tile(s, c, &at, 1, begin, first + begin, n, b);
        }
        walk_next(&s->walk, s->walk.rank, &at);
    }
}

/* ---- preparation ---- */

/* The walk holds the strides of the inputs; its last dimension becomes the row. */
static void finish(const tri_node *n, struct state *s) {
    s->count = walk_count(&s->walk);
    s->out = cpu_out(n, 0)->type;
    walk_simplify(&s->walk);
    s->n_in = s->walk.n;
    for (int k = 0; k < s->n_in; k++) {
        s->in[k] = (struct operand){.type = cpu_in(n, k)->type,
                                    .dense = walk_is_dense(&s->walk, k), .uniform = true};
        for (int d = 0; d < s->walk.rank; d++)
            if (s->walk.stride[k][d]) s->in[k].uniform = false;
    }
    s->row = 1;
    if (s->walk.rank) {
        int last = s->walk.rank - 1;
        s->row = s->walk.dim[last];
        for (int k = 0; k < s->n_in; k++) s->step[k] = s->walk.stride[k][last];
        walk_remove(&s->walk, last);
    }
    s->rows_per_tile = s->row && s->row < LONG_ROW ? TILE / s->row : 0;
}

/* n_in inputs, broadcast to the output. */
static tri_status prepare_broadcast(const tri_node *n, int n_in, tile_fn *fn, void **state) {
    tri_status status = cpu_state(n, sizeof(struct state), state);
    if (status) return status;
    struct state *s = *state;
    s->walk = walk_of(n->out, n_in);
    for (int k = 0; k < n_in; k++) walk_operand(&s->walk, k, n->in[k], n->out);
    s->fn = fn;
    tile_params(n, s->p);
    finish(n, s);
    return TRI_OK;
}

/* A tile is read before it is written. */
static bool shares(const void *state, int out, int in) {
    const struct state *s = state;
    (void)out;
    return s->in[in].dense && tri_type_size(s->in[in].type) == tri_type_size(s->out);
}

static void plan(const tri_node *n, struct kernel *k) {
    (void)n;
    k->shares = shares;
}

static tri_status prepare(const tri_node *n, void **state) {
    return prepare_broadcast(n, n->n_in, tile_find(n), state);
}

static tri_status prepare_expand(const tri_node *n, void **state) {
    return prepare_broadcast(n, 1, tile_copy(cpu_out(n, 0)->type), state);
}

/* Input 0 has no dimension, or one of length 1, where the output is reduced. */
static tri_status prepare_spread(const tri_node *n, void **state) {
    int64_t count = tri_attr_int(n, "count");
    tri_status status = cpu_state(n, sizeof(struct state), state);
    if (status) return status;
    struct state *s = *state;
    s->walk = walk_over(&cpu_out(n, 0)->shape, 1);
    walk_reduced(&s->walk, 0, op_axes_mask(n, s->walk.rank));
    s->fn = count == 1 ? tile_copy(cpu_out(n, 0)->type) : tile_divide;
    s->p[0] = (float)count;
    finish(n, s);
    return TRI_OK;
}

static const char *supports_spread(const tri_node *n) {
    return type_is_float(cpu_out(n, 0)->type) || tri_attr_int(n, "count") == 1
               ? NULL
               : "spread divides floating-point numbers only; tri_cast to f32";
}

static void fill_like(const tri_call *c) {
    cpu_fill(cpu_out(c->node, 0), c->out[0], tri_attr_float(c->node, "value"));
}

/* stop_gradient, reshape: the same elements in the same order. */
static void same(const tri_call *c) {
    if (c->out[0] != c->in[0]) memcpy(c->out[0], c->in[0], base_spec_bytes(cpu_out(c->node, 0)));
}

static void plan_same(const tri_node *n, struct kernel *k) {
    (void)n;
    k->alias = true;
}

static const char *supports(const tri_node *n) {
    return tile_find(n) ? NULL : "it has no arithmetic of this type on cpu; tri_cast to f32";
}

#define ROW(name)                                                                           \
    {.op = #name, .run = run, .supports = supports, .prepare = prepare, .release = free,    \
     .plan = plan},

const struct dev_row cpu_elementwise[] = {
    ROW(neg) ROW(exp) ROW(log) ROW(sqrt) ROW(rsqrt) ROW(abs) ROW(sign) ROW(erf) ROW(clip)
    ROW(relu) ROW(relu6) ROW(leaky_relu) ROW(gelu) ROW(gelu_tanh) ROW(silu) ROW(sigmoid)
    ROW(tanh) ROW(softplus) ROW(not) ROW(cast) ROW(add) ROW(sub) ROW(mul) ROW(div) ROW(pow)
    ROW(maximum) ROW(minimum) ROW(equal) ROW(not_equal) ROW(less) ROW(less_equal) ROW(greater)
    ROW(greater_equal) ROW(and) ROW(or) ROW(where)
    {.op = "expand", .run = run, .prepare = prepare_expand, .release = free},
    {.op = "spread", .run = run, .supports = supports_spread, .prepare = prepare_spread,
     .release = free},
    {.op = "fill_like", .run = fill_like},
    {.op = "stop_gradient", .run = same, .plan = plan_same},
    {.op = "reshape", .run = same, .plan = plan_same},
    {0},
};
