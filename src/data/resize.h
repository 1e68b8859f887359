/* SPDX-License-Identifier: Apache-2.0
 * Pictures made smaller or larger by a triangle filter as wide as the ratio, so that what is made
 * smaller does not alias: the definition, and the bits, of Pillow's BILINEAR. Whole numbers
 * throughout, hence the same on every machine. */
#ifndef DATA_RESIZE_H
#define DATA_RESIZE_H

#include "base/base.h"

/* One direction: the span [from, to) of the source becomes `size` pixels, of which `count` are made,
 * from `first` on. No pixel outside [0, limit) of the source is looked at. */
struct resize_span {
    double from, to;
    int limit;
    int64_t size, first;
    int count;
};

/* Which pixels of the source make a pixel of the result, and how much of each: */
struct resize_axis {
    int count, taps;       /* pixels of the result; weights of each, the last ones perhaps 0 */
    int begin, end;        /* the pixels of the source that are looked at */
    int *from;             /* [count]: the first of each; begin <= from, from + taps <= end */
    int32_t *weight;       /* [count][taps], in 2^-RESIZE_BITS; a row's sum is about 1 */
};
#define RESIZE_BITS 22

/* Memory that is kept from one picture to the next. */
struct resize {
    struct resize_axis x, y;
    void *memory[2];
    size_t capacity[2];
    unsigned char *rows; /* what lies between the two directions */
    size_t rows_capacity;
};
void resize_free(struct resize *r);

/* Works out both directions. */
tri_status resize_plan(struct resize *r, const struct resize_span *x, const struct resize_span *y);

/* rgb: pixel (x.begin, y.begin) of the source; one byte behind the last pixel may be read. to: [y.count][x.count][3] */
tri_status resize_run(struct resize *r, const unsigned char *rgb, size_t stride, unsigned char *to);

#endif
