/* SPDX-License-Identifier: Apache-2.0
 * Convolutions and their derivatives by x, in f32 and bf16, of any shape, as products (gemm.h): a
 * row is a place of the output, a column an output channel, and k goes over the taps of the weight
 * in order, and for each over the input channels; of bf16 a zero makes their number even. For each
 * block of k, what some places read is gathered: of blocks of 16 channels a slice for each, of
 * planes a row for each channel, which has all places. Padding is zeros, which are multiplied: an
 * infinite or NaN weight reaches outputs beside which there is padding.
 *
 * The derivative by x with strides is computed for each remainder of a place by the stride, which
 * has taps of its own; taps that fall between strides are not counted. */
#include "dev/cpu/conv_own.h"
#include "dev/cpu/conv_rows.h"
#include "dev/cpu/conv_sums.h"
#include "dev/cpu/gemm.h"
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
    int64_t terms;              /* k of a tap: reads, of bf16 rounded up to pairs */
    bool pairs;                 /* the weight is bf16 in panels of pairs */
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

static int64_t panel_floats(const struct state *s) {
    return s->w.kh * s->w.kw * k_steps(s->half, s->terms) * BLOCK;
}

/* One line of a packed weight: output channels [first, first + 16) of a group by one tap and
 * channel; channels after the last are zeros. */
#define WEIGHT_LINE(name, type)                                                             \
    static void name(const struct state *s, const type *weight, int64_t group,              \
                     int64_t first, int64_t tap, int64_t k, type to[BLOCK]) {               \
        const int64_t taps = s->w.kh * s->w.kw;                                             \
        for (int64_t i = 0; i < BLOCK; i++) {                                               \
            const int64_t made = first + i;                                                 \
            const int64_t at = s->back ? (group * s->reads + k) * s->makes + made           \
                                       : (group * s->makes + made) * s->reads + k;          \
            to[i] = made < s->makes ? weight[at * taps + tap] : 0;                          \
        }                                                                                   \
    }
WEIGHT_LINE(weight_line, float)
WEIGHT_LINE(weight_half_line, uint16_t)

/* Steps of n lines of pairs, of which half_across makes two each. */
static void widen_pairs(const uint16_t *from, int64_t n, float *to) {
    for (; n; n--, from += 2 * BLOCK, to += 2 / HALF_STEP * BLOCK) {
        uint16_t first[BLOCK], second[BLOCK];
        for (int i = 0; i < BLOCK; i++) first[i] = from[2 * i], second[i] = from[2 * i + 1];
        half_across(first, second, BLOCK, to, BLOCK);
    }
}

/* [group, panel, tap, step, 16] */
static void pack_weight(const struct state *s, const tri_call *c) {
    const int64_t taps = s->w.kh * s->w.kw, panels = panels_of(s);
    const struct cpu_range r = cpu_part(c, s->packers, s->w.groups * panels);
    const void *weight = c->in[1];
    float *to = (float *)c->shared + r.begin * panel_floats(s);
    uint16_t pair[2][BLOCK];
    if (s->pairs) {
        const int64_t panel = taps * s->terms / 2; /* lines of one */
        widen_pairs((const uint16_t *)weight + r.begin * panel * 2 * BLOCK,
                    (r.end - r.begin) * panel, to);
        return;
    }
    for (int64_t p = r.begin; p < r.end; p++) {
        const int64_t group = p / panels, first = p % panels * BLOCK;
        for (int64_t t = 0; t < taps; t++)
            for (int64_t k = 0; k < s->reads; k++) {
                if (!s->half) {
                    weight_line(s, weight, group, first, t, k, to);
                    to += BLOCK;
                    continue;
                }
                weight_half_line(s, weight, group, first, t, k, pair[k % 2]);
                if (k % 2 == 0 && k + 1 < s->reads) continue;
                if (k % 2 == 0) memset(pair[1], 0, sizeof pair[1]);
                half_across(pair[0], pair[1], BLOCK, to, BLOCK);
                to += 2 / HALF_STEP * BLOCK;
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
    uint16_t pair[2][CHUNK];
    float read[GEMM_BLOCK * (CHUNK + UNEVEN)];
    float made[];                   /* [panel, CHUNK, 16], unless the output takes it as it is */
};
#define SLICE_FLOATS (CHUNK * GEMM_SLICE + UNEVEN) /* floats from slice to slice */
#define ROW_FLOATS (CHUNK + UNEVEN)                /* and from row to row */

_Static_assert(GEMM_BLOCK / GEMM_SLICE * SLICE_FLOATS <= GEMM_BLOCK * ROW_FLOATS, "slices fit");

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

/* 16 channels of what they read, in blocks that begin at x: a slice. */
static void gather_slice(const struct state *s, const void *x, const struct conv_places *p,
                         float *to) {
    const int64_t each = k_steps(s->half, BLOCK);
    for (int64_t k = 0; k < p->pieces; k++) {
        const struct conv_piece *piece = &p->piece[k];
        for (int64_t r = 0, at = piece->from; r < piece->n; r++, at += p->move, to += each)
            if (piece->from < 0)
                memset(to, 0, (size_t)each * sizeof *to);
            else if (s->half)
                half_along((const uint16_t *)x + at, BLOCK, to);
            else
                memcpy(to, (const float *)x + at, BLOCK * sizeof *to);
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
        least(GEMM_BLOCK, s->reads - channels_done) / BLOCK, plane * BLOCK * size, span * size, 0};
}

/* The product of the block of k so far. */
static void flush(struct chunk *k, struct gemm_block *g) {
    g->runs = k->runs;
    gemm_runs(g);
    k->runs = k->k = 0;
    g->next.rows = 0;
    g->add = true;
}

/* A tap: all channels of the group, block by block. */
static void read_slices(const struct state *s, const void *x, int64_t tap, bool last, bool in_place,
                        struct chunk *k, struct gemm_block *g) {
    const int64_t plane = s->from.h * s->from.w;
    for (int64_t c = 0; c < s->reads; c += BLOCK) {
        const int64_t slice = k->runs * SLICE_FLOATS;
        if (!in_place) gather_slice(s, element_at(s->half, x, c * plane), &k->at, k->read + slice);
        k->run[k->runs++] = (struct gemm_run){in_place ? k_steps(s->half, c * plane) : slice,
                                              k_steps(s->half, tap * s->reads + c) * BLOCK,
                                              k_steps(s->half, GEMM_SLICE)};
        if (k->runs < GEMM_BLOCK / GEMM_SLICE && !(last && c + BLOCK == s->reads)) continue;
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

/* Channels [c, c + n) of a tap, to rows from `to` on. */
static void gather_rows(const struct state *s, const void *x, int64_t c, int64_t n,
                        struct chunk *k, float *to) {
    const int64_t plane = s->from.h * s->from.w;
    if (!s->half)
        for (int64_t i = c; i < c + n; i++, to += ROW_FLOATS)
            conv_places_row(&k->at, (const float *)x + i * plane, to);
    for (int64_t i = c; s->half && i < c + n; i += 2, to += 2 / HALF_STEP * ROW_FLOATS) {
        conv_places_half_row(&k->at, (const uint16_t *)x + i * plane, k->pair[0]);
        if (i + 1 < s->reads)
            conv_places_half_row(&k->at, (const uint16_t *)x + (i + 1) * plane, k->pair[1]);
        else
            memset(k->pair[1], 0, sizeof k->pair[1]);
        half_across(k->pair[0], k->pair[1], k->at.n, to, ROW_FLOATS);
    }
}

static void read_rows(const struct state *s, const void *x, int64_t tap, bool last, bool in_place,
                      struct chunk *k, struct gemm_block *g) {
    const int64_t plane = s->from.h * s->from.w;
    for (int64_t c = 0, n; c < s->terms; c += n) {
        const int64_t row = k_steps(s->half, k->k) * ROW_FLOATS;
        n = least(s->terms - c, GEMM_BLOCK - k->k);
        if (!in_place) gather_rows(s, x, c, n, k, k->read + row);
        add_run(k, g->a_k, in_place ? c * plane : row, k_steps(s->half, tap * s->terms + c) * BLOCK,
                k_steps(s->half, n));
        k->k += n;
        if (k->k == GEMM_BLOCK || (last && c + n == s->terms)) flush(k, g);
    }
}

/* All taps and channels of a group. */
static void multiply(const struct state *s, const tri_call *c, int64_t group, const void *x,
                     const struct conv_axis *down, const struct conv_axis *across, void *y,
                     struct chunk *k) {
    const int64_t panels = panels_of(s), taps = down->taps * across->taps;
    const float *weight = s->packs ? c->shared : c->in[1];
    struct gemm_block g = {.m = k->at.n, .n = s->makes, .run = k->run, .a = k->read,
                           .a_k = plain(&s->from) ? ROW_FLOATS : 1,
                           .b = weight + group * panels * panel_floats(s), .b_k = BLOCK,
                           .b_panel = panel_floats(s), .c = k->c,
                           .c_panel = (stores(s) ? CHUNK : s->to.h * s->to.w) * BLOCK,
                           .half = s->half};
    k->runs = k->k = 0;
    for (int64_t t = 0; t < taps; t++) {
        const int64_t i = t / across->taps, j = t % across->taps;
        const int64_t tap = (down->tap + i * down->next_tap) * s->w.kw + across->tap +
                            j * across->next_tap;
        conv_places_read(down, across, i, j, &k->at);
        /* They read places that lie together, as a product takes them. */
        const bool in_place = taps == 1 && k->at.pieces == 1 && k->at.piece[0].from >= 0 &&
                              k->at.move == s->from.place &&
                              (s->from.place > 1 || s->from.h * s->from.w > 1) &&
                              (!s->half || (HALF_STEP == 2 && !plain(&s->from)));
        if (in_place) g.a = element_at(s->half, x, k->at.piece[0].from);
        if (in_place && plain(&s->from)) g.a_k = s->from.h * s->from.w;
        (plain(&s->from) ? read_rows : read_slices)(s, x, tap, t + 1 == taps, in_place, k, &g);
    }
    if (!taps) clear(&g);
    if (c->node->n_in > 2 && !s->back)
        add_bias(s, element_at(s->half, c->in[2], group * s->makes), &g);
    if (stores(s)) store(s, k, y);
}

/* The places of one remainder, of some samples; all groups. */
static void run_places(const struct state *s, const tri_call *c, const struct conv_axis *down,
                       const struct conv_axis *across, struct cpu_range samples) {
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
                multiply(s, c, group, x, down, across, y, k);
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
    for (int64_t i = 0; i < remainders(s, s->w.sh); i++)
        for (int64_t j = 0; j < remainders(s, s->w.sw); j++) {
            const struct conv_axis down = down_of(s, i), across = across_of(s, j);
            run_places(s, c, &down, &across, samples);
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
    s->terms = s->half ? (s->reads + 1) / 2 * 2 : s->reads;
    s->parts = conv_sample_parts(&s->w, conv_parts(&s->w));
    s->pairs = s->half && *n->in[1]->pack;
    s->packs = !*n->in[1]->pack || (s->pairs && HALF_STEP == 1);
    s->packers = s->packs ? least(CONV_MOST_PARTS, s->w.groups * panels_of(s)) : 0;
    return TRI_OK;
}

static void plan(const tri_node *n, struct kernel *k) {
    const struct state *s = k->state;
    const int64_t made = stores(s) ? CHUNK * panels_of(s) * BLOCK : 0;
    (void)n;
    k->scratch = sizeof(struct chunk) + (size_t)made * sizeof(float);
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
