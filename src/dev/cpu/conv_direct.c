/* SPDX-License-Identifier: Apache-2.0
 * Convolutions and their derivatives by x, in f32 and bf16, of any shape, as products (gemm.h): a
 * row is a place of the output, a column an output channel, and k goes over the taps of the weight
 * in order, and for each over the input channels. For each block of k, what some places read is
 * gathered: of blocks of 16 channels a slice for each, of planes a row for each channel, which has
 * all places. Of bf16 two slices, or 32 rows, make a group, across taps. Padding is zeros, which
 * are multiplied: an infinite or NaN weight reaches outputs beside which there is padding. With AMX
 * conv_tiles.c computes bf16 whose input channels, in blocks, are multiples of 32.
 *
 * The derivative by x with strides is computed for each remainder of a place by the stride, which
 * has taps of its own; taps that fall between strides are not counted. */
#include "dev/cpu/conv_own.h"
#include "dev/cpu/conv_rows.h"
#include "dev/cpu/conv_sums.h"
#include "dev/cpu/conv_tiles.h"
#include "dev/cpu/gemm.h"
#include "dev/cpu/gemm_tiles.h"
#include "dev/cpu/half.h"
#include "dev/cpu/turn.h"

#define BLOCK 16  /* channels that lie together */
/* Places that are computed together: what they read fits the second-level cache. */
#define CHUNK 192
#define UNEVEN 16 /* floats between slices or rows, which spreads them over the sets of a cache */

_Static_assert(BLOCK == GEMM_SLICE && BLOCK == GEMM_PANEL, "a block is a slice and a panel");
_Static_assert(CHUNK <= CONV_PLACES, "they are looked at together");

struct state {
    struct window w;
    bool back; /* dx */
    bool half; /* of bf16 */
    struct conv_plane from, to; /* of all groups */
    int64_t reads, makes;       /* channels of a group of them */
    int64_t steps;              /* of a panel of the weight */
    bool pairs;                 /* the weight is bf16 in panels of pairs */
    bool tiles;                 /* conv_tiles.h */
    bool packs;                 /* a first round packs the weight */
    int64_t packers, parts;     /* parts of the rounds */
};

static struct conv_axis down_of(const struct state *s, int64_t remainder) {
    const struct window *w = &s->w;
    return conv_axis_of(s->back, remainder, s->to.h, w->kh, w->sh, w->ph, w->dh);
}

static struct conv_axis across_of(const struct state *s, int64_t remainder) {
    const struct window *w = &s->w;
    return conv_axis_of(s->back, remainder, s->to.w, w->kw, w->sw, w->pw, w->dw);
}

static int64_t remainders(const struct state *s, int64_t stride) { return s->back ? stride : 1; }

/* ---- the weight ---- */

static int64_t panels_of(const struct state *s) { return (s->makes + BLOCK - 1) / BLOCK; }

static int64_t panel_floats(const struct state *s) { return s->steps * BLOCK; }

/* An element of a plain weight of a group; -1: there is none. */
static int64_t weight_at(const struct state *s, int64_t group, int64_t made, int64_t tap,
                         int64_t k) {
    if (made >= s->makes) return -1;
    const int64_t at = s->back ? (group * s->reads + k) * s->makes + made
                               : (group * s->makes + made) * s->reads + k;
    return at * s->w.kh * s->w.kw + tap;
}

/* A panel of f32: [tap, channel, 16], zeros after the last output channel. */
static void pack_panel(const struct state *s, const float *weight, int64_t group, int64_t first,
                       float *to) {
    for (int64_t t = 0; t < s->w.kh * s->w.kw; t++)
        for (int64_t k = 0; k < s->reads; k++, to += BLOCK)
            for (int64_t i = 0; i < BLOCK; i++) {
                const int64_t at = weight_at(s, group, first + i, t, k);
                to[i] = at < 0 ? 0 : weight[at];
            }
}

/* What the taps of a remainder have in a panel of bf16: [step, 16]. Returns what is after it. */
static float *pack_half_taps(const struct state *s, const uint16_t *weight, int64_t group,
                             int64_t first, const struct conv_axis *down,
                             const struct conv_axis *across, float *to) {
    const int64_t terms = down->taps * across->taps * s->reads, taps = s->w.kh * s->w.kw;
    const int64_t each = s->pairs ? 2 : 1;
    int64_t tap = terms ? conv_tap(down, across, s->w.kw, 0) : 0, k = 0, t = 0;
    for (int64_t begin = 0, n; begin < terms; begin += n, to += half_steps(n) * BLOCK) {
        half_step_bits pair[HALF_GROUP / 2][BLOCK] = {0};
        n = least(terms - begin, HALF_GROUP);
        for (int64_t i = 0; i < n; i += each) {
            const int64_t line = ((first / BLOCK * taps + tap) * s->reads + k) / 2;
            if (s->pairs) memcpy(pair[i / 2], weight + line * 2 * BLOCK, sizeof *pair);
            for (int64_t j = 0; !s->pairs && j < BLOCK; j++) {
                const int64_t at = weight_at(s, group, first + j, tap, k);
                if (at >= 0) pair[i / 2][j] |= (uint32_t)weight[at] << i % 2 * 16;
            }
            k += each;
            if (k == s->reads) k = 0, tap = conv_tap(down, across, s->w.kw, ++t);
        }
        half_pairs((const float *)(const void *)pair, (n + 1) / 2 * 2, BLOCK, to);
    }
    return to;
}

/* [group, panel, step, 16] */
static void pack_weight(const struct state *s, const tri_call *c) {
    const int64_t panels = panels_of(s);
    const struct cpu_range r = cpu_part(c, s->packers, s->w.groups * panels);
    for (int64_t p = r.begin; p < r.end; p++) {
        const int64_t group = p / panels, first = p % panels * BLOCK;
        float *to = (float *)c->shared + p * panel_floats(s);
        if (!s->half) pack_panel(s, c->in[1], group, first, to);
        for (int64_t i = 0; s->half && i < remainders(s, s->w.sh); i++)
            for (int64_t j = 0; j < remainders(s, s->w.sw); j++) {
                const struct conv_axis down = down_of(s, i), across = across_of(s, j);
                to = pack_half_taps(s, c->in[1], group, first, &down, &across, to);
            }
    }
}

/* ---- one chunk ---- */

/* The places of a chunk and what they read, in the scratch. */
struct chunk {
    struct conv_places at;
    int64_t place[CHUNK];           /* of the output: elements */
    float *c[CHUNK];                /* what is computed */
    struct gemm_run run[GEMM_BLOCK];
    int64_t runs, k;                /* of the block of k so far */
    int64_t b;                      /* where the next group begins in a panel of the weight */
    uint16_t row[HALF_GROUP][CHUNK]; /* of the present group */
    float read[GEMM_BLOCK * (CHUNK + UNEVEN)];
    float made[];                   /* [panel, CHUNK, 16], unless the output takes it as it is */
};
#define SLICE_FLOATS (CHUNK * GEMM_SLICE + UNEVEN) /* floats from slice to slice */
#define ROW_FLOATS (CHUNK + UNEVEN)                /* and from row to row */

#define GROUP_FLOATS (CHUNK * HALF_STEPS + UNEVEN)  /* and from group to group of slices */
/* k of a block of bf16: tiles read and write c less often. */
#define HALF_BLOCK (HALF_TILES ? 2 * GEMM_BLOCK : GEMM_BLOCK)

_Static_assert(GEMM_BLOCK / GEMM_SLICE * SLICE_FLOATS <= GEMM_BLOCK * ROW_FLOATS, "slices fit");
_Static_assert(HALF_BLOCK / HALF_GROUP * GROUP_FLOATS <= GEMM_BLOCK * ROW_FLOATS, "groups fit");
#if HALF_TILES
_Static_assert(HALF_BLOCK / HALF_GROUP <= GEMM_TILES_RUNS, "gemm_tiles_runs takes a block");
#endif
_Static_assert(HALF_BLOCK / HALF_STEP <= GEMM_BLOCK, "and so do rows of steps");

static bool plain(const struct conv_plane *p) { return p->place == 1; }
static bool stores(const struct state *s) { return plain(&s->to) || s->half; }

static void find_outputs(const struct state *s, const struct conv_axis *down,
                         const struct conv_axis *across, void *y, struct chunk *k) {
    for (const struct conv_span *p = k->at.span; p < k->at.span + k->at.spans; p++) {
        const int64_t h = down->first + p->line * down->step;
        const int64_t w = across->first + p->column * across->step;
        int64_t place = p->sample * conv_plane_size(&s->to) + (h * s->to.w + w) * s->to.place;
        for (int64_t r = p->at; r < p->at + p->n; r++, place += across->step * s->to.place) {
            k->place[r] = place;
            k->c[r] = stores(s) ? k->made + r * BLOCK : (float *)y + place;
        }
    }
}

/* 16 channels of what they read, in blocks that begin at x: a slice. Of bf16 the first or second
 * half of a group, or, if `alone`, all of it. */
INLINE void gather_slice(const bool half, const bool alone, const int second, const void *x,
                         const struct conv_places *p, float *to) {
    static const float zeros[BLOCK];
    for (int64_t k = 0; k < p->pieces; k++) {
        const struct conv_piece *piece = &p->piece[k];
        const int64_t move = piece->from < 0 ? 0 : p->move;
        const void *from = piece->from < 0 ? zeros : element_at(half, x, piece->from);
        for (int64_t r = 0; r < piece->n; r++, from = element_at(half, from, move)) {
            if (!half)
                memcpy(to, from, sizeof zeros);
            else if (alone)
                half_along(from, BLOCK, to);
            else
                half_16(from, second, HALF_STEPS / 2, to);
            to += half ? HALF_STEPS : BLOCK;
        }
    }
}

static void add_bias(const struct state *s, const void *bias, const struct gemm_block *g) {
    for (int64_t i = 0; i < s->makes; i++) {
        const float b = s->half ? convert_bf16_to_f32(((const uint16_t *)bias)[i])
                                : ((const float *)bias)[i];
        for (int64_t r = 0; r < g->m; r++) g->c[r][i / BLOCK * g->c_panel + i % BLOCK] += b;
    }
}

/* Whether 8 places from r on lie side by side. Places ascend, so the last of them decides. */
static bool together(const struct chunk *k, int64_t r) {
    return r + 8 <= k->at.n && k->place[r + 7] == k->place[r] + 7;
}

/* Channels [i, i + n) of planes. */
static void store_planes(const struct chunk *k, int64_t i, int64_t n, int64_t plane, float *y) {
    const float *from = k->made + i / BLOCK * CHUNK * BLOCK + i % BLOCK;
    y += i * plane;
    for (int64_t r = 0; r < k->at.n; r++) {
        float *to = y + k->place[r];
        if (n == 4 && together(k, r)) {
            turn_8_4(from + r * BLOCK, BLOCK, to, plane);
            r += 7;
            continue;
        }
        for (int64_t c = 0; c < n; c++) to[c * plane] = from[r * BLOCK + c];
    }
}

/* To the group's output. */
static void store(const struct state *s, const struct chunk *k, void *y) {
    const int64_t plane = s->to.h * s->to.w, each = plain(&s->to) ? 1 : BLOCK;
    if (!s->half) {
        for (int64_t i = 0; i < s->makes; i += 4)
            store_planes(k, i, least(4, s->makes - i), plane, y);
        return;
    }
    for (int64_t i = 0; i < s->makes; i += each)
        for (int64_t r = 0; r < k->at.n; r++)
            gemm_round(k->made + (i / BLOCK * CHUNK + r) * BLOCK + i % BLOCK, each,
                       (uint16_t *)y + k->place[r] + i * plane);
}

static void clear(const struct gemm_block *g) {
    for (int64_t r = 0; r < g->m; r++)
        for (int64_t n = 0; n < g->n; n += BLOCK)
            memset(g->c[r] + n / BLOCK * g->c_panel, 0, BLOCK * sizeof(float));
}

/* What the next block of k will read, or the next chunk: the same places of the next channels, or
 * the places after them. Nothing where the places do not lie close together. */
static void look_ahead(const struct state *s, const void *x, const struct chunk *k,
                       int64_t channels_done, struct gemm_block *g) {
    const int64_t plane = s->from.h * s->from.w;
    const struct conv_piece *first = k->at.piece, *last = first + k->at.pieces - 1;
    while (first < last && first->from < 0) first++;
    while (first < last && last->from < 0) last--;
    if (last->from < 0) return;
    const int64_t span = last->from + last->n * k->at.move - first->from, size = s->half ? 2 : 4;
    if (span <= 0 || span > 4 * CHUNK * BLOCK) return;
    g->next = (struct gemm_next){
        element_at(s->half, x, first->from + (channels_done ? channels_done * plane : span)),
        least(s->half ? HALF_BLOCK : GEMM_BLOCK, s->reads - channels_done) / BLOCK,
        plane * BLOCK * size, span * size, 0};
}

/* The product of the block of k so far. */
static void flush(struct chunk *k, struct gemm_block *g) {
    g->runs = k->runs;
    gemm_runs(g);
    k->runs = k->k = 0;
    g->next.rows = 0;
    g->add = true;
}

/* A group of n terms of bf16 begins, `a` floats from those of the block before it. */
static struct gemm_run *add_group(struct chunk *k, int64_t a, int64_t n) {
    struct gemm_run *run = k->run + k->runs;
    *run = (struct gemm_run){k->runs++ * a, k->b, half_chain(n)};
    k->b += half_steps(n) * BLOCK;
    return run;
}

/* A slice of bf16. end: no other follows. */
static void add_half_slice(const void *x, bool end, struct chunk *k) {
    if (k->k % HALF_GROUP) {
        const int64_t group = k->run[k->runs - 1].a;
        gather_slice(true, false, 1, x, &k->at, k->read + group);
        return;
    }
    float *to = k->read + add_group(k, GROUP_FLOATS, end ? BLOCK : HALF_GROUP)->a;
    if (end)
        gather_slice(true, true, 0, x, &k->at, to);
    else
        gather_slice(true, false, 0, x, &k->at, to);
}

/* A tap: all channels of the group, block by block. */
static void read_slices(const struct state *s, const void *x, int64_t tap, bool last, bool in_place,
                        struct chunk *k, struct gemm_block *g) {
    const int64_t plane = s->from.h * s->from.w;
    for (int64_t c = 0; c < s->reads; c += BLOCK) {
        const int64_t slice = k->runs * SLICE_FLOATS;
        const bool end = last && c + BLOCK == s->reads;
        const void *from = element_at(s->half, x, c * plane);
        if (s->half) {
            add_half_slice(from, end, k);
        } else {
            if (!in_place) gather_slice(false, false, 0, from, &k->at, k->read + slice);
            k->run[k->runs++] = (struct gemm_run){in_place ? c * plane : slice,
                                                  (tap * s->reads + c) * BLOCK, GEMM_SLICE};
        }
        k->k += BLOCK;
        if (k->k < (s->half ? HALF_BLOCK : GEMM_BLOCK) && !end) continue;
        if (c + BLOCK < s->reads)
            look_ahead(s, x, k, c + BLOCK, g);
        else if (last)
            look_ahead(s, x, k, 0, g);
        flush(k, g);
    }
}

/* A run, or more of the last one. */
static void add_run(struct chunk *k, int64_t a_k, int64_t a, int64_t b, int64_t n) {
    struct gemm_run *last = k->runs ? k->run + k->runs - 1 : NULL;
    if (last && last->a + last->n * a_k == a && last->b + last->n * BLOCK == b)
        last->n += n;
    else
        k->run[k->runs++] = (struct gemm_run){a, b, n};
}

static void read_rows(const struct state *s, const float *x, int64_t tap, bool last, bool in_place,
                      struct chunk *k, struct gemm_block *g) {
    const int64_t plane = s->from.h * s->from.w;
    for (int64_t c = 0, n; c < s->reads; c += n) {
        const int64_t row = k->k * ROW_FLOATS;
        n = least(s->reads - c, GEMM_BLOCK - k->k);
        for (int64_t i = 0; !in_place && i < n; i++)
            conv_places_row(&k->at, x + (c + i) * plane, k->read + row + i * ROW_FLOATS);
        add_run(k, g->a_k, in_place ? c * plane : row, (tap * s->reads + c) * BLOCK, n);
        k->k += n;
        if (k->k == GEMM_BLOCK || (last && c + n == s->reads)) flush(k, g);
    }
}

static void read_half_rows(const struct state *s, const uint16_t *x, bool last, struct chunk *k,
                           struct gemm_block *g) {
    const uint16_t *term[HALF_GROUP];
    for (int i = 0; i < HALF_GROUP; i++) term[i] = k->row[i];
    for (int64_t c = 0; c < s->reads; c++) {
        const bool end = last && c + 1 == s->reads;
        const int64_t n = k->k++ % HALF_GROUP + 1;
        conv_places_half_row(&k->at, x + c * s->from.h * s->from.w, k->row[n - 1]);
        if (n < HALF_GROUP && !end) continue;
        const struct gemm_run *run = add_group(k, HALF_STEPS * ROW_FLOATS, n);
        half_across(term, n, k->at.n, k->read + run->a, ROW_FLOATS);
        if (k->k == HALF_BLOCK || end) flush(k, g);
    }
}

/* All taps and channels of a group. b: of bf16, where the remainder begins in a panel. */
static void multiply(const struct state *s, const tri_call *c, int64_t group, const void *x,
                     const struct conv_axis *down, const struct conv_axis *across, int64_t b,
                     void *y, struct chunk *k) {
    const int64_t panels = panels_of(s), taps = down->taps * across->taps;
    const float *weight = s->packs ? c->shared : c->in[1];
    struct gemm_block g = {.m = k->at.n, .n = s->makes, .run = k->run, .a = k->read,
                           .a_k = plain(&s->from) ? ROW_FLOATS : 1,
                           .b = weight + group * panels * panel_floats(s), .b_k = BLOCK,
                           .b_panel = panel_floats(s), .c = k->c,
                           .c_panel = (stores(s) ? CHUNK : s->to.h * s->to.w) * BLOCK,
                           .half = s->half};
    k->runs = k->k = 0;
    k->b = b;
    for (int64_t t = 0; t < taps; t++) {
        const int64_t tap = conv_tap(down, across, s->w.kw, t);
        const bool last = t + 1 == taps;
        conv_places_read(down, across, t / across->taps, t % across->taps, &k->at);
        /* They read places that lie together, as a product takes them. */
        const bool in_place = !s->half && taps == 1 && k->at.pieces == 1 &&
                              k->at.piece[0].from >= 0 && k->at.move == s->from.place &&
                              (s->from.place > 1 || s->from.h * s->from.w > 1);
        if (in_place) g.a = (const float *)x + k->at.piece[0].from;
        if (in_place && plain(&s->from)) g.a_k = s->from.h * s->from.w;
        if (!plain(&s->from))
            read_slices(s, x, tap, last, in_place, k, &g);
        else if (s->half)
            read_half_rows(s, x, last, k, &g);
        else
            read_rows(s, x, tap, last, in_place, k, &g);
    }
    if (!taps) clear(&g);
    if (c->node->n_in > 2 && !s->back)
        add_bias(s, element_at(s->half, c->in[2], group * s->makes), &g);
    if (stores(s)) store(s, k, y);
}

#if HALF_TILES
static struct conv_tiles tiles_of(const struct state *s, const struct conv_axis *down,
                                  const struct conv_axis *across) {
    return (struct conv_tiles){.down = *down, .across = *across, .samples = s->w.n,
                               .from = s->from, .to = s->to,
                               .reads = s->reads, .makes = s->makes, .kw = s->w.kw,
                               .packed = s->packs, .b_panel = panel_floats(s)};
}

static bool worth_tiles(const struct state *s) {
    for (int64_t i = 0; i < remainders(s, s->w.sh); i++)
        for (int64_t j = 0; j < remainders(s, s->w.sw); j++) {
            const struct conv_axis down = down_of(s, i), across = across_of(s, j);
            const struct conv_tiles t = tiles_of(s, &down, &across);
            if (down.count && across.count && !conv_tiles_worth(&t)) return false;
        }
    return true;
}

static void run_tiles(const struct state *s, const tri_call *c, const struct conv_axis *down,
                      const struct conv_axis *across, int64_t b, struct cpu_range samples) {
    struct conv_tiles t = tiles_of(s, down, across);
    const int64_t panels = panels_of(s);
    t.samples = samples.end - samples.begin;
    for (int64_t group = 0; group < s->w.groups; group++) {
        const float *weight = s->packs ? (const float *)c->shared + b : c->in[1];
        t.b = weight + group * panels * panel_floats(s);
        t.x = (const uint16_t *)c->in[0] + samples.begin * conv_plane_size(&s->from) +
              group * s->reads * s->from.h * s->from.w;
        t.y = (uint16_t *)c->out[0] + samples.begin * conv_plane_size(&s->to) +
              group * s->makes * s->to.h * s->to.w;
        if (c->node->n_in > 2 && !s->back) t.bias = (const uint16_t *)c->in[2] + group * s->makes;
        conv_tiles_run(&t, c->scratch);
    }
}
#endif

/* The places of one remainder, of some samples; all groups. */
static void run_places(const struct state *s, const tri_call *c, const struct conv_axis *down,
                       const struct conv_axis *across, int64_t b, struct cpu_range samples) {
    struct chunk *k = c->scratch;
    const int64_t n = samples.end - samples.begin, plane = down->count * across->count;
    /* Small planes of several samples are computed together. */
    const int64_t all = (plane < CHUNK / 2 ? n : 1) * plane;
    const int64_t chunks = (all + CHUNK - 1) / CHUNK;
    for (int64_t group = 0; group < s->w.groups; group++) {
        const void *x = element_at(s->half, c->in[0],
                                   samples.begin * conv_plane_size(&s->from) +
                                       group * s->reads * s->from.h * s->from.w);
        char *y = (char *)c->out[0] + (samples.begin * conv_plane_size(&s->to) +
                                       group * s->makes * s->to.h * s->to.w) * (s->half ? 2 : 4);
        for (int64_t from = 0; from < n * plane; from += all)
            for (int64_t i = 0; i < chunks; i++) {
                const int64_t first = from + all * i / chunks;
                conv_places_find(down, across, &s->from, first,
                                 from + all * (i + 1) / chunks - first, &k->at);
                find_outputs(s, down, across, y, k);
                multiply(s, c, group, x, down, across, b, y, k);
            }
    }
}

static void run(const tri_call *c) {
    const struct state *s = c->state;
    if (c->part < s->packers) {
        pack_weight(s, c);
        return;
    }
    const int64_t part = c->part - s->packers;
    const struct cpu_range samples = {s->w.n * part / s->parts, s->w.n * (part + 1) / s->parts};
    for (int64_t i = 0, b = 0; i < remainders(s, s->w.sh); i++)
        for (int64_t j = 0; j < remainders(s, s->w.sw); j++) {
            const struct conv_axis down = down_of(s, i), across = across_of(s, j);
#if HALF_TILES
            if (s->tiles) run_tiles(s, c, &down, &across, b, samples);
            else
#endif
                run_places(s, c, &down, &across, b, samples);
            b += k_steps(s->half, down.taps * across.taps * s->reads) * BLOCK;
        }
}

/* ---- preparation ---- */

static struct conv_plane plane_of(const tri_tensor *t) {
    const int64_t *d = t->spec.shape.dim;
    return (struct conv_plane){d[1], d[2], d[3], t->block ? BLOCK : 1};
}

static tri_status prepare(const tri_node *n, void **state) {
    tri_status status = cpu_state(n, sizeof(struct state), state);
    if (status) return status;
    struct state *s = *state;
    CHECK(window_of(n, &s->w));
    s->back = node_is(n, "conv2d_dx");
    s->from = plane_of(n->in[0]);
    s->to = plane_of(n->out);
    s->reads = s->from.channels / s->w.groups;
    s->makes = s->to.channels / s->w.groups;
    s->half = cpu_in(n, 0)->type == TRI_BF16;
    for (int64_t i = 0; i < remainders(s, s->w.sh); i++)
        for (int64_t j = 0; j < remainders(s, s->w.sw); j++)
            s->steps += k_steps(s->half, down_of(s, i).taps * across_of(s, j).taps * s->reads);
    s->parts = conv_sample_parts(&s->w, conv_parts(&s->w));
    s->pairs = s->half && *n->in[1]->pack;
#if HALF_TILES
    s->tiles = s->half && !plain(&s->from) && !plain(&s->to) && s->reads % HALF_GROUP == 0 &&
               worth_tiles(s);
#endif
    s->packs = s->half ? !(s->tiles && s->pairs) : !*n->in[1]->pack;
    s->packers = s->packs ? least(CONV_MOST_PARTS, s->w.groups * panels_of(s)) : 0;
    return TRI_OK;
}

#if HALF_TILES
static size_t tiles_scratch(const struct state *s) {
    size_t most = 0;
    for (int64_t i = 0; i < remainders(s, s->w.sh); i++)
        for (int64_t j = 0; j < remainders(s, s->w.sw); j++) {
            const struct conv_axis down = down_of(s, i), across = across_of(s, j);
            const struct conv_tiles t = tiles_of(s, &down, &across);
            const size_t bytes = conv_tiles_scratch(&t);
            if (bytes > most) most = bytes;
        }
    return most;
}
#endif

static void plan(const tri_node *n, struct kernel *k) {
    const struct state *s = k->state;
    const int64_t made = stores(s) ? CHUNK * panels_of(s) * BLOCK : 0;
    (void)n;
    k->scratch = sizeof(struct chunk) + (size_t)made * sizeof(float);
#if HALF_TILES
    if (s->tiles) k->scratch = tiles_scratch(s);
#endif
    k->parts = s->packs ? s->packers : s->parts;
    k->then = s->packs ? s->parts : 0;
    if (s->packs)
        k->shared = (size_t)(s->w.groups * panels_of(s) * panel_floats(s)) * sizeof(float);
}

/* Channels of a group that fill blocks. */
static bool fills(int64_t channels, const struct window *w) {
    return channels / w->groups % BLOCK == 0;
}

static const char *pack_wanted(const tri_node *n, const struct window *w) {
    const bool back = node_is(n, "conv2d_dx");
    const int64_t reads = back ? w->o : w->c;
    if (w->groups > 1 || !fills(back ? w->c : w->o, w)) return "";
    if (cpu_in(n, 0)->type == TRI_F32) return back ? "Bcda16b" : "Acdb16a"; /* as pack_weight */
    return reads % 2 ? "" : back ? "BcdA16b2a" : "AcdB16a2b";
}

static void formats(const tri_node *n, struct format *in, struct format *out) {
    struct window w;
    CHECK(window_of(n, &w));
    const int x_block = fills(w.c, &w) ? BLOCK : 0, y_block = fills(w.o, &w) ? BLOCK : 0;
    const bool back = node_is(n, "conv2d_dx");
    in[0].block = back ? y_block : x_block;
    out[0].block = back ? x_block : y_block;
    strcpy(in[1].pack, pack_wanted(n, &w));
}

static bool takes(const tri_tensor *t, const struct window *w) {
    return !*t->pack && (!t->block || (t->block == BLOCK && fills(t->spec.shape.dim[1], w)));
}

static const char *supports(const tri_node *n) {
    struct window w;
    CHECK(window_of(n, &w));
    const tri_tensor *weight = n->in[1];
    if (takes(n->in[0], &w) && takes(n->out, &w) && !weight->block &&
        (!*weight->pack || !strcmp(weight->pack, pack_wanted(n, &w))))
        return NULL;
    return "it takes planes or blocks of 16 channels, and a weight that is plain or in its own "
           "format";
}

#define ENTRY(name) \
    {.op = name, .run = run, .supports = supports, .prepare = prepare, .release = free, \
     .plan = plan, .formats = formats, .any_order = true}

const struct dev_row FOR_ISA(cpu_conv_direct)[] = {ENTRY("conv2d"), ENTRY("conv2d_dx"), {0}};
