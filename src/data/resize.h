/* SPDX-License-Identifier: Apache-2.0
 * Scales pictures with a triangle filter as wide as the ratio, so that smaller pictures do not
 * alias: the definition, and the bits, of Pillow's BILINEAR. It uses integers only, so it is the
 * same on every machine. */
#ifndef DATA_RESIZE_H
#define DATA_RESIZE_H

#include "base/base.h"

/* One dimension: the span [from, to) of the source becomes `size` pixels, of which `count` are
 * computed, from `first` on. Only pixels in [0, limit) of the source are used. */
struct resize_span {
    double from, to;
    int limit;
    int64_t size, first;
    int count;
};

/* The source pixels of each result pixel, and their weights: */
struct resize_axis {
    int count, taps;       /* pixels of the result; weights of each, padded with 0 */
    int begin, end;        /* the source pixels in use */
    int *from; /* [count]: the first source pixel of each; begin <= from, from + taps <= end */
    int32_t *weight;       /* [count][taps], in 2^-RESIZE_BITS; a row adds up to about 1 */
};
#define RESIZE_BITS 22

/* Memory that is reused for the next picture. */
struct resize {
    struct resize_axis x, y;
    void *memory[2];
    size_t capacity[2];
    unsigned char *rows; /* after the first dimension */
    size_t rows_capacity;
};
void resize_free(struct resize *r);

/* Plans both dimensions. */
tri_status resize_plan(struct resize *r, const struct resize_span *x, const struct resize_span *y);

/* rgb: pixel (x.begin, y.begin) of the source; one byte after the last pixel may be read. to:
 * [y.count][x.count][3] */
tri_status resize_run(struct resize *r, const unsigned char *rgb, size_t stride, unsigned char *to);

#endif
