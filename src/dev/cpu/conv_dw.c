/* SPDX-License-Identifier: Apache-2.0
 * The derivative of a convolution's weight, cut into parts. A part is either a range of outputs,
 * for which it reads all samples, or a range of samples, whose sums a second round adds up. The
 * larger operand is read once: the weight, or what a tap reads of x. */
#include "dev/cpu/conv_dw.h"

#include "dev/cpu/conv_own.h"
#include "dev/cpu/conv_sums.h"

enum { DY, X, BROUGHT };

struct state {
    struct window w;
    tri_type type;
    bool by_outputs;
    bool winograd, thin, tiles;
    const struct conv_dw_way *way;
    int64_t parts;
    int64_t slices;             /* of the outputs of a part, without by_outputs */
    struct conv_sums sums;
    struct copy bring[BROUGHT]; /* a sample into blocks, */
    bool brings[BROUGHT];       /* where it lies otherwise */
    size_t bytes[BROUGHT];      /* of a sample */
    size_t at[BROUGHT], tile, sum, scratch; /* where they begin in the scratch */
};

/* ---- which convolutions ---- */

bool conv_dw_takes(const tri_node *n) {
    const tri_type type = cpu_in(n, 0)->type;
    return node_is(n, "conv2d_dw") && (type == TRI_F32 || type == TRI_BF16);
}

/* Of channels, or 0 where those of a group do not fill blocks. */
static int block_of(const struct window *w, bool thin, int which) {
    return !thin && (which == DY ? w->o : w->c) / w->groups % DW_BLOCK ? 0 : DW_BLOCK;
}

/* ---- preparation ---- */

static bool by_tiles(const struct state *s) {
#ifdef CPU_AMX
    return s->type == TRI_BF16 && !s->thin && isa_products(true) == ISA_amx &&
           block_of(&s->w, false, DY) && block_of(&s->w, false, X);
#else
    (void)s;
    return false;
#endif
}

static const struct conv_dw_way *way_of(const struct state *s) {
#ifdef CPU_AMX
    if (s->tiles) return &conv_tiles_dw;
#endif
#define WINOGRAD(isa) &conv_wino_dw_##isa,
#define THIN(isa) &conv_thin_dw_##isa,
#define DIRECT(isa) &conv_direct_dw_##isa,
    static const struct conv_dw_way *const direct[] = {EVERY_PRODUCT_ISA(DIRECT)};
    static const struct conv_dw_way *const winograd[] = {EVERY_ISA(WINOGRAD)};
    static const struct conv_dw_way *const thin[] = {EVERY_ISA(THIN)};
    return s->winograd ? winograd[isa_best()]
           : s->thin   ? thin[isa_best()]
                       : direct[isa_products(s->type == TRI_BF16)];
}

static struct cpu_range samples_of(const struct state *s, int64_t part) {
    if (s->by_outputs) return (struct cpu_range){0, s->w.n};
    return (struct cpu_range){s->w.n * part / s->parts, s->w.n * (part + 1) / s->parts};
}

/* Outputs of a part at least, where each part transforms all of x, or pairs it for tiles. */
#define WINOGRAD_OUTPUTS 128
#define TILE_OUTPUTS 64

static void divide(const tri_node *n, struct state *s) {
    const struct window *w = &s->w;
    const int64_t read = w->n * w->c * w->oh * w->ow; /* of x, by a tap */
    s->by_outputs = cpu_out_count(n, 0) >= read && block_of(w, false, DY);
    s->parts = s->by_outputs ? conv_parts(w) : conv_sum_parts(w, conv_parts(w));
    if (!s->by_outputs && s->parts > w->n) s->parts = w->n;
    const int64_t most = w->o / (s->winograd ? WINOGRAD_OUTPUTS : TILE_OUTPUTS);
    const int64_t wide = most > 2 ? most : 2;
    if (s->by_outputs && (s->winograd || s->tiles) && s->parts > wide) s->parts = wide;
}

static tri_status make_bring(const tri_node *n, int which, struct state *s) {
    const tri_tensor *t = n->in[which];
    const struct pack wanted = {.rank = 4, .blocks = block_of(&s->w, s->thin, which) > 0,
                                .order = {0, 1, 2, 3}, .dim = {1}, .size = {DW_BLOCK}};
    const tri_shape *shape = &t->spec.shape;
    struct pack lies;
    s->bytes[which] = base_spec_bytes(&t->spec) / (size_t)s->w.n;
    pack_of(t, &lies);
    s->brings[which] = !pack_equal(&lies, &wanted, shape);
    const char *why =
        copy_formats(shape, 1, s->type, &wanted, s->type, &lies, &s->bring[which]);
    return why ? base_fail(TRI_USAGE, "%s (conv2d_dw): %s", n->name, why) : TRI_OK;
}

static size_t rounded(size_t bytes) { return (bytes + 63) / 64 * 64; }

static void lay_scratch(struct state *s) {
    size_t all = 0, tile = 0;
    const int64_t blocks = s->sums.rows / s->sums.block;
    const int64_t channels =
        s->by_outputs ? (blocks + s->parts - 1) / s->parts * s->sums.block : s->sums.rows;
    int64_t most = 0;
    for (int64_t p = 0; p < s->parts; p++) {
        const struct cpu_range r = samples_of(s, p);
        struct window part = s->w;
        part.n = r.end - r.begin;
        const size_t bytes = s->way->scratch(&part, s->type == TRI_BF16, channels);
        if (part.n > most) most = part.n;
        if (bytes > tile) tile = bytes;
    }
    for (int i = 0; i < BROUGHT; i++) {
        s->at[i] = all;
        if (s->brings[i]) all += rounded(s->bytes[i] * (size_t)most);
    }
    s->tile = all;
    s->sum = all += rounded(tile);
    if (s->by_outputs) all += (size_t)channels * s->sums.row * sizeof(float);
    s->scratch = all;
}

static tri_status prepare(const tri_node *n, void **state) {
    struct pack order = {.rank = 4, .order = {0, 2, 3, 1}};
    tri_status status = cpu_state(n, sizeof(struct state), state);
    if (status) return status;
    struct state *s = *state;
    CHECK(window_of(n, &s->w));
    s->type = cpu_in(n, 0)->type;
    s->winograd = tri_attr_int(n, "way") == WAY_WINOGRAD && conv_wino_fits(n, &s->w);
    s->thin = conv_thin_fits(s->type, &s->w);
    s->tiles = by_tiles(s);
    s->way = way_of(s);
    divide(n, s);
    if (s->tiles) {
        order.blocks = 2;
        for (int i = 0; i < 2; i++) order.dim[i] = i, order.size[i] = DW_BLOCK;
    }
    status = s->by_outputs ? conv_sums_make(n, &order, DW_BLOCK, s->parts, &s->sums)
                           : conv_sums_make(n, &order, 1, CONV_MOST_PARTS, &s->sums);
    if (s->by_outputs) s->parts = s->sums.parts;
    for (int i = 0; i < BROUGHT && !status; i++) status = make_bring(n, i, s);
    s->slices = 1;
    if (s->thin && !s->brings[DY] && !s->brings[X])
        s->slices = least(cpu_parts(s->w.o / DW_BLOCK, s->w.n * s->w.oh * s->w.ow *
                                                           (int64_t)s->sums.row / s->parts),
                          (CONV_MOST_PARTS + s->parts - 1) / s->parts);
    if (status)
        free(s);
    else
        lay_scratch(s);
    return status;
}

static void plan(const tri_node *n, struct kernel *k) {
    const struct state *s = k->state;
    k->scratch = s->scratch;
    k->parts = s->parts * s->slices;
    if (s->by_outputs) return;
    k->then = s->sums.parts;
    k->shared = (size_t)(s->parts * cpu_out_count(n, 0)) * sizeof(float);
}

/* ---- running ---- */

/* A kernel that needs no scratch has none. */
static void *scratch_at(const tri_call *c, size_t at) {
    return c->scratch ? (char *)c->scratch + at : NULL;
}

static const void *blocks_of(const struct state *s, const tri_call *c, int which,
                             struct cpu_range r) {
    const struct copy *bring = &s->bring[which];
    const char *from = (const char *)c->in[which] + r.begin * bring->next_from;
    char *to = scratch_at(c, s->at[which]);
    if (!s->brings[which]) return from;
    copy_several(bring, to, from, r.end - r.begin);
    return to;
}

static void run(const tri_call *c) {
    const struct state *s = c->state;
    const int64_t p = c->part / s->slices, blocks = s->w.o / DW_BLOCK, slice = c->part % s->slices;
    if (p >= s->parts) {
        conv_sums_add(&s->sums, c, c->part - s->parts * s->slices, c->shared, s->parts);
        return;
    }
    const struct cpu_range samples = samples_of(s, p), all = {0, s->w.o};
    const struct cpu_range some = {blocks * slice / s->slices * DW_BLOCK,
                                   blocks * (slice + 1) / s->slices * DW_BLOCK};
    struct window part = s->w;
    part.n = samples.end - samples.begin;
    const void *dy = blocks_of(s, c, DY, samples), *x = blocks_of(s, c, X, samples);
    const bool half = s->type == TRI_BF16;
    void *tile = scratch_at(c, s->tile);
    if (s->by_outputs) {
        float *sum = scratch_at(c, s->sum);
        s->way->sum(&part, half, conv_sums_channels(&s->sums, c->part), dy, x, sum, tile);
        conv_sums_put(&s->sums, c, c->part, sum);
    } else {
        const struct cpu_range r = s->slices > 1 ? some : all;
        float *sum = (float *)c->shared + (size_t)(p * s->sums.rows + r.begin) * s->sums.row;
        s->way->sum(&part, half, r, dy, x, sum, tile);
    }
}

static void formats(const tri_node *n, struct format *in, struct format *out) {
    struct window w;
    (void)out;
    CHECK(window_of(n, &w));
    const bool thin = conv_thin_fits(cpu_in(n, 0)->type, &w);
    in[DY].block = block_of(&w, thin, DY);
    in[X].block = block_of(&w, thin, X);
}

const struct dev_row cpu_conv_dw[] = {
    {.op = "conv2d_dw",
     .run = run,
     .prepare = prepare,
     .release = free,
     .plan = plan,
     .formats = formats,
     .any_order = true},
    {0},
};
