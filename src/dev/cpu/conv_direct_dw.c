/* SPDX-License-Identifier: Apache-2.0
 * The derivative of a convolution's weight, as products (gemm.h): k goes over the places of all
 * samples, line by line, in blocks of 256; a row is an output channel, a column a tap and an input
 * channel. Of f32, blocks of 16 channels are read in place, where a tap leaves out the places at
 * which it reads padding. Planes, and bf16, are gathered, with zeros for padding; with AMX
 * conv_tiles.c sums bf16 in blocks. */
#include "dev/cpu/conv_dw.h"
#include "dev/cpu/conv_rows.h"
#include "dev/cpu/gemm.h"
#include "dev/cpu/half.h"

#define BLOCK GEMM_PANEL
#define PANELS 2 /* of columns that are multiplied together with all output channels */
#define ROW_FLOATS (GEMM_BLOCK + 16) /* floats of a gathered row, uneven for the sets of a cache */

_Static_assert(GEMM_BLOCK <= CONV_PLACES, "they are looked at together");

static int64_t rounded(int64_t n) { return (n + BLOCK - 1) / BLOCK * BLOCK; }

/* One call's work. */
struct sums {
    const struct window *w;
    bool half;                 /* of bf16 */
    struct cpu_range r;        /* of the output channels */
    int64_t makes, reads;      /* channels of a group */
    struct conv_plane dy, x;
    struct conv_axis down, across, own_down, own_across; /* of x; of dy */
    const void *from_dy, *from_x;
    float *sum;
    int64_t sum_row;           /* taps * reads, or more */
    struct scratch *scratch;
    float *panels;             /* of dy, where it is gathered; of planes r is all channels */
    struct gemm_next next[2];  /* of the next block of k */
    int64_t share[2];          /* lines of it to fetch for each product of this block */
};

struct scratch {
    struct conv_places at;
    struct gemm_run run[GEMM_BLOCK];
    int64_t read[CONV_PLACES]; /* by each place; -1: padding */
    uint16_t half_row[CONV_PLACES];
    float row[PANELS * BLOCK * ROW_FLOATS], panel[PANELS * BLOCK * GEMM_BLOCK];
    float more[]; /* panels of dy, then sums whose rows are wider than the weight's */
};

static int64_t panels_floats(const struct window *w, bool half, int64_t outputs) {
    const int64_t makes = w->o / w->groups;
    if (makes % BLOCK) return outputs / makes * rounded(makes) * GEMM_BLOCK;
    return half ? outputs * GEMM_BLOCK : 0;
}

static int64_t columns_of(const struct window *w) { return w->kh * w->kw * (w->c / w->groups); }

static size_t scratch_of(const struct window *w, bool half, int64_t outputs) {
    const int64_t columns = columns_of(w);
    const int64_t sums = columns % BLOCK ? outputs * rounded(columns) : 0;
    const int64_t floats = panels_floats(w, half, outputs) + sums;
    return sizeof(struct scratch) + (size_t)floats * sizeof(float);
}

/* ---- gathering ---- */

/* What the places read of a plane: row i of those that pack_rows packs. */
static void gather_row(const struct sums *s, const void *plane, int64_t i) {
    struct scratch *work = s->scratch;
    float *to = work->row + i * ROW_FLOATS;
    if (!s->half) {
        conv_places_row(&work->at, plane, to);
        return;
    }
    conv_places_half_row(&work->at, plane, work->half_row);
    half_along(work->half_row, work->at.n, to);
}

/* [panel, step, 16], zeros after the last row. */
static void pack_rows(const struct sums *s, int64_t rows, float *to) {
    gemm_pack(s->scratch->row, 1, ROW_FLOATS, k_steps(s->half, s->scratch->at.n), rows, to);
}

static void list_places(struct scratch *work) {
    const struct conv_places *at = &work->at;
    for (const struct conv_piece *p = at->piece; p < at->piece + at->pieces; p++)
        for (int64_t i = 0; i < p->n; i++)
            work->read[p->at + i] = p->from < 0 ? -1 : p->from + i * at->move;
}

/* bf16 in blocks that begin at x: [step, 16]. */
static void pack_block(const struct scratch *work, const uint16_t *x, float *to) {
    static const uint16_t zeros[BLOCK];
    const uint16_t *term[HALF_GROUP];
    for (int64_t i = 0; i < work->at.n; i += HALF_GROUP, to += HALF_STEPS * BLOCK) {
        const int64_t n = least(work->at.n - i, HALF_GROUP), *read = work->read + i;
        for (int64_t k = 0; k < n; k++) term[k] = read[k] < 0 ? zeros : x + read[k];
        half_across(term, n, BLOCK, to, BLOCK);
    }
}

static void gather_dy(struct sums *s, int64_t first, int64_t k) {
    struct scratch *work = s->scratch;
    const int64_t plane = s->dy.h * s->dy.w;
    float *to = s->panels;
    conv_places_find(&s->own_down, &s->own_across, &s->dy, first, k, &work->at);
    conv_places_read(&s->own_down, &s->own_across, 0, 0, &work->at);
    list_places(work);
    for (int64_t o = s->r.begin, rows; o < s->r.end; o += rows, to += BLOCK * GEMM_BLOCK) {
        rows = least(BLOCK, s->makes - o % s->makes);
        if (s->dy.place == BLOCK) {
            pack_block(work, element_at(s->half, s->from_dy, o * plane), to);
        } else {
            for (int64_t i = 0; i < rows; i++)
                gather_row(s, element_at(s->half, s->from_dy, (o + i) * plane), i);
            pack_rows(s, rows, to);
        }
#if HALF_TILES
        for (int64_t i = 0; s->half && i < half_steps(k); i += HALF_STEPS) {
            float steps[HALF_STEPS * BLOCK];
            memcpy(steps, to + i * BLOCK, sizeof steps);
            half_turn(steps, BLOCK * sizeof *steps, to + i * BLOCK);
        }
#endif
    }
}

/* ---- products ---- */

/* Columns from `column` on with all output channels of a group, or with those in r. The runs begin
 * at places; b: the columns' factor. */
static void multiply(struct sums *s, int64_t group, int64_t column, int64_t n, int64_t runs,
                     const float *b, int64_t b_k, int64_t b_panel) {
    const int64_t begin = s->r.begin > group * s->makes ? s->r.begin : group * s->makes;
    const int64_t end = least(s->r.end, (group + 1) * s->makes);
    /* The group's first panel of dy. */
    const int64_t panel = group * rounded(s->makes) / BLOCK - s->r.begin / BLOCK;
    for (int64_t o = begin; o < end; o += BLOCK) {
        const int64_t in_group = o - group * s->makes;
        float *row[BLOCK];
        struct gemm_block g = {.m = least(BLOCK, s->makes - in_group), .n = n,
                               .runs = runs, .run = s->scratch->run,
                               .a_k = s->half && HALF_TILES ? 1 : BLOCK, .b = b,
                               .b_k = b_k, .b_panel = b_panel, .c = row, .c_panel = BLOCK,
                               .add = true, .half = s->half};
        g.a = s->panels ? s->panels + (panel + in_group / BLOCK) * BLOCK * GEMM_BLOCK
                        : (const float *)s->from_dy + o * s->dy.h * s->dy.w;
        for (int64_t i = 0; i < g.m; i++)
            row[i] = s->sum + (o - s->r.begin + i) * s->sum_row + column;
        for (int i = 0; i < 2; i++) gemm_fetch(&s->next[i], s->share[i]);
        gemm_runs(&g);
    }
}

/* Where a run of dy begins. */
static int64_t dy_at(const struct sums *s, int64_t sample, int64_t first, int64_t at) {
    const int64_t plane = s->dy.h * s->dy.w;
    return s->panels ? at * BLOCK
                     : sample * conv_plane_size(&s->dy) + (first + at) % plane * BLOCK;
}

/* x in blocks of f32: taps leave out padding. */
static void add_blocks(struct sums *s, int64_t group, int64_t first) {
    const struct window *w = s->w;
    const int64_t plane = s->x.h * s->x.w;
    const float *x = (const float *)s->from_x + group * s->reads * plane;
    struct conv_places *at = &s->scratch->at;
    for (int64_t t = 0; t < w->kh * w->kw; t++) {
        int64_t runs = 0;
        conv_places_read(&s->down, &s->across, t / w->kw, t % w->kw, at);
        for (const struct conv_piece *p = at->piece; p < at->piece + at->pieces; p++)
            if (p->from >= 0)
                s->scratch->run[runs++] = (struct gemm_run){dy_at(s, p->sample, first, p->at),
                                                            p->from, p->n};
        for (int64_t c = 0; c < s->reads; c += PANELS * BLOCK)
            multiply(s, group, t * s->reads + c, least(PANELS * BLOCK, s->reads - c), runs,
                     x + c * plane, at->move, plane * BLOCK);
    }
}

/* x in blocks of bf16. */
static void add_half_blocks(struct sums *s, int64_t group, int64_t first) {
    const struct window *w = s->w;
    const int64_t plane = s->x.h * s->x.w;
    const uint16_t *x = (const uint16_t *)s->from_x + group * s->reads * plane;
    struct scratch *work = s->scratch;
    const int64_t each = k_steps(s->half, work->at.n) * BLOCK;
    const int64_t runs = gemm_list_runs(true, work->at.n, BLOCK, work->run);
    (void)first;
    for (int64_t t = 0; t < w->kh * w->kw; t++) {
        conv_places_read(&s->down, &s->across, t / w->kw, t % w->kw, &work->at);
        list_places(work);
        for (int64_t c = 0, n; c < s->reads; c += n) {
            n = least(PANELS * BLOCK, s->reads - c);
            for (int64_t i = 0; i < n; i += BLOCK)
                pack_block(work, x + (c + i) * plane, work->panel + i / BLOCK * each);
            multiply(s, group, t * s->reads + c, n, runs, work->panel, BLOCK, each);
        }
    }
}

/* x in planes: columns are gathered. */
static void add_planes(struct sums *s, int64_t group, int64_t first) {
    const struct window *w = s->w;
    const int64_t plane = s->x.h * s->x.w, columns = columns_of(w), places = s->dy.h * s->dy.w;
    struct scratch *work = s->scratch;
    struct conv_places *at = &work->at;
    int64_t tap = -1, runs = s->panels ? gemm_list_runs(s->half, at->n, BLOCK, work->run) : 0;
    for (int64_t i = 0, n; !s->panels && i < at->n; i += n) { /* of each sample */
        n = least(at->n - i, places - (first + i) % places);
        work->run[runs++] =
            (struct gemm_run){dy_at(s, (first + i) / places, first, i), i * BLOCK, n};
    }
    for (int64_t n, from = 0; from < columns; from += n) {
        n = least(PANELS * BLOCK, columns - from);
        for (int64_t i = 0; i < n; i++) {
            const int64_t t = (from + i) / s->reads, c = (from + i) % s->reads;
            if (t != tap) conv_places_read(&s->down, &s->across, t / w->kw, t % w->kw, at);
            tap = t;
            gather_row(s, element_at(s->half, s->from_x, (group * s->reads + c) * plane), i);
        }
        pack_rows(s, n, work->panel);
        multiply(s, group, from, n, runs, work->panel, BLOCK,
                 k_steps(s->half, at->n) * BLOCK);
    }
}

/* ---- all of it ---- */

/* What the block of k after `end` reads of x and dy, if both are in blocks. */
static void look_ahead(struct sums *s, int64_t end) {
    const struct window *w = s->w;
    const int64_t line = end / w->ow, i = line % w->oh, sample = line / w->oh;
    const int64_t row = i * w->sh > w->ph ? i * w->sh - w->ph : 0;
    const int64_t rows = least((GEMM_BLOCK / w->ow + 1) * w->sh, w->h - row);
    s->next[0].rows = s->next[1].rows = 0;
    if (sample >= w->n || rows <= 0 || s->x.place == 1 || s->panels) return;
    s->next[0] = gemm_floats(
        (const float *)s->from_x + sample * conv_plane_size(&s->x) + row * w->w * BLOCK,
        w->c / BLOCK, w->h * w->w * BLOCK, rows * w->w * BLOCK);
    s->next[1] = gemm_floats(
        (const float *)s->from_dy + (sample * w->o + s->r.begin) * w->oh * w->ow +
            end % (w->oh * w->ow) * BLOCK,
        (s->r.end - s->r.begin) / BLOCK, w->oh * w->ow * BLOCK, GEMM_BLOCK * BLOCK);
    const int64_t products = w->kh * w->kw * ((s->reads / BLOCK + 1) / PANELS) *
                             ((s->r.end - s->r.begin) / BLOCK);
    for (int k = 0; k < 2; k++) s->share[k] = gemm_share(&s->next[k], products);
}

/* sum [outputs, kh, kw, channels of a group] */
static void sum_up(const struct window *w, bool half, struct cpu_range r, const void *dy,
                   const void *x, float *sum, void *scratch) {
    const int64_t places = w->n * w->oh * w->ow, outputs = r.end - r.begin;
    const int64_t columns = columns_of(w), makes = w->o / w->groups, reads = w->c / w->groups;
    struct scratch *work = scratch;
    struct sums s = {.w = w, .half = half, .r = r, .makes = makes, .reads = reads,
                     .dy = {w->o, w->oh, w->ow, makes % BLOCK ? 1 : BLOCK},
                     .x = {w->c, w->h, w->w, reads % BLOCK ? 1 : BLOCK},
                     .down = {0, 1, w->oh, w->sh, w->kh, 0, 1, -w->ph, w->dh},
                     .across = {0, 1, w->ow, w->sw, w->kw, 0, 1, -w->pw, w->dw},
                     .own_down = {0, 1, w->oh, 1, 1, 0, 1, 0, 1},
                     .own_across = {0, 1, w->ow, 1, 1, 0, 1, 0, 1},
                     .from_dy = dy, .from_x = x, .sum = sum, .sum_row = columns, .scratch = work};
    if (makes % BLOCK || half) s.panels = work->more;
    if (columns % BLOCK) {
        s.sum = work->more + panels_floats(w, half, outputs);
        s.sum_row = rounded(columns);
    }
    memset(s.sum, 0, (size_t)(outputs * s.sum_row) * sizeof *sum);
    for (int64_t first = 0; first < places; first += GEMM_BLOCK) {
        const int64_t k = least(GEMM_BLOCK, places - first);
        look_ahead(&s, first + k);
        if (s.panels) gather_dy(&s, first, k);
        conv_places_find(&s.down, &s.across, &s.x, first, k, &work->at);
        for (int64_t g = r.begin / makes; g * makes < r.end; g++)
            (reads % BLOCK ? add_planes : half ? add_half_blocks : add_blocks)(&s, g, first);
    }
    for (int64_t i = 0; s.sum != sum && i < outputs; i++)
        memcpy(sum + i * columns, s.sum + i * s.sum_row, (size_t)columns * sizeof *sum);
}

const struct conv_dw_way FOR_ISA(conv_direct_dw) = {scratch_of, sum_up};
