/* SPDX-License-Identifier: Apache-2.0
 * Reference kernels of reductions. Sums run over the elements in row-major order, in double, those
 * of integers exactly. */
#include <math.h>
#include <string.h>

#include "dev/ref/index.h"
#include "dev/ref/ref.h"
#include "ops/op.h"

/* The elements of x that contribute to each output: `outer` walks the outputs, `inner` the axes of
 * the mask; both move operand 0, which is x. */
struct reduction {
    struct walk outer, inner;
};

static struct reduction reduction(const tri_call *c, unsigned mask) {
    const tri_shape *x = &ref_in(c, 0)->shape;
    tri_shape kept = op_reduced_shape(x, mask, true), reduced = op_reduced_shape(x, ~mask, true);
    struct reduction r = {walk_over(&kept), walk_over(&reduced)};
    walk_operand(&r.outer, 0, x);
    walk_operand(&r.inner, 0, x);
    return r;
}

static unsigned axes(const tri_call *c) {
    return op_axes_mask(c->node, ref_in(c, 0)->shape.rank);
}

static double sum_real(const tri_call *c, int64_t base, struct walk w) {
    double sum = 0;
    do
        sum += ref_load(c, 0, base + w.offset[0]);
    while (walk_next(&w));
    return sum;
}

static int64_t sum_exact(const tri_call *c, int64_t base, struct walk w) {
    uint64_t sum = 0;
    do
        sum += (uint64_t)ref_load_i64(c, 0, base + w.offset[0]);
    while (walk_next(&w));
    return (int64_t)sum;
}

static void sum(const tri_call *c) {
    struct reduction r = reduction(c, axes(c));
    bool exact = !type_is_float(ref_in(c, 0)->type);
    int64_t i = 0;
    do {
        if (exact)
            ref_store_i64(c, 0, i++, sum_exact(c, r.outer.offset[0], r.inner));
        else
            ref_store(c, 0, i++, sum_real(c, r.outer.offset[0], r.inner));
    } while (walk_next(&r.outer));
}

static void mean(const tri_call *c) {
    struct reduction r = reduction(c, axes(c));
    double count = (double)c->node->entry->op->count(c->node);
    int64_t i = 0;
    do
        ref_store(c, 0, i++, sum_real(c, r.outer.offset[0], r.inner) / count);
    while (walk_next(&r.outer));
}

static void spread(const tri_call *c) {
    const tri_shape *like = &ref_out(c, 0)->shape;
    tri_shape kept = op_reduced_shape(like, op_axes_mask(c->node, like->rank), true);
    double count = (double)tri_attr_int(c->node, "count");
    struct walk w = walk_over(like);
    walk_operand(&w, 0, &kept);
    int64_t i = 0;
    do
        ref_store(c, 0, i++, ref_load(c, 0, w.offset[0]) / count);
    while (walk_next(&w));
}

/* ---- orders ---- */

/* Whether element a of x is larger than element b; NaN is larger than all numbers. */
static bool above(const tri_call *c, int64_t a, int64_t b) {
    return type_is_float(ref_in(c, 0)->type)
               ? ref_above(ref_load(c, 0, a), ref_load(c, 0, b))
               : ref_load_i64(c, 0, a) > ref_load_i64(c, 0, b);
}

/* The first of the largest elements: its place in x, and its number in the walk. */
static int64_t largest(const tri_call *c, int64_t base, struct walk w, int64_t *place) {
    int64_t best = base, i = 0;
    *place = 0;
    while (walk_next(&w)) {
        i++;
        if (!above(c, base + w.offset[0], best)) continue;
        best = base + w.offset[0];
        *place = i;
    }
    return best;
}

static void max(const tri_call *c) {
    struct reduction r = reduction(c, axes(c));
    size_t size = tri_type_size(ref_out(c, 0)->type);
    char *out = c->out[0];
    int64_t place;
    do {
        int64_t best = largest(c, r.outer.offset[0], r.inner, &place);
        memcpy(out, (const char *)c->in[0] + (size_t)best * size, size);
        out += size;
    } while (walk_next(&r.outer));
}

static void argmax(const tri_call *c) {
    int axis;
    CHECK(op_axis(c->node, "axis", 0, &axis));
    struct reduction r = reduction(c, 1u << axis);
    int64_t place, i = 0;
    do {
        largest(c, r.outer.offset[0], r.inner, &place);
        ref_store_i64(c, 0, i++, place);
    } while (walk_next(&r.outer));
}

/* Whether element a of input 0 and element b of input 1 are equal, or both NaN. */
static bool equal(const tri_call *c, int64_t a, int64_t b) {
    if (!type_is_float(ref_in(c, 0)->type)) return ref_load_i64(c, 0, a) == ref_load_i64(c, 1, b);
    double x = ref_load(c, 0, a), y = ref_load(c, 1, b);
    return x == y || (x != x && y != y);
}

static void first_equal(const tri_call *c) {
    int axis;
    CHECK(op_axis(c->node, "axis", 0, &axis));
    struct reduction r = reduction(c, 1u << axis);
    int64_t i = 0;
    do {
        int64_t place = tri_attr_int(c->node, "first"), found = INT64_MAX;
        struct walk w = r.inner;
        do {
            if (found == INT64_MAX && equal(c, r.outer.offset[0] + w.offset[0], i)) found = place;
            place++;
        } while (walk_next(&w));
        ref_store_i64(c, 0, i++, -found);
    } while (walk_next(&r.outer));
}

/* Whether a comes before b: larger, or equal and earlier. */
static bool before(const tri_call *c, int64_t a, int64_t b) {
    return above(c, a, b) || (a < b && !above(c, b, a));
}

/* Each place takes the first of those after the previous one. */
static void top_k(const tri_call *c) {
    const tri_shape *x = &ref_in(c, 0)->shape;
    int64_t k = tri_attr_int(c->node, "k"), length = x->dim[x->rank - 1];
    int64_t rows = tri_shape_count(x) / length;
    size_t size = tri_type_size(ref_out(c, 0)->type);
    for (int64_t r = 0; r < rows; r++) {
        int64_t first = r * length, last = -1;
        for (int64_t p = r * k; p < (r + 1) * k; p++) {
            int64_t best = -1;
            for (int64_t i = first; i < first + length; i++)
                if ((last < 0 || before(c, last, i)) && (best < 0 || before(c, i, best))) best = i;
            memcpy((char *)c->out[0] + (size_t)p * size,
                   (const char *)c->in[0] + (size_t)best * size, size);
            ref_store_i64(c, 1, p, best - first);
            last = best;
        }
    }
}

/* ---- over several tensors ---- */

static void sum_squares(const tri_call *c) {
    double sum = 0;
    for (int k = 0; k < c->node->n_in; k++)
        for (int64_t i = 0, n = tri_shape_count(&ref_in(c, k)->shape); i < n; i++)
            sum += ref_load(c, k, i) * ref_load(c, k, i);
    ref_store(c, 0, 0, sum);
}

static void all_finite(const tri_call *c) {
    bool all = true;
    for (int k = 0; k < c->node->n_in; k++)
        for (int64_t i = 0, n = tri_shape_count(&ref_in(c, k)->shape); i < n; i++)
            all = all && isfinite(ref_load(c, k, i));
    ref_store_i64(c, 0, 0, all);
}

const struct dev_row ref_reduce[] = {
    {.op = "sum", .run = sum},
    {.op = "mean", .run = mean},
    {.op = "spread", .run = spread},
    {.op = "max", .run = max},
    {.op = "argmax", .run = argmax},
    {.op = "first_equal", .run = first_equal},
    {.op = "top_k", .run = top_k},
    {.op = "sum_squares", .run = sum_squares},
    {.op = "all_finite", .run = all_finite},
    {0},
};
