/* SPDX-License-Identifier: Apache-2.0
 * Reductions over the samples of each lane. */
#include "ops/op.h"

bool op_lane_shape(const tri_node *n, const tri_shape *x, tri_shape *reduced) {
    if (!node_per_lane(n)) return true;
    if (op_axes_mask(n, x->rank) != 1 || reduced->rank != x->rank)
        return tri_op_error(n, "per_lane is for axes=[0], with keep=1");
    reduced->dim[0] = n->graph->lanes;
    return true;
}

/* [rows, 1, ...]: whether a row's sample counts. Those that fill up a step do not, and are last. */
static tri_tensor *counting_rows(tri_tensor *x) {
    tri_graph *g = tri_graph_of(x);
    tri_shape column = TRI_SHAPE(tri_dim(x, 0));
    double each = (double)(tri_dim(x, 0) / tri_batch(g));
    for (int i = 1; i < tri_ndim(x); i++) column.dim[column.rank++] = 1;
    tri_tensor *samples = tri_cast(tri_scalar(g, "samples"), TRI_I64);
    tri_tensor *end = tri_mul(samples, op_constant_like(each, samples));
    return tri_reshape(tri_less(tri_arange(x), end), column);
}

static tri_tensor *reduce_rows(tri_tensor *x, const char *op) {
    return APPLY(op, INPUTS(x), AL("axes", TRI_SHAPE(0)), AI("keep", 1), AI("per_lane", 1));
}

static double lowest(tri_type type) {
    static const double of[] = {[TRI_F32] = -0x1.fffffep127, [TRI_BF16] = -0x1.fep127,
                                [TRI_F16] = -65504, [TRI_I32] = INT32_MIN, [TRI_I64] = -0x1p63,
                                [TRI_U8] = 0, [TRI_BOOL] = 0};
    return of[type];
}

tri_tensor *op_reduce_per_lane(tri_tensor *x, tri_shape axes, bool keep, const char *op) {
    tri_shape rest = {0}, all = op_reduce_axes(x, axes);
    bool samples = false, mean = !strcmp(op, "mean"), largest = !strcmp(op, "max");
    for (int i = 0; i < all.rank && i < TRI_MAX_RANK; i++)
        if (all.dim[i]) rest.dim[rest.rank++] = all.dim[i];
        else samples = true;
    if (x && !samples)
        graph_mistake(x->node->graph, "per_lane: the axes must have dimension 0, of the samples");
    if (!x || x->node->graph->status) return x ? x->node->graph->poison : NULL;
    if (rest.rank) x = APPLY(op, INPUTS(x), AL("axes", rest), AI("keep", keep));
    if (mean && !type_is_float(x->spec.type)) APPLY(op, INPUTS(x)); /* its error */
    if (x->node->graph->status) return x->node->graph->poison;
    tri_type type = x->spec.type;
    tri_tensor *counts = counting_rows(x);
    tri_tensor *left = op_constant_like(largest ? lowest(type) : 0, x);
    tri_tensor *y = reduce_rows(tri_where(counts, x, left), largest ? op : "sum");
    if (!mean && !largest) return y;
    tri_tensor *n = reduce_rows(tri_cast(counts, TRI_F32), "sum");
    tri_tensor *none = tri_less(n, op_constant_like(1, n));
    if (largest) return tri_where(none, op_constant_like(0, y), y);
    n = tri_where(none, op_constant_like(1, n), n);
    return tri_cast(tri_div(tri_cast(y, TRI_F32), n), type);
}
