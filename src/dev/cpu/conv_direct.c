/* SPDX-License-Identifier: Apache-2.0
 * Convolutions and their derivatives by x in f32, whose channels fill blocks of 16, as products in
 * slices (gemm.h): a row is a place of the output, a column an output channel, and k goes over the
 * taps of the weight in order, and for each over the input channels. For each block of k the inputs
 * of some places are gathered, with zeros for padding, which are multiplied.
 *
 * The derivative by x with strides is computed for each remainder of a place by the stride, which
 * has taps of its own; taps that fall between strides are not counted. As zeros are multiplied, an
 * infinite or NaN weight reaches outputs beside which there is padding. */
#include "dev/cpu/conv_own.h"
#include "dev/cpu/conv_sums.h"
#include "dev/cpu/gemm.h"

#define BLOCK 16  /* channels that lie together */
#define CHUNK 192 /* places that are computed together: their slices fit the second-level cache */
#define UNEVEN 16 /* floats between slices, which spreads them over the sets of a cache */

_Static_assert(BLOCK == GEMM_SLICE && BLOCK == GEMM_PANEL, "a block is a slice and a panel");

struct plane {
    int64_t channels, h, w;
    bool plain; /* not in blocks */
};

/* Places of one remainder by the stride: first, first + step, ... Tap tap[i] of the first place
 * reads line reads[i], and of the next place `move` lines further. */
struct axis {
    int64_t first, step, count, move;
    int64_t taps, tap[CONV_DIRECT_TAPS], reads[CONV_DIRECT_TAPS];
};

struct state {
    struct window w;
    bool back; /* dx */
    struct plane from, to;
    bool packs;             /* a first round packs the weight */
    int64_t packers, parts; /* parts of the rounds */
};

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Forward there is one remainder, with all places. */
static struct axis axis_of(bool back, int64_t remainder, int64_t places, int64_t kernel,
                           int64_t stride, int64_t pad, int64_t dilation) {
    struct axis a = {.first = remainder, .step = back ? stride : 1, .move = back ? 1 : stride};
    a.count = remainder < places ? (places - remainder + a.step - 1) / a.step : 0;
    for (int64_t k = 0; k < kernel; k++) {
        const int64_t at = back ? remainder + pad - k * dilation : k * dilation - pad;
        if (back && at % stride) continue;
        a.tap[a.taps] = k;
        a.reads[a.taps++] = back ? at / stride : at;
    }
    return a;
}

static struct axis down_of(const struct state *s, int64_t remainder) {
    const struct window *w = &s->w;
    return axis_of(s->back, remainder, s->to.h, w->kh, w->sh, w->ph, w->dh);
}

static struct axis across_of(const struct state *s, int64_t remainder) {
    const struct window *w = &s->w;
    return axis_of(s->back, remainder, s->to.w, w->kw, w->sw, w->pw, w->dw);
}

static int64_t remainders(const struct state *s, int64_t stride) { return s->back ? stride : 1; }

/* ---- the weight ---- */

static int64_t panel_floats(const struct state *s) {
    return s->w.kh * s->w.kw * s->from.channels * BLOCK;
}

/* [to's channels / 16, tap, from's channels, 16] */
static void pack_weight(const struct state *s, const tri_call *c) {
    const int64_t taps = s->w.kh * s->w.kw, from = s->from.channels;
    const struct cpu_range r = cpu_part(c, s->packers, s->to.channels / BLOCK);
    const float *weight = c->in[1];
    float *to = (float *)c->shared + r.begin * panel_floats(s);
    for (int64_t p = r.begin; p < r.end; p++)
        for (int64_t t = 0; t < taps; t++)
            for (int64_t k = 0; k < from; k++)
                for (int64_t i = 0; i < BLOCK; i++) {
                    const int64_t channel = p * BLOCK + i;
                    const int64_t at = s->back ? k * s->to.channels + channel : channel * from + k;
                    *to++ = weight[at * taps + t];
                }
}

/* ---- one chunk ---- */

static int64_t floats(const struct plane *p) { return p->channels * p->h * p->w; }

/* The places of a chunk and what they read, in the scratch. */
struct chunk {
    int64_t n;
    int64_t line[CHUNK], column[CHUNK]; /* where tap 0 would read, in the input's plane */
    const float *sample[CHUNK];         /* of the input */
    const float *read[CHUNK];           /* by the present tap; null: padding */
    bool together;                      /* what is read lies together, and there is no padding */
    float *place[CHUNK], *c[CHUNK];     /* of the output; what is computed */
    float slice[GEMM_SLICES * (CHUNK * GEMM_SLICE + UNEVEN)];
    float plain[]; /* [to's channels / 16, CHUNK, 16], if the output is not in blocks */
};

/* Places from `first` on of all samples, line by line. */
static void find_places(const struct state *s, const struct axis *down, const struct axis *across,
                        int64_t first, const float *x, float *y, struct chunk *k) {
    for (int64_t r = 0; r < k->n; r++) {
        const int64_t j = (first + r) % across->count, line = (first + r) / across->count;
        const int64_t i = line % down->count, sample = line / down->count;
        const int64_t h = down->first + i * down->step, w = across->first + j * across->step;
        k->line[r] = i * down->move;
        k->column[r] = j * across->move;
        k->sample[r] = x + sample * floats(&s->from);
        k->place[r] = y + sample * floats(&s->to) + (h * s->to.w + w) * (s->to.plain ? 1 : BLOCK);
        k->c[r] = s->to.plain ? k->plain + r * BLOCK : k->place[r];
    }
}

/* What the places read by a tap, of the first channel. */
static void find_reads(const struct state *s, int64_t down, int64_t across, struct chunk *k) {
    const int64_t place = s->from.plain ? 1 : BLOCK;
    k->together = !s->from.plain;
    for (int64_t r = 0; r < k->n; r++) {
        const int64_t i = k->line[r] + down, j = k->column[r] + across;
        const bool inside = i >= 0 && i < s->from.h && j >= 0 && j < s->from.w;
        k->read[r] = inside ? k->sample[r] + (i * s->from.w + j) * place : NULL;
        k->together &= inside && k->read[0] && k->read[r] == k->read[0] + r * BLOCK;
    }
}

/* 16 channels from `channel` on of what they read: a slice. */
static void gather(const struct state *s, int64_t channel, const struct chunk *k, float *to) {
    static const float zeros[BLOCK];
    const int64_t plane = s->from.h * s->from.w;
    for (int64_t r = 0; r < k->n; r++, to += GEMM_SLICE) {
        const float *from = k->read[r] ? k->read[r] + channel * plane : zeros;
        if (!s->from.plain || from == zeros)
            memcpy(to, from, BLOCK * sizeof *to);
        else
            for (int64_t i = 0; i < BLOCK; i++) to[i] = from[i * plane];
    }
}

static void add_bias(const float *bias, const struct gemm_sliced *g) {
    for (int64_t r = 0; r < g->m; r++)
        for (int64_t p = 0; p < g->panels; p++)
            for (int64_t i = 0; i < BLOCK; i++) g->c[r][p * g->c_panel + i] += bias[p * BLOCK + i];
}

static void store_plain(const struct state *s, const struct chunk *k) {
    const int64_t plane = s->to.h * s->to.w;
    for (int64_t i = 0; i < s->to.channels; i++)
        for (int64_t r = 0; r < k->n; r++)
            k->place[r][i * plane] = k->plain[(i / BLOCK * CHUNK + r) * BLOCK + i % BLOCK];
}

static void clear(const struct gemm_sliced *g) {
    for (int64_t r = 0; r < g->m; r++)
        for (int64_t p = 0; p < g->panels; p++)
            memset(g->c[r] + p * g->c_panel, 0, BLOCK * sizeof(float));
}

/* What the next block of k will read, or the next chunk: the same places of the next channels, or
 * the places after them. Nothing where the places do not lie close together. */
static void look_ahead(const struct state *s, const struct chunk *k, int64_t channels_done,
                       struct gemm_sliced *g) {
    const int64_t plane = s->from.h * s->from.w;
    int64_t first = 0, last = k->n - 1;
    while (first < last && !k->read[first]) first++;
    while (first < last && !k->read[last]) last--;
    g->next.rows = 0;
    if (s->from.plain || !k->read[first] || !k->read[last]) return;
    const int64_t span = k->read[last] - k->read[first] + BLOCK;
    if (span < BLOCK || span > 4 * CHUNK * BLOCK) return;
    g->next = (struct gemm_next){k->read[first] + (channels_done ? channels_done * plane : span),
                                 least(GEMM_SLICES, (s->from.channels - channels_done) / BLOCK),
                                 plane * BLOCK, span};
}

/* All taps and channels, block by block. */
static void multiply(const struct state *s, const tri_call *c, const struct axis *down,
                     const struct axis *across, struct chunk *k) {
    const int64_t channels = s->from.channels, plane = s->from.h * s->from.w;
    struct gemm_sliced g = {.m = k->n, .panels = s->to.channels / BLOCK, .a = k->slice,
                            .a_slice = CHUNK * GEMM_SLICE + UNEVEN,
                            .b = s->packs ? c->shared : c->in[1], .b_panel = panel_floats(s),
                            .c = k->c,
                            .c_panel = (s->to.plain ? CHUNK : s->to.h * s->to.w) * BLOCK};
    const int64_t taps = down->taps * across->taps;
    for (int64_t t = 0; t < taps; t++) {
        const int64_t i = t / across->taps, j = t % across->taps;
        const int64_t tap = down->tap[i] * s->w.kw + across->tap[j];
        find_reads(s, down->reads[i], across->reads[j], k);
        const bool in_place = taps == 1 && k->together; /* they are slices already */
        if (in_place) g.a_slice = plane * BLOCK;
        for (int64_t b = 0; b < channels; b += BLOCK) {
            if (!in_place)
                gather(s, b, k, k->slice + g.slices * g.a_slice);
            else if (!g.slices)
                g.a = k->read[0] + b * plane;
            g.b_slice[g.slices++] = (tap * channels + b) * BLOCK;
            if (g.slices < GEMM_SLICES && (t + 1 < taps || b + BLOCK < channels)) continue;
            if (b + BLOCK < channels)
                look_ahead(s, k, b + BLOCK, &g);
            else if (t + 1 == taps)
                look_ahead(s, k, 0, &g);
            gemm_sliced_run(&g);
            g.slices = 0;
            g.next.rows = 0;
            g.add = true;
        }
    }
    if (!taps) clear(&g);
    if (c->node->n_in > 2 && !s->back) add_bias(c->in[2], &g);
    if (s->to.plain) store_plain(s, k);
}

static void run(const tri_call *c) {
    const struct state *s = c->state;
    if (c->part < s->packers) {
        pack_weight(s, c);
        return;
    }
    struct chunk *k = c->scratch;
    const int64_t part = c->part - s->packers, begin = s->w.n * part / s->parts;
    const int64_t samples = s->w.n * (part + 1) / s->parts - begin;
    const float *x = (const float *)c->in[0] + begin * floats(&s->from);
    float *y = (float *)c->out[0] + begin * floats(&s->to);
    for (int64_t i = 0; i < remainders(s, s->w.sh); i++)
        for (int64_t j = 0; j < remainders(s, s->w.sw); j++) {
            const struct axis down = down_of(s, i), across = across_of(s, j);
            const int64_t plane = down.count * across.count;
            /* Small planes of several samples are computed together. */
            const int64_t together = plane < CHUNK / 2 ? samples : 1, all = together * plane;
            const int64_t chunks = (all + CHUNK - 1) / CHUNK;
            for (int64_t at = 0; at < chunks * samples / together; at++) {
                const int64_t from = at / chunks * all, first = all * (at % chunks) / chunks;
                k->n = all * (at % chunks + 1) / chunks - first;
                find_places(s, &down, &across, from + first, x, y, k);
                multiply(s, c, &down, &across, k);
            }
        }
}

/* ---- preparation ---- */

static struct plane plane_of(const tri_tensor *t) {
    const int64_t *d = t->spec.shape.dim;
    return (struct plane){d[1], d[2], d[3], !t->block};
}

static tri_status prepare(const tri_node *n, void **state) {
    tri_status status = cpu_state(n, sizeof(struct state), state);
    if (status) return status;
    struct state *s = *state;
    CHECK(window_of(n, &s->w));
    s->back = node_is(n, "conv2d_dx");
    s->from = plane_of(n->in[0]);
    s->to = plane_of(n->out);
    s->parts = conv_sample_parts(&s->w, conv_parts(&s->w));
    s->packs = !*n->in[1]->pack;
    s->packers = s->packs ? least(CONV_MOST_PARTS, s->to.channels / BLOCK) : 0;
    return TRI_OK;
}

static void plan(const tri_node *n, struct kernel *k) {
    const struct state *s = k->state;
    const int64_t plain = s->to.plain ? CHUNK * s->to.channels : 0;
    (void)n;
    k->scratch = sizeof(struct chunk) + (size_t)plain * sizeof(float);
    k->parts = s->packs ? s->packers : s->parts;
    k->then = s->packs ? s->parts : 0;
    if (s->packs)
        k->shared = (size_t)(s->to.channels / BLOCK * panel_floats(s)) * sizeof(float);
}

static void formats(const tri_node *n, struct format *in, struct format *out) {
    in[0].block = out[0].block = BLOCK;
    strcpy(in[1].pack, CONV_DIRECT_PACK(n));
}

#define ENTRY(name) \
    {.op = name, .run = run, .prepare = prepare, .release = free, .plan = plan, \
     .formats = formats, .any_order = true}

const struct dev_row FOR_ISA(cpu_conv_direct)[] = {ENTRY("conv2d"), ENTRY("conv2d_dx"), {0}};
