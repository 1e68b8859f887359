/* SPDX-License-Identifier: Apache-2.0 */
#include "data/resize.h"

#include <stdlib.h>
#include <string.h>

#include "base/clones.h"

#define CHANNELS 3

/* ---- weights ---- */

static int floor_at_0(double x) { return x > 0 ? (int)x : 0; }

/* The filter's half width, in pixels of the source. */
static double reach(const struct resize_span *s) {
    double ratio = (s->to - s->from) / (double)s->size;
    return ratio > 1 ? ratio : 1;
}

static void range(const struct resize_span *s, int i, double *centre, int *from, int *to) {
    double support = reach(s), ratio = (s->to - s->from) / (double)s->size;
    *centre = s->from + ((double)(s->first + i) + 0.5) * ratio;
    *from = floor_at_0(*centre - support + 0.5);
    *to = floor_at_0(*centre + support + 0.5);
    if (*to > s->limit) *to = s->limit;
}

/* weight[k] of the pixels from .. to-1; the unrounded ones add up to 1 */
static void weigh(double centre, double support, int from, int to, double *exact, int32_t *weight) {
    double sum = 0, scale = 1 / support;
    for (int k = 0; k < to - from; k++) {
        double d = (k + from - centre + 0.5) * scale;
        if (d < 0) d = -d;
        exact[k] = d < 1 ? 1 - d : 0;
        sum += exact[k];
    }
    for (int k = 0; k < to - from; k++)
        weight[k] = (int32_t)(0.5 + (sum != 0 ? exact[k] / sum : exact[k]) * (1 << RESIZE_BITS));
}

static bool take(void **memory, size_t *capacity, size_t bytes) {
    if (*capacity >= bytes) return true;
    free(*memory);
    *memory = malloc(bytes);
    *capacity = *memory ? bytes : 0;
    return *memory;
}


/* Finds the source pixels in use, and the most that contribute to one result pixel. */
static int survey(const struct resize_span *s, struct resize_axis *a) {
    double centre;
    int from, to, most = 0;
    a->begin = s->limit;
    a->end = 0;
    for (int i = 0; i < s->count; i++) {
        range(s, i, &centre, &from, &to);
        if (to - from > most) most = to - from;
        if (from < a->begin) a->begin = from;
        if (to > a->end) a->end = to;
    }
    return most;
}

static tri_status plan(const struct resize_span *s, struct resize_axis *a, void **memory,
                       size_t *capacity) {
    CHECK(s->count > 0 && s->first >= 0 && s->first + s->count <= s->size && s->limit > 0);
    CHECK(s->from >= 0 && s->to > s->from && s->to <= s->limit);
    a->count = s->count;
    a->taps = survey(s, a);
    size_t n = (size_t)a->count, taps = (size_t)a->taps;
    size_t bytes = taps * sizeof(double) + n * taps * sizeof *a->weight + n * sizeof *a->from;
    if (!take(memory, capacity, bytes)) return base_no_memory("resizing a picture");
    double *exact = *memory, centre;
    a->weight = (int32_t *)(exact + taps);
    a->from = (int *)(a->weight + n * taps);
    memset(a->weight, 0, n * taps * sizeof *a->weight);
    for (int i = 0; i < a->count; i++) {
        int from, to;
        range(s, i, &centre, &from, &to);
        a->from[i] = from + a->taps <= a->end ? from : a->end - a->taps;
        weigh(centre, reach(s), from, to, exact,
              a->weight + (size_t)i * taps + (from - a->from[i]));
    }
    return TRI_OK;
}

tri_status resize_plan(struct resize *r, const struct resize_span *x, const struct resize_span *y) {
    tri_status status = plan(x, &r->x, &r->memory[0], &r->capacity[0]);
    return status ? status : plan(y, &r->y, &r->memory[1], &r->capacity[1]);
}

/* ---- pixels ---- */

/* Written with the compilers' vectors: 16 numbers at a time. */
#define TOGETHER 16
typedef uint8_t many_u8 __attribute__((vector_size(TOGETHER)));
typedef uint16_t many_u16 __attribute__((vector_size(2 * TOGETHER)));
typedef int32_t many_i32 __attribute__((vector_size(4 * TOGETHER)));
typedef uint32_t four_u32 __attribute__((vector_size(16)));

#define HALF (1 << (RESIZE_BITS - 1))

static inline uint32_t four_bytes(const unsigned char *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Goes through 16 bits, as compilers have instructions only for that. Macros, as passing vectors to
 * functions depends on the instruction set. */
#define WIDEN(v) __builtin_convertvector(__builtin_convertvector(v, many_u16), many_i32)
#define NARROW(v) __builtin_convertvector(__builtin_convertvector(v, many_u16), many_u8)
#define AT_MOST_255(v) (((v) & ~((v) > 255)) | (((v) > 255) & 255))
#define LEVELS(sum) NARROW(AT_MOST_255((sum) >> RESIZE_BITS))

#define ROWS 4
/* Converts ROWS source rows, from a->begin on, to a->count pixels each. For each it loads the
 * values of a pixel and the first one of its right neighbour: one byte after a row is read, and one
 * is written. */
CLONES static void across(const struct resize_axis *a, const unsigned char *const row[ROWS],
                          unsigned char *const to[ROWS]) {
    const int32_t *w = a->weight;
    for (int i = 0; i < a->count; i++, w += a->taps) {
        ptrdiff_t at = (ptrdiff_t)(a->from[i] - a->begin) * CHANNELS;
        many_i32 sum = (many_i32){0} + HALF;
        for (int k = 0; k < a->taps; k++, at += CHANNELS) {
            four_u32 pixels = {four_bytes(row[0] + at), four_bytes(row[1] + at),
                               four_bytes(row[2] + at), four_bytes(row[3] + at)};
            sum += WIDEN((many_u8)pixels) * w[k];
        }
        four_u32 result = (four_u32)LEVELS(sum);
        for (int r = 0; r < ROWS; r++) {
            uint32_t pixel = result[r];
            memcpy(to[r] + (ptrdiff_t)i * CHANNELS, &pixel, sizeof pixel);
        }
    }
}

/* Combines `taps` rows into one; bytes is a multiple of TOGETHER. */
CLONES static void down(const int32_t *weight, int taps, const unsigned char *restrict rows,
                        size_t bytes, unsigned char *restrict to) {
    for (size_t j = 0; j < bytes; j += TOGETHER) {
        many_i32 sum = (many_i32){0} + HALF;
        const unsigned char *p = rows + j;
        for (int k = 0; k < taps; k++, p += bytes) {
            many_u8 v;
            memcpy(&v, p, sizeof v);
            sum += WIDEN(v) * weight[k];
        }
        many_u8 v = LEVELS(sum);
        memcpy(to + j, &v, sizeof v);
    }
}

/* If fewer than ROWS are left, the first of them fills the gap. */
static void all_across(const struct resize *r, size_t rows, size_t bytes, const unsigned char *rgb,
                       size_t stride) {
    unsigned char *spare = r->rows + (rows + 1) * bytes;
    for (size_t i = 0; i < rows; i += ROWS) {
        const unsigned char *from[ROWS];
        unsigned char *to[ROWS];
        for (size_t k = 0; k < ROWS; k++) {
            bool is = i + k < rows;
            from[k] = rgb + (is ? i + k : i) * stride;
            to[k] = is ? r->rows + (i + k) * bytes : spare;
        }
        across(&r->x, from, to);
    }
}

tri_status resize_run(struct resize *r, const unsigned char *rgb, size_t stride,
                      unsigned char *to) {
    const struct resize_axis *y = &r->y;
    size_t width = (size_t)r->x.count * CHANNELS, rows = (size_t)(y->end - y->begin);
    size_t bytes = (width + 1 + TOGETHER - 1) / TOGETHER * TOGETHER; /* of an intermediate row */
    if (!take((void **)&r->rows, &r->rows_capacity, (rows + 2) * bytes))
        return base_no_memory("resizing a picture");
    for (size_t i = 0; i < rows; i++) memset(r->rows + i * bytes + width, 0, bytes - width);
    unsigned char *last = r->rows + rows * bytes; /* one row of the result, and one spare */
    all_across(r, rows, bytes, rgb, stride);
    for (int i = 0; i < y->count; i++, to += width) {
        const unsigned char *from = r->rows + (size_t)(y->from[i] - y->begin) * bytes;
        down(y->weight + (size_t)i * (size_t)y->taps, y->taps, from, bytes, last);
        memcpy(to, last, width);
    }
    return TRI_OK;
}

void resize_free(struct resize *r) {
    free(r->memory[0]);
    free(r->memory[1]);
    free(r->rows);
    *r = (struct resize){0};
}
