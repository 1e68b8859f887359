/* SPDX-License-Identifier: Apache-2.0
 * Runs chains: copies each operand's tile into a contiguous run (or uses it in place if it is one),
 * calls the tile functions one after the other, and stores what is used outside. */
#include "dev/cpu/chain_plan.h"

struct slot {
    _Alignas(64) char bytes[CHAIN_SLOT];
};

/* One call: its range and its tensors. */
struct work {
    const struct chain *c;
    const struct chain_io *io;
    struct place row;     /* of the current row, or the first of several */
    int64_t first, begin; /* the tile's first element: in the output, in its row */
    int64_t n, rows;
    int64_t pattern[CHAIN_OPERANDS]; /* the pattern in the operand's slot; -1: none yet */
    float single[CHAIN_OPERANDS];    /* of bf16 and f16 */
    const void *at[CHAIN_VALUES];
    struct slot *slot;
};

/* ---- operands ---- */

#define FILL(T)                                                                             \
    static void fill_##T(void *to, const void *from, int64_t n, int64_t step) {             \
        T *t = to;                                                                          \
        const T *f = from;                                                                  \
        for (int64_t i = 0; i < n; i++) t[i] = f[i * step];                                 \
    }
FILL(uint8_t)
FILL(uint16_t)
FILL(uint32_t)
FILL(uint64_t)

/* Copies n elements with stride `step`; 0: repeats one. */
static void spread(void *to, const void *from, int64_t n, int64_t step, size_t size) {
    if (step == 1)
        memcpy(to, from, (size_t)n * size);
    else if (size == 1)
        fill_uint8_t(to, from, n, step);
    else if (size == 2)
        fill_uint16_t(to, from, n, step);
    else if (size == 4)
        fill_uint32_t(to, from, n, step);
    else
        fill_uint64_t(to, from, n, step);
}

void cpu_fill(const tri_spec *spec, void *to, double value) {
    uint64_t one = 0;
    convert_store(spec->type, &one, 0, value);
    spread(to, &one, tri_shape_count(&spec->shape), 0, tri_type_size(spec->type));
}

/* The form that tile functions need: 16-bit floats become f32, in the operand's slot. */
static const void *widened(const struct operand *o, const struct work *w, const void *raw,
                           int64_t n) {
    if (!o->widen) return raw;
    float *to = (float *)w->slot[o->slot].bytes;
    o->widen(to, raw, (size_t)n);
    return to;
}

static const void *gathered(const struct operand *o, int k, const struct work *w,
                            const char *from) {
    const struct chain *c = w->c;
    struct place row = w->row;
    size_t size = tri_type_size(o->type);
    char *to = w->slot[o->widen ? c->raw_slot : o->slot].bytes, *at = to;
    int64_t n = w->rows > 1 ? c->row : w->n;
    for (int64_t r = 0; r < w->rows; r++, at += (size_t)n * size) {
        int64_t first = row.offset[k] + (w->rows > 1 ? 0 : w->begin) * o->step;
        spread(at, from + first * (int64_t)size, n, o->step, size);
        walk_next(&c->walk, c->walk.rank, &row);
    }
    return widened(o, w, to, w->n);
}

/* A repeating row is written once, as often as a tile that starts anywhere needs. */
static const void *pattern(const struct operand *o, int k, struct work *w, const char *from) {
    size_t size = tri_type_size(o->type), width = tile_size(tile_type(o->type));
    char *to = w->slot[o->slot].bytes;
    if (w->pattern[k] != w->row.offset[k]) {
        size_t have = (size_t)o->period * width, all = (size_t)(TILE + o->period) * width;
        const void *raw = from + w->row.offset[k] * (int64_t)size;
        if (o->widen)
            o->widen((float *)to, raw, (size_t)o->period);
        else
            memcpy(to, raw, have);
        for (; have < all; have *= 2) memcpy(to + have, to, have < all - have ? have : all - have);
        w->pattern[k] = w->row.offset[k];
    }
    return to + (size_t)(w->begin % o->period) * width;
}

static const void *single(const struct operand *o, int k, struct work *w, const char *from) {
    const char *raw = from + w->row.offset[k] * (int64_t)tri_type_size(o->type);
    if (!o->widen) return raw;
    o->widen(&w->single[k], raw, 1);
    return &w->single[k];
}

/* Prefetches the next tile: tiles of several separate operands are short runs, which hardware does
 * not prefetch. In a tail so are those of the output. */
static void ask_ahead(const char *next, int64_t bytes) {
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(next + i);
}

static const void *load(const struct operand *o, int k, struct work *w) {
    bool made = o->index == CHAIN_MADE;
    const char *from = made ? w->io->made : w->io->in[o->index];
    int64_t size = (int64_t)tri_type_size(o->type);
    switch (o->mode) {
    case OPERAND_DENSE:
        if (!made) ask_ahead(from + (w->first + w->n) * size, w->n * size);
        return widened(o, w, from + (w->first - (made ? w->io->made_first : 0)) * size, w->n);
    case OPERAND_ROW:
        return widened(o, w, from + (w->row.offset[k] + w->begin) * size, w->n);
    case OPERAND_SINGLE:
        return single(o, k, w, from);
    case OPERAND_PATTERN:
        return pattern(o, k, w, from);
    default:
        return gathered(o, k, w, from);
    }
}

/* ---- steps ---- */

/* A single value for the whole tile: `to` stores it once, the output once per element. */
static void store_single(const struct step *s, void *to, char *out, int64_t n) {
    uint16_t half;
    if (s->narrow) s->narrow(&half, to, 1);
    spread(out, s->narrow ? &half : to, n, 0, s->stored_size);
}

static void run_step(const struct step *s, struct work *w, int value) {
    const void *in[3] = {NULL};
    char *out = s->out < 0 ? NULL : (char *)w->io->out[s->out] + (size_t)w->first * s->stored_size;
    void *to = s->slot < 0 ? out : w->slot[s->slot].bytes;
    size_t n = s->single ? 1 : (size_t)w->n;
    if (out && w->io->made) ask_ahead(out + n * s->stored_size, (int64_t)(n * s->stored_size));
    for (int i = 0; i < s->n_in; i++) in[i] = w->at[s->in[i]];
    if (s->fn)
        s->fn(to, in, s->p, n);
    else
        spread(to, in[0], w->n, 0, s->width);
    w->at[value] = to;
    if (out && s->single)
        store_single(s, to, out, w->n);
    else if (out && s->narrow)
        s->narrow(out, to, n);
    if (s->round) s->round(to, n);
}

static void run_tile(struct work *w) {
    const struct chain *c = w->c;
    for (int i = 0, l = 0; i < c->n_steps; i++) {
        for (; l < c->n_operands && c->operand[c->load[l]].first == i; l++)
            w->at[c->load[l]] = load(&c->operand[c->load[l]], c->load[l], w);
        run_step(&c->step[i], w, CHAIN_OPERANDS + i);
    }
}

/* ---- tiles ---- */

/* The rest of the range, cut into a piece of the row or into several whole rows. */
static void next_tile(struct work *w, int64_t end) {
    const struct chain *c = w->c;
    w->rows = 1;
    if (w->begin || !c->rows_per_tile || end - w->first < c->row) {
        w->n = least(least(c->piece, c->row - w->begin), end - w->first);
    } else {
        w->rows = least(c->rows_per_tile, (end - w->first) / c->row);
        w->n = w->rows * c->row;
    }
}

void chain_run(const struct chain *c, const struct chain_io *io, int64_t first, int64_t n) {
    if (n <= 0) return;
    struct slot slots[CHAIN_SLOTS];
    struct work w = {.c = c, .io = io, .first = first, .slot = slots};
    for (int k = 0; k < c->n_operands; k++) w.pattern[k] = -1;
    walk_seek(&c->walk, first / c->row, &w.row);
    w.begin = first % c->row;
    while (w.first < first + n) {
        next_tile(&w, first + n);
        run_tile(&w);
        w.first += w.n;
        w.begin += w.n;
        for (; w.begin >= c->row; w.begin -= c->row) walk_next(&c->walk, c->walk.rank, &w.row);
    }
}
