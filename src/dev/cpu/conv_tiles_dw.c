/* SPDX-License-Identifier: Apache-2.0
 * The derivative of a convolution's weight with the tiles of AMX. Places of the output, line by
 * line, are cut in groups of 32: of dy a tile has 16 channels of them, of what a tap reads of x the
 * pairs of 16 channels. dy is turned once for a block of places, and x is paired for each tap. */
#include "dev/cpu/conv_tiles.h"
#include "dev/cpu/gemm_tiles.h"
#include "dev/cpu/half.h"

#define BLOCK GEMM_PANEL
#define PANELS 2            /* of x, which are paired together */
#define TILE (16 * BLOCK)   /* floats */
#define UNEVEN 16           /* floats after dy's tiles of a group, for the sets of a cache */
#define TURNED (256 << 10)  /* floats of dy in the second cache */

#define SUMS (256 << 10)    /* floats of sums that the second cache keeps */
#define PLACES 1024         /* that are multiplied together, at most */

/* Fewer places where sums stay in the cache, so that what is paired of x is in the first. */
static int64_t places_of(const struct window *w, int64_t outputs) {
    const bool kept = outputs * w->kh * w->kw * w->c / w->groups <= SUMS;
    return kept || outputs * PLACES > 2 * TURNED ? PLACES / 2 : PLACES;
}

static int64_t group_floats(int64_t outputs) { return outputs * BLOCK + UNEVEN; }

bool conv_tiles_dw_takes(const struct window *w) {
    return w->o / w->groups % BLOCK == 0 && w->c / w->groups % BLOCK == 0;
}

/* [group, output, pair], x's panels, then where places are. */
size_t conv_tiles_dw_scratch(const struct window *w, int64_t outputs) {
    const int64_t k = places_of(w, outputs), groups = k / HALF_GROUP;
    return (size_t)(groups * (group_floats(outputs) + PANELS * TILE)) * sizeof(float) +
           (size_t)k * sizeof(int64_t);
}

/* Where what tap t reads for places [first, first + k) begins; -1: padding, and what the last group
 * lacks. */
static void list_reads(const struct window *w, int64_t t, int64_t first, int64_t k, int64_t *read) {
    const int64_t top = t / w->kw * w->dh - w->ph, left = t % w->kw * w->dw - w->pw;
    int64_t sample = first / (w->oh * w->ow), i = first / w->ow % w->oh, j = first % w->ow, at = 0;
    while (at < k) {
        const int64_t row = i * w->sh + top, end = least(w->ow, j + k - at);
        const int64_t line = (sample * w->c * w->h + row * BLOCK) * w->w;
        for (; j < end; j++) {
            const int64_t column = j * w->sw + left;
            const bool inside = row >= 0 && row < w->h && column >= 0 && column < w->w;
            read[at++] = inside ? line + column * BLOCK : -1;
        }
        j = 0;
        if (++i == w->oh) i = 0, sample++;
    }
    while (at % HALF_GROUP) read[at++] = -1;
}

static const uint16_t zeros[PANELS * BLOCK];

/* Pairs of a group's places, of `n` blocks of channels: [pair, 16] each. */
INLINE void pair_group(const int n, const int64_t *read, const uint16_t *x, int64_t block,
                       int64_t next, float *to) {
    UNROLL_4
    for (int i = 0; i < HALF_GROUP; i += 2) {
        const uint16_t *lower = read[i] < 0 ? zeros : x + read[i];
        const uint16_t *upper = read[i + 1] < 0 ? zeros : x + read[i + 1];
        const int64_t down = read[i] < 0 ? BLOCK : block, up = read[i + 1] < 0 ? BLOCK : block;
        UNROLL for (int k = 0; k < n; k++)
            half_step(upper + k * up, lower + k * down, BLOCK, to + k * next + i / 2 * BLOCK);
    }
}

static void turn_dy(const struct window *w, struct cpu_range r, const uint16_t *dy,
                    const int64_t *read, int64_t groups, float *to) {
    const int64_t each = group_floats(r.end - r.begin);
    float pairs[TILE] __attribute__((aligned(64)));
    for (int64_t g = 0; g < groups; g++)
        for (int64_t o = r.begin; o < r.end; o += BLOCK) {
            pair_group(1, read + g * HALF_GROUP, dy + o * w->oh * w->ow, 0, 0, pairs);
            half_turn(pairs, BLOCK, to + g * each + (o - r.begin) * BLOCK);
        }
}

/* A block of places. sum [output / 16, tap, channel / 16, 16, 16] */
static void add_places(const struct window *w, struct cpu_range r, const uint16_t *dy,
                       const uint16_t *x, int64_t first, int64_t k, float *sum, void *scratch) {
    const int64_t reads = w->c / w->groups, makes = w->o / w->groups, plane = w->h * w->w;
    const int64_t taps = w->kh * w->kw, groups = (k + HALF_GROUP - 1) / HALF_GROUP;
    const int64_t each = group_floats(r.end - r.begin), panel = groups * TILE;
    float *turned = scratch, *pairs = turned + groups * each;
    int64_t *read = (int64_t *)(void *)(pairs + PANELS * panel);
    const struct window own = {.c = w->o, .h = w->oh, .w = w->ow, .oh = w->oh, .ow = w->ow,
                               .kw = 1, .sh = 1, .sw = 1};
    struct gemm_run run[PLACES / HALF_GROUP];
    list_reads(&own, 0, first, k, read);
    turn_dy(w, r, dy, read, groups, turned);
    for (int64_t g = 0; g < groups; g++) run[g] = (struct gemm_run){g * each, g * TILE, 0};
    for (int64_t t = 0; t < taps; t++) {
        list_reads(w, t, first, k, read);
        for (int64_t group = r.begin / makes; group * makes < r.end; group++) {
            const int64_t begin = group * makes > r.begin ? group * makes : r.begin;
            const int64_t m = least(r.end, (group + 1) * makes) - begin;
            for (int64_t c = 0, n; c < reads; c += n) {
                const uint16_t *from = x + (group * reads + c) * plane;
                n = least(PANELS * BLOCK, reads - c);
                for (int64_t g = 0; g < groups; g++)
                    if (n > BLOCK)
                        pair_group(2, read + g * HALF_GROUP, from, plane * BLOCK, panel,
                                   pairs + g * TILE);
                    else
                        pair_group(1, read + g * HALF_GROUP, from, 0, 0, pairs + g * TILE);
                const struct gemm_tiled product = {
                    .m = m, .n = n, .run = run, .runs = groups,
                    .a = turned + (begin - r.begin) * BLOCK, .b = pairs, .b_panel = panel};
                gemm_tiles_sums(&product,
                                sum + (begin - r.begin) * taps * reads + (t * reads + c) * BLOCK,
                                taps * reads * BLOCK, first > 0);
            }
        }
    }
}

void conv_tiles_dw(const struct window *w, struct cpu_range r, const void *dy, const void *x,
                   float *sum, void *scratch) {
    const int64_t places = w->n * w->oh * w->ow, most = places_of(w, r.end - r.begin);
    const int64_t blocks = (places + most - 1) / most * HALF_GROUP;
    const int64_t block = (places + blocks - 1) / blocks * HALF_GROUP;
    for (int64_t first = 0; first < places; first += block)
        add_places(w, r, dy, x, first, least(block, places - first), sum, scratch);
}
