/* SPDX-License-Identifier: Apache-2.0
 * Convolution and its derivatives. All three sum the same products: place y of the output, place x
 * of the input and place w of the weight belong together, and each operator computes one of the
 * three from the other two. */
#include "dev/ref/sums.h"
#include "ops/window.h"

enum { Y, X, W };

struct sum {
    const tri_call *c;
    struct window w;
    int out;      /* Y, X or W: what is computed */
    int input[3]; /* the inputs that the other two are */
    double *sums;
};

static void add(const struct sum *s, const int64_t at[3]) {
    double product = 1;
    for (int k = 0; k < 3; k++)
        if (k != s->out) product *= ref_load(s->c, s->input[k], at[k]);
    s->sums[at[s->out]] += product;
}

/* All products with place (n, o, r, q) of the output. */
static void add_place(const struct sum *s, int64_t n, int64_t o, int64_t r, int64_t q) {
    const struct window *w = &s->w;
    int64_t in = w->c / w->groups, first = o / (w->o / w->groups) * in;
    for (int64_t i = 0; i < in; i++)
        for (int64_t kr = 0; kr < w->kh; kr++)
            for (int64_t kq = 0; kq < w->kw; kq++) {
                int64_t xr = r * w->sh - w->ph + kr * w->dh, xq = q * w->sw - w->pw + kq * w->dw;
                if (xr < 0 || xr >= w->h || xq < 0 || xq >= w->w) continue;
                add(s, (int64_t[3]){[Y] = ((n * w->o + o) * w->oh + r) * w->ow + q,
                                    [X] = ((n * w->c + first + i) * w->h + xr) * w->w + xq,
                                    [W] = ((o * in + i) * w->kh + kr) * w->kw + kq});
            }
}

static void add_bias(const struct sum *s) {
    int64_t inner = s->w.oh * s->w.ow, count = s->w.n * s->w.o * inner;
    for (int64_t i = 0; i < count; i++) s->sums[i] = ref_load(s->c, 2, i / inner % s->w.o);
}

static void run(const tri_call *c, int out, int y, int x, int w) {
    struct sum s = {.c = c, .out = out, .input = {[Y] = y, [X] = x, [W] = w}};
    if (!window_of(c->node, &s.w)) return;
    s.sums = sums_new(c, tri_shape_count(&ref_out(c, 0)->shape));
    if (!s.sums) return;
    if (out == Y && c->node->n_in > 2) add_bias(&s);
    for (int64_t n = 0; n < s.w.n; n++)
        for (int64_t o = 0; o < s.w.o; o++)
            for (int64_t r = 0; r < s.w.oh; r++)
                for (int64_t q = 0; q < s.w.ow; q++) add_place(&s, n, o, r, q);
    sums_store(c, 0, s.sums);
    free(s.sums);
}

static void conv2d(const tri_call *c) { run(c, Y, -1, 0, 1); }
static void conv2d_dx(const tri_call *c) { run(c, X, 0, -1, 1); }
static void conv2d_dw(const tri_call *c) { run(c, W, 0, 1, -1); }

const struct dev_row ref_conv[] = {
    {.op = "conv2d", .run = conv2d},
    {.op = "conv2d_dx", .run = conv2d_dx},
    {.op = "conv2d_dw", .run = conv2d_dw},
    {0},
};
