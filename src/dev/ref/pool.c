/* SPDX-License-Identifier: Apache-2.0
 * Pooling and its derivatives. */
#include "dev/ref/sums.h"
#include "ops/window.h"

/* One window: its output place and the part of the input plane that it sees. */
struct view {
    int64_t y, plane; /* index of the output element; of the plane's first input element */
    struct window_span v, h;
    int64_t divisor; /* of the average */
};

typedef void visitor(const tri_call *c, const struct window *w, const struct view *view,
                     double *sums);

static void visit_all(const tri_call *c, visitor *visit, double *sums) {
    struct window w;
    if (!window_of(c->node, &w)) return;
    for (int64_t p = 0; p < w.n * w.c; p++)
        for (int64_t r = 0; r < w.oh; r++)
            for (int64_t q = 0; q < w.ow; q++) {
                struct view view = {.y = (p * w.oh + r) * w.ow + q, .plane = p * w.h * w.w,
                                    .v = window_rows(&w, r), .h = window_columns(&w, q),
                                    .divisor = window_divisor(&w, r, q)};
                visit(c, &w, &view, sums);
            }
}

/* NaN wins, as in PyTorch: it must not vanish. */
static void max_visit(const tri_call *c, const struct window *w, const struct view *view,
                      double *sums) {
    double best = 0;
    int64_t index = -1;
    (void)sums;
    for (int64_t r = view->v.begin; r < view->v.end; r++)
        for (int64_t q = view->h.begin; q < view->h.end; q++) {
            double x = ref_load(c, 0, view->plane + r * w->w + q);
            if (index < 0 || x > best || (x != x && best == best)) {
                best = x;
                index = (w->y0 + r) * w->all_w + w->x0 + q;
            }
        }
    ref_store(c, 0, view->y, best);
    ref_store(c, 1, view->y, (double)index);
}

static void max_dx_visit(const tri_call *c, const struct window *w, const struct view *view,
                         double *sums) {
    int64_t index = (int64_t)ref_load(c, 1, view->y);
    const int64_t row = index / w->all_w - w->y0, column = index % w->all_w - w->x0;
    if (index < 0 || index >= w->all_h * w->all_w)
        tri_call_fail(c, "index %lld at element %lld is not below %lld", (long long)index,
                      (long long)view->y, (long long)(w->all_h * w->all_w));
    else if (row >= 0 && row < w->h && column >= 0 && column < w->w)
        sums[view->plane + row * w->w + column] += ref_load(c, 0, view->y);
}

static void avg_visit(const tri_call *c, const struct window *w, const struct view *view,
                      double *sums) {
    double sum = 0;
    (void)sums;
    for (int64_t r = view->v.begin; r < view->v.end; r++)
        for (int64_t q = view->h.begin; q < view->h.end; q++)
            sum += ref_load(c, 0, view->plane + r * w->w + q);
    ref_store(c, 0, view->y, sum / (double)view->divisor);
}

static void avg_dx_visit(const tri_call *c, const struct window *w, const struct view *view,
                         double *sums) {
    double d = ref_load(c, 0, view->y) / (double)view->divisor;
    for (int64_t r = view->v.begin; r < view->v.end; r++)
        for (int64_t q = view->h.begin; q < view->h.end; q++) sums[view->plane + r * w->w + q] += d;
}

static void derivative(const tri_call *c, visitor *visit) {
    double *sums = sums_new(c, tri_shape_count(&ref_out(c, 0)->shape));
    if (!sums) return;
    visit_all(c, visit, sums);
    sums_store(c, 0, sums);
    free(sums);
}

static void max_pool(const tri_call *c) { visit_all(c, max_visit, NULL); }
static void max_pool_dx(const tri_call *c) { derivative(c, max_dx_visit); }
static void avg_pool(const tri_call *c) { visit_all(c, avg_visit, NULL); }
static void avg_pool_dx(const tri_call *c) { derivative(c, avg_dx_visit); }

const struct dev_row ref_pool[] = {
    {.op = "max_pool", .run = max_pool},
    {.op = "max_pool_dx", .run = max_pool_dx},
    {.op = "avg_pool", .run = avg_pool},
    {.op = "avg_pool_dx", .run = avg_pool_dx},
    {0},
};
