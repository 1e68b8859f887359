/* SPDX-License-Identifier: Apache-2.0
 * Cells: operators with their parameters, named and initialised as in PyTorch's modules. */
#include <math.h>

#include "ops/op.h"

static const tri_init zeros = {TRI_CONSTANT, 0, 0}, ones = {TRI_CONSTANT, 1, 0};

/* PyTorch's Linear and Conv2d draw both weight and bias from +-1 / sqrt(fan-in). */
static tri_init fan_in_uniform(double fan_in) {
    double bound = 1 / sqrt(fan_in < 1 ? 1 : fan_in);
    return (tri_init){TRI_UNIFORM, -bound, bound};
}

struct affine {
    tri_tensor *weight, *bias; /* bias may be null */
};

static struct affine affine(tri_graph *g, tri_shape shape, int64_t outputs, double fan_in,
                            const tri_cell_options *o) {
    tri_init init = fan_in_uniform(fan_in);
    tri_tensor *weight = tri_param(g, "weight", shape, o->init ? *o->init : init);
    if (o->no_bias) return (struct affine){weight, NULL};
    if (o->bias_init) init = *o->bias_init;
    return (struct affine){weight, tri_param(g, "bias", TRI_SHAPE(outputs), init)};
}

tri_tensor *tri_dense_(tri_tensor *x, const char *name, int64_t out, tri_cell_options o) {
    tri_graph *g = tri_graph_of(x);
    int64_t in = tri_ndim(x) ? tri_dim(x, -1) : 1;
    tri_push(g, "%s", name);
    struct affine p = affine(g, TRI_SHAPE(out, in), out, (double)in, &o);
    tri_tensor *y = tri_matmul_(x, p.weight, (tri_matmul_options){.trans_b = true});
    if (p.bias) y = tri_add(y, p.bias);
    tri_pop(g);
    return y;
}

tri_tensor *tri_conv_(tri_tensor *x, const char *name, int64_t out, int64_t size,
                      tri_cell_options o) {
    tri_graph *g = tri_graph_of(x);
    int64_t groups = o.groups > 0 ? o.groups : 1;
    int64_t in = (tri_ndim(x) == 4 ? tri_dim(x, 1) : 1) / groups;
    tri_push(g, "%s", name);
    double fan_in = (double)in * (double)size * (double)size;
    struct affine p = affine(g, TRI_SHAPE(out, in ? in : 1, size, size), out, fan_in, &o);
    tri_tensor *y = tri_conv2d_(x, p.weight,
                                (tri_conv_options){.stride = o.stride, .pad = o.pad,
                                                   .dilation = o.dilation, .groups = o.groups,
                                                   .bias = p.bias});
    tri_pop(g);
    return y;
}

/* A norm's weight (ones) and bias (zeros); both null with no_affine. */
static struct affine norm_params(tri_graph *g, tri_shape shape, const tri_norm_options *o) {
    if (o->no_affine) return (struct affine){NULL, NULL};
    tri_tensor *weight = tri_param(g, "weight", shape, ones);
    return (struct affine){weight, tri_param(g, "bias", shape, zeros)};
}

static tri_shape channels(const tri_tensor *x) {
    tri_shape s = tri_shape_of(x);
    return TRI_SHAPE(s.rank > 1 ? s.dim[1] : 1);
}

tri_tensor *tri_bn_(tri_tensor *x, const char *name, tri_norm_options o) {
    tri_graph *g = tri_graph_of(x);
    tri_shape shape = channels(x);
    tri_push(g, "%s", name);
    struct affine p = norm_params(g, shape, &o);
    tri_tensor *mean = tri_state(g, "running_mean", TRI_F32, shape, zeros);
    tri_tensor *var = tri_state(g, "running_var", TRI_F32, shape, ones);
    tri_tensor *seen = tri_state(g, "num_batches_tracked", TRI_I64, TRI_SCALAR, zeros);
    tri_tensor *y = tri_batch_norm_(x, p.weight, p.bias, mean, var, o);
    tri_assign(seen, tri_add_number(seen, 1));
    tri_pop(g);
    return y;
}

tri_tensor *tri_ln_(tri_tensor *x, const char *name, tri_norm_options o) {
    tri_graph *g = tri_graph_of(x);
    tri_shape from = tri_shape_of(x), tail = {.rank = o.axes ? o.axes : 1};
    if (tail.rank < 1 || tail.rank > from.rank) tail.rank = 0; /* the operator reports the error */
    for (int i = 0; i < tail.rank; i++) tail.dim[i] = from.dim[from.rank - tail.rank + i];
    tri_push(g, "%s", name);
    struct affine p = norm_params(g, tail, &o);
    tri_tensor *y = tri_layer_norm_(x, p.weight, p.bias, o);
    tri_pop(g);
    return y;
}

tri_tensor *tri_gn_(tri_tensor *x, const char *name, int64_t groups, tri_norm_options o) {
    tri_graph *g = tri_graph_of(x);
    tri_push(g, "%s", name);
    struct affine p = norm_params(g, channels(x), &o);
    tri_tensor *y = tri_group_norm_(x, groups, p.weight, p.bias, o);
    tri_pop(g);
    return y;
}

tri_tensor *tri_embed_(tri_tensor *ids, const char *name, int64_t rows, int64_t width,
                       tri_cell_options o) {
    tri_graph *g = tri_graph_of(ids);
    tri_push(g, "%s", name);
    tri_tensor *weight = tri_param(g, "weight", TRI_SHAPE(rows, width),
                                   o.init ? *o.init : (tri_init){TRI_NORMAL, 0, 1});
    tri_tensor *y = tri_gather(weight, ids);
    tri_pop(g);
    return y;
}
