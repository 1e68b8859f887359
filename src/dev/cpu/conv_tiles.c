/* SPDX-License-Identifier: Apache-2.0
 * Convolutions with the tiles of AMX. Rows of tiles are read in place, 64 bytes each: of a strip of
 * the output's lines, what it reads is copied, 32 channels together. Of an axis with strides,
 * places are copied in phases: those that one tap reads, beside each other. Lines of the copy are
 * as long as the output's, with zeros after them, where the padding before the next line also is;
 * so are planes. So the places of all lines and samples make one sequence, in which a tap is a
 * distance. What is computed for zeros between lines and planes is left out.
 *
 * By the weight, places of the output are cut in groups of 32, line by line. Of dy a tile has 16
 * channels of a group, turned once for a block of places; of the copy it has the pairs of a group's
 * places, which differ from tap to tap. */
#include "dev/cpu/conv_tiles.h"

#include <immintrin.h>

#include "dev/cpu/conv_dw.h"
#include "dev/cpu/gemm_tiles.h"
#include "dev/cpu/half.h"

#define STRIP (512 << 10) /* bytes of a strip's copy, about: with the weight, in the second cache */
#define ROWS 2048         /* places of a strip at most, or a line */
#define BLOCK GEMM_PANEL
#define AFTER 32 /* places that are read after the last */

/* What the taps of an axis read: phase p of a line is its places p, p + move, ... Tap t reads, for
 * place i of the output, place i + distance of a phase. */
struct lay {
    int64_t nearest, farthest; /* distances */
    int64_t length;      /* of a line in the copy */
    int64_t phases;      /* that are read */
};

static int64_t distance_of(const struct conv_axis *a, int64_t tap) {
    const int64_t at = a->read + tap * a->next_read;
    return (at < 0 ? at - a->move + 1 : at) / a->move;
}

static int64_t phase_of(const struct conv_axis *a, int64_t tap) {
    return a->read + tap * a->next_read - distance_of(a, tap) * a->move;
}

static bool reads_phase(const struct conv_axis *a, int64_t phase) {
    for (int64_t t = 0; t < a->taps; t++)
        if (phase_of(a, t) == phase) return true;
    return false;
}

/* How many of the phases before it are read. */
static int64_t phases_before(const struct conv_axis *a, int64_t phase) {
    int64_t n = 0;
    for (int64_t p = 0; p < phase; p++) n += reads_phase(a, p);
    return n;
}

/* How many places of a phase, of an axis of `size`, are copied. */
static int64_t copied(const struct conv_axis *a, const struct lay *l, int64_t size, int64_t phase) {
    return least((size - phase + a->move - 1) / a->move, l->farthest + a->count);
}

static struct lay lay_of(const struct conv_axis *a, int64_t size) {
    struct lay l = {.phases = phases_before(a, a->move)};
    for (int64_t t = 0; t < a->taps; t++) {
        const int64_t d = distance_of(a, t);
        if (!t || d < l.nearest) l.nearest = d;
        if (!t || d > l.farthest) l.farthest = d;
    }
    const int64_t all = copied(a, &l, size, 0) - (l.nearest < 0 ? l.nearest : 0);
    l.length = l.farthest > 0 ? l.farthest + a->count : a->count;
    if (all > l.length) l.length = all;
    if (!l.length) l.length = 1; /* of no places */
    return l;
}

/* Lines of the output, of all samples one after the other, and the copy of what they read. */
struct strip {
    struct lay down, across;
    int64_t lines;         /* at most */
    int64_t before, plane; /* places before the first line; of a phase in all */
    int64_t phases;
};

static struct strip strip_of(const struct conv_tiles *t) {
    struct strip s = {.down = lay_of(&t->down, t->from.h), .across = lay_of(&t->across, t->from.w)};
    s.phases = s.down.phases * s.across.phases;
    s.before = s.across.nearest < 0 ? -s.across.nearest : 0;
    return s;
}

static void set_lines(struct strip *s, int64_t lines) {
    s->lines = lines;
    s->plane = s->before + (lines + s->down.farthest - s->down.nearest) * s->across.length + AFTER +
               (s->across.farthest > 0 ? s->across.farthest : 0);
}

/* Where tap t of those of the axes reads for the first line's first place. */
static int64_t tap_at(const struct conv_tiles *t, const struct strip *s, int64_t tap) {
    const int64_t i = tap / t->across.taps, j = tap % t->across.taps;
    const int64_t phase = phases_before(&t->down, phase_of(&t->down, i)) * s->across.phases +
                          phases_before(&t->across, phase_of(&t->across, j));
    return phase * s->plane + s->before + distance_of(&t->across, j) +
           (distance_of(&t->down, i) - s->down.nearest) * s->across.length;
}

/* ---- a strip ---- */

static void clear_places(int64_t n, float *to) {
    if (n > 0) memset(to, 0, (size_t)n * BLOCK * sizeof *to);
}

/* n places of two blocks of channels that are `block` apart; 0: the second is zeros. quads: four
 * channels of each in turn. */
INLINE void copy_places(const bool quads, const uint16_t *x, int64_t block, int64_t move, int64_t n,
                        float *to) {
    const __m512i turns = _mm512_set_epi64(7, 3, 6, 2, 5, 1, 4, 0);
    for (int64_t i = 0; i < n; i++, x += move * BLOCK, to += BLOCK) {
        __m512i v = _mm512_zextsi256_si512(_mm256_loadu_si256((const void *)x));
        if (block)
            v = _mm512_inserti64x4(v, _mm256_loadu_si256((const void *)(x + block)), 1);
        _mm512_storeu_si512(to, quads ? _mm512_permutexvar_epi64(turns, v) : v);
    }
}

/* What lines [first, first + lines) of the output read of a phase, of two blocks of channels. */
INLINE void copy_phase(const bool quads, const struct conv_tiles *t, const struct strip *s,
                       const uint16_t *x, int64_t block, int64_t down, int64_t across,
                       int64_t first, int64_t lines, float *to) {
    const int64_t length = s->across.length;
    const int64_t some = copied(&t->across, &s->across, t->from.w, across);
    const int64_t end = copied(&t->down, &s->down, t->from.h, down);
    const int64_t before = first + s->down.nearest, stop = first + lines + s->down.farthest;
    clear_places(s->before, to);
    to += s->before * BLOCK;
    for (int64_t line = before; line < stop; line++, to += length * BLOCK) {
        const int64_t sample = line < 0 ? -1 : line / s->down.length, i = line % s->down.length;
        const bool real = sample >= 0 && sample < t->samples && i < end && some > 0;
        const int64_t n = real ? some : 0;
        if (real)
            copy_places(quads, x + sample * conv_plane_size(&t->from) +
                                   ((i * t->down.move + down) * t->from.w + across) * BLOCK,
                        block, t->across.move, n, to);
        clear_places(length - n, to + n * BLOCK);
    }
}

/* Of two blocks of channels that begin at x: [phase down, phase across, place, 32 of bf16]. */
INLINE void copy_strip(const bool quads, const struct conv_tiles *t, const struct strip *s,
                       const uint16_t *x, int64_t block, int64_t first, int64_t lines, float *to) {
    for (int64_t i = 0; i < t->down.move; i++)
        for (int64_t j = 0; j < t->across.move; j++) {
            if (!reads_phase(&t->down, i) || !reads_phase(&t->across, j)) continue;
            copy_phase(quads, t, s, x, block, i, j, first, lines, to);
            to += s->plane * BLOCK;
        }
}

/* ---- outputs ---- */

/* Strips of such a size. */
static struct strip outputs_of(const struct conv_tiles *t) {
    struct strip s = strip_of(t);
    const int64_t line = s.across.length * t->reads * 2 * s.phases;
    const int64_t lines = line ? STRIP / line - (s.down.farthest - s.down.nearest) : ROWS;
    const int64_t most = least(least(lines, ROWS / s.across.length), s.down.length * t->samples);
    set_lines(&s, most < 1 ? 1 : most);
    return s;
}

/* Whether most of what is computed is not between lines and planes. */
bool conv_tiles_worth(const struct conv_tiles *t) {
    const struct strip s = strip_of(t);
    return s.across.length * s.down.length <= 3 * t->across.count * t->down.count;
}

static int64_t runs_of(const struct conv_tiles *t) {
    return t->down.taps * t->across.taps * t->reads / HALF_GROUP;
}

/* What a strip has in the scratch. */
struct room {
    float *copy; /* of each 32 channels */
    struct gemm_run *run;
    int64_t *row;
    size_t bytes;
};

static struct room room_of(const struct conv_tiles *t, const struct strip *s, void *scratch) {
    struct room r = {.copy = scratch};
    r.run = (struct gemm_run *)(void *)(r.copy + s->phases * t->reads * s->plane / 2);
    r.row = (int64_t *)(void *)(r.run + runs_of(t));
    r.bytes = (size_t)((char *)(r.row + s->lines * s->across.length) - (char *)scratch);
    return r;
}

size_t conv_tiles_scratch(const struct conv_tiles *t) {
    const struct strip s = outputs_of(t);
    return room_of(t, &s, NULL).bytes;
}

/* Where in y the places of a strip are; -1: between lines or planes. */
static void list_rows(const struct conv_tiles *t, const struct strip *s, int64_t first,
                      int64_t lines, int64_t *row) {
    for (int64_t line = first; line < first + lines; line++) {
        const int64_t sample = line / s->down.length, i = line % s->down.length;
        const int64_t h = t->down.first + i * t->down.step;
        for (int64_t j = 0; j < s->across.length; j++) {
            const int64_t w = t->across.first + j * t->across.step;
            *row++ = i < t->down.count && j < t->across.count
                         ? sample * conv_plane_size(&t->to) + (h * t->to.w + w) * BLOCK
                         : -1;
        }
    }
}

/* The groups of 32 channels of each tap: where they are in the copy, and in a panel. */
static void list_runs(const struct conv_tiles *t, const struct strip *s, struct gemm_run *run) {
    const int64_t groups = t->reads / HALF_GROUP;
    for (int64_t k = 0; k < t->down.taps * t->across.taps; k++) {
        const int64_t tap = t->packed ? k : conv_tap(&t->down, &t->across, t->kw, k);
        const int64_t at = tap_at(t, s, k);
        for (int64_t g = 0; g < groups; g++)
            *run++ = (struct gemm_run){(g * s->phases * s->plane + at) * BLOCK,
                                       (tap * groups + g) * HALF_STEPS * BLOCK, 0};
    }
}

void conv_tiles_run(const struct conv_tiles *t, void *scratch) {
    const struct strip s = outputs_of(t);
    const struct room r = room_of(t, &s, scratch);
    const int64_t all = (t->samples - 1) * s.down.length + t->down.count;
    const int64_t strips = (all + s.lines - 1) / s.lines, plane = t->from.h * t->from.w;
    if (!t->down.count || !t->across.count) return;
    list_runs(t, &s, r.run);
    for (int64_t i = 0; i < strips; i++) {
        const int64_t first = all * i / strips, lines = all * (i + 1) / strips - first;
        for (int64_t c = 0; c < t->reads; c += HALF_GROUP)
            copy_strip(false, t, &s, t->x + c * plane, plane * BLOCK, first, lines,
                       r.copy + c / 2 * s.phases * s.plane);
        list_rows(t, &s, first, lines, r.row);
        const struct gemm_tiled g = {.m = lines * s.across.length, .n = t->makes, .run = r.run,
                                     .runs = runs_of(t), .a = r.copy, .b = t->b,
                                     .b_panel = t->b_panel};
        gemm_tiles_rounded(&g, &(struct gemm_rounded){t->bias, t->y, r.row,
                                                      t->to.h * t->to.w * BLOCK});
    }
}

/* ---- derivatives by weights ---- */

#define PANELS 2           /* of x, which are paired together */
#define UNEVEN 16          /* floats after dy's tiles of a group, for the sets of a cache */
#define TURNED (256 << 10) /* floats of dy in the second cache */
#define SUMS (256 << 10)   /* floats of sums that the second cache keeps */
#define PLACES 1024        /* that are multiplied together, at most */

/* A call's work. */
struct derivative {
    struct conv_tiles t;
    struct strip s;
    struct cpu_range r; /* of the outputs */
    int64_t places;     /* of a block, at most */
    int64_t each;       /* floats of dy's tiles of a group */
    float *turned, *copy, *pairs;
    int64_t *at;        /* where each place of a block is, of dy or of a phase of the copy */
    size_t bytes;
};

static struct derivative derivative_of(const struct window *w, struct cpu_range r, void *scratch) {
    const int64_t outputs = r.end - r.begin, reads = w->c / w->groups;
    /* Fewer places where sums stay in the cache, so that what is paired of x is in the first. */
    const bool kept = outputs * w->kh * w->kw * reads <= SUMS;
    struct derivative d = {
        .t = {.down = conv_axis_of(false, 0, w->oh, w->kh, w->sh, w->ph, w->dh),
              .across = conv_axis_of(false, 0, w->ow, w->kw, w->sw, w->pw, w->dw),
              .from = {w->c, w->h, w->w, BLOCK}, .to = {w->o, w->oh, w->ow, BLOCK},
              .samples = w->n, .reads = reads, .makes = w->o / w->groups},
        .r = r,
        .places = kept || outputs * PLACES > 2 * TURNED ? PLACES / 2 : PLACES,
        .each = outputs * BLOCK + UNEVEN,
    };
    d.s = strip_of(&d.t);
    const int64_t lines = least(d.places / w->ow + 2, w->n * w->oh);
    set_lines(&d.s, lines + (lines / w->oh + 2) * (d.s.down.length - w->oh));
    const int64_t groups = d.places / HALF_GROUP;
    d.turned = scratch;
    d.pairs = d.turned + groups * d.each;
    d.copy = d.pairs + groups * PANELS * GEMM_TILE;
    d.at = (int64_t *)(void *)(d.copy + d.s.phases * d.s.plane * BLOCK);
    d.bytes = (size_t)((char *)(d.at + d.places) - (char *)scratch);
    return d;
}

/* For up to so many outputs, of which more may have fewer places. */
static size_t scratch_of(const struct window *w, bool half, int64_t outputs) {
    (void)half;
    const int64_t fewer = least(outputs, 2 * TURNED / PLACES);
    const size_t all = derivative_of(w, (struct cpu_range){0, outputs}, NULL).bytes;
    const size_t few = derivative_of(w, (struct cpu_range){0, fewer}, NULL).bytes;
    return all > few ? all : few;
}

/* The line of place p, of the lines of strips. */
static int64_t line_of(const struct derivative *d, int64_t p) {
    const int64_t line = p / d->t.across.count;
    return line / d->t.down.count * d->s.down.length + line % d->t.down.count;
}

static void list_places(const struct derivative *d, int64_t first, int64_t k) {
    int64_t j = first % d->t.across.count, line = line_of(d, first);
    const int64_t begin = line;
    for (int64_t i = 0; i < k; i++) {
        d->at[i] = ((line - begin) * d->s.across.length + j) * BLOCK;
        if (++j == d->t.across.count) j = 0, line = line_of(d, first + i + 1);
    }
    for (int64_t i = k; i % HALF_GROUP; i++) d->at[i] = 0;
}

/* Steps that a group lacks, from number i on. */
static void clear_steps(int64_t i, float *pairs) {
    memset(pairs + i * BLOCK, 0, (size_t)((HALF_STEPS - i) * BLOCK) * sizeof *pairs);
}

/* dy's groups: [group, output, pair] */
static void turn_dy(const struct derivative *d, const uint16_t *dy, int64_t first, int64_t k) {
    const int64_t plane = d->t.to.h * d->t.to.w, more = conv_plane_size(&d->t.to) - plane * BLOCK;
    float pairs[GEMM_TILE] __attribute__((aligned(64)));
    for (int64_t i = 0; i < k; i++)
        d->at[i] = (first + i) * BLOCK + (first + i) / plane * more;
    for (int64_t g = 0; g * HALF_GROUP < k; g++) {
        const int64_t n = least(k - g * HALF_GROUP, HALF_GROUP), *at = d->at + g * HALF_GROUP;
        for (int64_t o = d->r.begin; o < d->r.end; o += BLOCK) {
            for (int64_t i = 0; i + 1 < n; i += 2)
                _mm512_store_si512(pairs + i / 2 * BLOCK, half_pair(dy + at[i] + o * plane,
                                                                    dy + at[i + 1] + o * plane));
            if (n % 2) half_step(NULL, dy + at[n - 1] + o * plane, BLOCK, pairs + n / 2 * BLOCK);
            clear_steps((n + 1) / 2, pairs);
            half_turn(pairs, BLOCK * sizeof *pairs,
                      d->turned + g * d->each + (o - d->r.begin) * BLOCK);
        }
    }
}

/* Pairs of a group of the copy's places, of both blocks of channels: [pair, 16] each. */
INLINE void pair_places(const float *copy, const int64_t *at, float *first, float *second) {
    UNROLL_4
    for (int i = 0; i < HALF_GROUP; i += 2, first += BLOCK, second += BLOCK) {
        const __m512i x = _mm512_loadu_si512(copy + at[i]);
        const __m512i y = _mm512_loadu_si512(copy + at[i + 1]);
        _mm512_storeu_si512(first, _mm512_unpacklo_epi16(x, y));
        _mm512_storeu_si512(second, _mm512_unpackhi_epi16(x, y));
    }
}

/* What the last group lacks after n places. */
static void clear_last(int64_t n, float *pairs) {
    half_step_bits *last = (half_step_bits *)(void *)(pairs + n / 2 * BLOCK);
    for (int64_t i = 0; n % 2 && i < BLOCK; i++) last[i] &= 0xffff;
    clear_steps((n + 1) / 2, pairs);
}

/* Two blocks of channels of x, from c on of those of a group, for all taps. */
static void add_channels(const struct derivative *d, const uint16_t *x, int64_t c, int64_t first,
                         int64_t k, struct cpu_range outputs, bool add, float *sum) {
    const int64_t taps = d->t.down.taps * d->t.across.taps, reads = d->t.reads;
    const int64_t groups = (k + HALF_GROUP - 1) / HALF_GROUP, n = least(reads - c, PANELS * BLOCK);
    const int64_t line = line_of(d, first), lines = line_of(d, first + k - 1) + 1 - line;
    struct gemm_run run[PLACES / HALF_GROUP];
    struct gemm_tiled g = {.m = outputs.end - outputs.begin, .n = n, .run = run, .runs = groups,
                           .a = d->turned + (outputs.begin - d->r.begin) * BLOCK, .b = d->pairs,
                           .b_panel = groups * GEMM_TILE};
    for (int64_t i = 0; i < groups; i++) run[i] = (struct gemm_run){i * d->each, i * GEMM_TILE, 0};
    copy_strip(true, &d->t, &d->s, x, n > BLOCK ? d->t.from.h * d->t.from.w * BLOCK : 0, line,
               lines, d->copy);
    for (int64_t t = 0; t < taps; t++) {
        const float *copy = d->copy + tap_at(&d->t, &d->s, t) * BLOCK;
        for (int64_t i = 0; i < groups; i++)
            pair_places(copy, d->at + i * HALF_GROUP, d->pairs + i * GEMM_TILE,
                        d->pairs + g.b_panel + i * GEMM_TILE);
        for (int i = 0; i < PANELS && k % HALF_GROUP; i++)
            clear_last(k % HALF_GROUP, d->pairs + (i + 1) * g.b_panel - GEMM_TILE);
        gemm_tiles_sums(&g, sum + (t * reads + c) * BLOCK, taps * reads * BLOCK, add);
    }
}

static void sum_up(const struct window *w, bool half, struct cpu_range r, const void *dy,
                   const void *x, float *sum, void *scratch) {
    (void)half;
    const struct derivative d = derivative_of(w, r, scratch);
    const int64_t places = w->n * w->oh * w->ow, makes = d.t.makes, reads = d.t.reads;
    const int64_t row = w->kh * w->kw * reads;
    /* Blocks of about the same size, in groups. */
    const int64_t blocks = (places + d.places - 1) / d.places * HALF_GROUP;
    const int64_t block = (places + blocks - 1) / blocks * HALF_GROUP;
    for (int64_t first = 0; first < places; first += block) {
        const int64_t k = least(block, places - first);
        turn_dy(&d, dy, first, k);
        list_places(&d, first, k);
        for (int64_t group = r.begin / makes; group * makes < r.end; group++) {
            const struct cpu_range outputs = {
                group * makes > r.begin ? group * makes : r.begin,
                least(r.end, (group + 1) * makes)};
            for (int64_t c = 0; c < reads; c += PANELS * BLOCK)
                add_channels(&d, (const uint16_t *)x + (group * reads + c) * w->h * w->w, c, first,
                             k, outputs, first > 0, sum + (outputs.begin - r.begin) * row);
        }
    }
}

const struct conv_dw_way conv_tiles_dw = {scratch_of, sum_up};
