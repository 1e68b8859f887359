/* SPDX-License-Identifier: Apache-2.0
 * The derivative of a convolution's weight in f32, of tensors in blocks of 16 channels, as products
 * in segments (gemm.h): k goes over the places of all samples, line by line, in blocks of 256. A
 * tap leaves out the places where it reads padding. */
#include "dev/cpu/conv_dw.h"
#include "dev/cpu/gemm.h"

#define BLOCK GEMM_PANEL
#define PANELS 2 /* of x that are multiplied together with all output channels */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* The segments of places [first, end) that a tap reads. */
static int64_t find_segments(const struct window *w, int64_t down, int64_t across, int64_t first,
                             int64_t end, struct gemm_segment *to) {
    const int64_t top = down * w->dh - w->ph, left = across * w->dw - w->pw;
    int64_t n = 0;
    for (int64_t at = first, next; at < end; at = next) {
        const int64_t line = at / w->ow, i = line % w->oh, sample = line / w->oh;
        int64_t j = at % w->ow;
        const int64_t last = least(w->ow, j + end - at), row = i * w->sh + top;
        next = at + last - j;
        if (row < 0 || row >= w->h) continue;
        while (j < last && j * w->sw + left < 0) j++;
        int64_t stop = last;
        while (stop > j && (stop - 1) * w->sw + left >= w->w) stop--;
        if (j == stop) continue;
        const struct gemm_segment s = {
            (sample * w->o * w->oh * w->ow) + (i * w->ow + j) * BLOCK,
            (sample * w->c * w->h * w->w) + (row * w->w + j * w->sw + left) * BLOCK, stop - j};
        struct gemm_segment *before = n ? to + n - 1 : NULL;
        if (before && before->a + before->n * BLOCK == s.a &&
            before->b + before->n * w->sw * BLOCK == s.b)
            before->n += s.n;
        else
            to[n++] = s;
    }
    return n;
}

/* What the block after [first, end) reads of x and dy. */
static void look_ahead(const struct window *w, struct cpu_range r, const float *dy, const float *x,
                       int64_t end, struct gemm_next next[2]) {
    const int64_t line = end / w->ow, i = line % w->oh, sample = line / w->oh;
    const int64_t row = i * w->sh > w->ph ? i * w->sh - w->ph : 0;
    const int64_t rows = least((GEMM_BLOCK / w->ow + 1) * w->sh, w->h - row);
    next[0] = next[1] = (struct gemm_next){.rows = 0};
    if (sample >= w->n || rows <= 0) return;
    next[0] = (struct gemm_next){x + sample * w->c * w->h * w->w + row * w->w * BLOCK,
                                 w->c / BLOCK, w->h * w->w * BLOCK, rows * w->w * BLOCK};
    next[1] = (struct gemm_next){
        dy + (sample * w->o + r.begin) * w->oh * w->ow + end % (w->oh * w->ow) * BLOCK,
        (r.end - r.begin) / BLOCK, w->oh * w->ow * BLOCK, GEMM_BLOCK * BLOCK};
}

static size_t scratch_of(const struct window *w, int64_t outputs) {
    (void)w, (void)outputs;
    return GEMM_BLOCK * sizeof(struct gemm_segment);
}

/* sum [outputs, kh, kw, c] */
static void sum_up(const struct window *w, struct cpu_range r, const void *dy, const void *x,
                   float *sum, void *scratch) {
    const int64_t places = w->n * w->oh * w->ow, taps = w->kh * w->kw, row = taps * w->c;
    const int64_t blocks = (r.end - r.begin) / BLOCK, all = taps * ((w->c / BLOCK + 1) / PANELS);
    memset(sum, 0, (size_t)((r.end - r.begin) * row) * sizeof *sum);
    for (int64_t first = 0; first < places; first += GEMM_BLOCK) {
        const int64_t end = least(places, first + GEMM_BLOCK);
        struct gemm_next next[2];
        int64_t done = 0;
        look_ahead(w, r, dy, x, end, next);
        for (int64_t t = 0; t < taps; t++) {
            const int64_t n = find_segments(w, t / w->kw, t % w->kw, first, end, scratch);
            for (int64_t c = 0; c < w->c; c += PANELS * BLOCK, done++)
                for (int64_t o = 0; o < blocks; o++) {
                    const struct gemm_segments g = {
                        .n = n, .panels = least(PANELS, (w->c - c) / BLOCK), .segment = scratch,
                        .a = (const float *)dy + (r.begin / BLOCK + o) * w->oh * w->ow * BLOCK,
                        .b = (const float *)x + c * w->h * w->w, .b_k = w->sw * BLOCK,
                        .b_panel = w->h * w->w * BLOCK, .c = sum + o * BLOCK * row + t * w->c + c,
                        .c_row = row};
                    for (int k = 0; k < 2; k++)
                        gemm_fetch(&next[k], done * blocks + o, all * blocks);
                    gemm_segments_run(&g);
                }
        }
    }
}

const struct conv_dw_way FOR_ISA(conv_direct_dw) = {scratch_of, sum_up};
