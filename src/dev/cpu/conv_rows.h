/* SPDX-License-Identifier: Apache-2.0
 * What places of a convolution's output read of its input, tap by tap. */
#ifndef DEV_CPU_CONV_ROWS_H
#define DEV_CPU_CONV_ROWS_H

#include "dev/cpu/vec.h"

#define CONV_PLACES 256 /* at most, that are looked at together */

/* Places of an axis: first, first + step, ... For the first of them, tap tap + i * next_tap reads
 * line read + i * next_read, and `move` lines further for each place after it. */
struct conv_axis {
    int64_t first, step, count, move;
    int64_t taps, tap, next_tap, read, next_read;
};

/* Places of one remainder by the stride, which have taps of their own in the derivative by x;
 * forward there is one remainder, with all places. */
INLINE struct conv_axis conv_axis_of(bool back, int64_t remainder, int64_t places, int64_t kernel,
                                     int64_t stride, int64_t pad, int64_t dilation) {
    if (!back) return (struct conv_axis){0, 1, places, stride, kernel, 0, 1, -pad, dilation};
    struct conv_axis a = {.first = remainder, .step = stride, .move = 1};
    int64_t shared = stride;
    for (int64_t rest = dilation, r; rest; shared = rest, rest = r) r = shared % rest;
    a.count = remainder < places ? (places - remainder + stride - 1) / stride : 0;
    a.next_tap = stride / shared;
    a.next_read = -dilation / shared;
    while (a.tap < kernel && (remainder + pad - a.tap * dilation) % stride) a.tap++;
    a.taps = (kernel - a.tap + a.next_tap - 1) / a.next_tap;
    a.read = (remainder + pad - a.tap * dilation) / stride;
    return a;
}

/* Where tap t of those of both axes is in a kernel of kw columns. */
INLINE int64_t conv_tap(const struct conv_axis *down, const struct conv_axis *across, int64_t kw,
                        int64_t t) {
    return (down->tap + t / across->taps * down->next_tap) * kw + across->tap +
           t % across->taps * across->next_tap;
}

struct conv_plane {
    int64_t channels, h, w;
    int64_t place; /* elements from one place to the next: 16 in blocks of channels, or 1 */
};

/* Elements of a sample. */
static inline int64_t conv_plane_size(const struct conv_plane *p) {
    return p->channels * p->h * p->w;
}

/* Consecutive places of a line. */
struct conv_span {
    int64_t at, n; /* which of the places; how many */
    int64_t sample, line, column;
};

/* Places that read evenly: element `from`, and one `move` further for each after it. */
struct conv_piece {
    int64_t at, n, sample;
    int64_t from; /* in the first channel; -1: padding */
};

struct conv_places {
    struct conv_plane from;
    int64_t n, move, spans, pieces;
    struct conv_span span[CONV_PLACES];
    struct conv_piece piece[CONV_PLACES]; /* of the present tap */
};

/* n places from `first` on, over all samples line by line. */
INLINE void conv_places_find(const struct conv_axis *down, const struct conv_axis *across,
                             const struct conv_plane *from, int64_t first, int64_t n,
                             struct conv_places *p) {
    const int64_t line = first / across->count;
    int64_t i = line % down->count, j = first % across->count, sample = line / down->count;
    p->from = *from;
    p->n = n;
    p->move = across->move * from->place;
    p->spans = 0;
    for (int64_t at = 0; at < n; j = 0) {
        const int64_t left = across->count - j, some = left < n - at ? left : n - at;
        p->span[p->spans++] = (struct conv_span){at, some, sample, i, j};
        at += some;
        if (++i == down->count) i = 0, sample++;
    }
}

INLINE void conv_places_add(int64_t at, int64_t n, int64_t sample, int64_t from,
                            struct conv_places *p) {
    struct conv_piece *last = p->pieces ? &p->piece[p->pieces - 1] : NULL;
    if (n <= 0) return;
    if (last && last->sample == sample &&
        (last->from < 0 ? from < 0 : last->from + last->n * p->move == from))
        last->n += n;
    else
        p->piece[p->pieces++] = (struct conv_piece){at, n, sample, from};
}

/* Looks up what a tap reads: number `i` and `j` of those of the axes. */
INLINE void conv_places_read(const struct conv_axis *down, const struct conv_axis *across,
                             int64_t i, int64_t j, struct conv_places *p) {
    const struct conv_plane *from = &p->from;
    const int64_t top = down->read + i * down->next_read, move = across->move;
    const int64_t left = across->read + j * across->next_read, right = from->w - left;
    /* Columns of the output that read inside a line. */
    const int64_t begin = left < 0 ? (-left + move - 1) / move : 0;
    const int64_t end = right > 0 ? (right + move - 1) / move : 0;
    p->pieces = 0;
    for (int64_t k = 0; k < p->spans; k++) {
        const struct conv_span *s = &p->span[k];
        const int64_t row = s->line * down->move + top, stop = s->column + s->n;
        int64_t first = s->column > begin ? s->column : begin, last = stop < end ? stop : end;
        if (row < 0 || row >= from->h || last <= first) first = last = stop;
        conv_places_add(s->at, first - s->column, s->sample, -1, p);
        conv_places_add(s->at + first - s->column, last - first, s->sample,
                        s->sample * conv_plane_size(from) +
                            (row * from->w + first * move + left) * from->place,
                        p);
        conv_places_add(s->at + last - s->column, stop - last, s->sample, -1, p);
    }
}

/* What they read of a plane, to to[0, n). */
#define CONV_PLACES_ROW(name, type)                                                         \
    INLINE void name(const struct conv_places *p, const type *plane, type *restrict to) {   \
        const int64_t move = p->move;                                                       \
        for (int64_t k = 0; k < p->pieces; k++) {                                           \
            const int64_t n = p->piece[k].n;                                                \
            type *row = to + p->piece[k].at;                                                \
            const type *from = plane + p->piece[k].from;                                    \
            if (p->piece[k].from < 0)                                                       \
                for (int64_t i = 0; i < n; i++) row[i] = 0;                                 \
            else if (move == 1)                                                             \
                for (int64_t i = 0; i < n; i++) row[i] = from[i];                           \
            else if (move == 2)                                                             \
                for (int64_t i = 0; i < n; i++) row[i] = from[2 * i];                       \
            else                                                                            \
                for (int64_t i = 0; i < n; i++) row[i] = from[i * move];                    \
        }                                                                                   \
    }
CONV_PLACES_ROW(conv_places_row, float)
CONV_PLACES_ROW(conv_places_half_row, uint16_t)

#endif
