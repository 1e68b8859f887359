/* SPDX-License-Identifier: Apache-2.0
 * layer_norm: normalises x over its last `axes` dimensions, which are also the shape of gamma and
 * beta. Outputs: y, and in the shape of the other dimensions the mean and rsqrt(variance + eps). */
#include "ops/norm.h"

static int infer(const tri_node *n, tri_spec *out) {
    if (!op_need_float(n, 0) || !norm_need_axes(n, 0) || !norm_need_eps(n) ||
        !norm_need_f32(n, 1, 3, norm_tail(n, 0)))
        return 0;
    out[0] = *in_spec(n, 0);
    out[1] = out[2] = (tri_spec){TRI_F32, norm_head(n, 0)};
    return 3;
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    if (!op_only_first(n, dy)) return;
    norm_take(APPLY("layer_norm_dx",
                    INPUTS(dy[0], n->in[0], n->in[1], &n->out[1], &n->out[2]),
                    AI("axes", tri_attr_int(n, "axes"))), dx);
}

static void factors(const tri_node *n, char *text, size_t bytes) {
    char x[TRI_MAX_RANK + 1];
    int rank = in_shape(n, 0)->rank, head = rank - (int)tri_attr_int(n, "axes");
    op_letters(x, rank, ~0u << head);
    snprintf(text, bytes, "%s,%s,%s->%s,%.*s,%.*s", x, x + head, x + head, x, head, x, head, x);
}

static bool split_form(const tri_node *n, tri_tensor **out) {
    tri_shape axes, stats;
    const double count = norm_tail_axes(n, 0, &axes, &stats);
    tri_tensor *x = tri_cast(n->in[0], TRI_F32), *mean = norm_mean(x, axes, count);
    tri_tensor *h = tri_sub(x, mean), *var = norm_mean(tri_mul(h, h), axes, count);
    tri_tensor *rstd = tri_rsqrt(tri_add_number(var, tri_attr_float(n, "eps")));
    tri_tensor *y = tri_add(tri_mul(tri_mul(h, rstd), n->in[1]), n->in[2]);
    out[0] = norm_back(y, n->in[0]);
    out[1] = tri_reshape(mean, *out_shape(n, 1));
    out[2] = tri_reshape(rstd, *out_shape(n, 2));
    return true;
}

static double flops(const tri_node *n) { return 8.0 * (double)tri_shape_count(in_shape(n, 0)); }

const tri_op op_layer_norm = {
    .name = "layer_norm",
    .inputs = 3,
    .attributes = "axes:int=1 eps:float=1e-5",
    .infer = infer,
    .gradient = gradient,
    .factor_fn = factors,
    .split_form = split_form,
    .flops = flops,
    .precision = TRI_PRECISION_FOLLOW,
    .in_f32 = 6,
    .examples = EXAMPLES("f32[4,6], f32[6]@0.5:2, f32[6]", "f32[2,3,5], f32[5]@0.5:2, f32[5]",
                         "f32[2,3,4], f32[3,4]@0.5:2, f32[3,4] {axes=2, eps=0.001}",
                         "f32[5], f32[5]@0.5:2, f32[5]", "f32[2,2,2,19], f32[19]@0.5:2, f32[19]",
                         "f32[2,2,3,2], f32[2,3,2]@0.5:2, f32[2,3,2] {axes=3}",
                         "bf16[3,8], f32[8]@0.5:2, f32[8]"),
};

tri_tensor *tri_layer_norm_(tri_tensor *x, tri_tensor *gamma, tri_tensor *beta,
                            tri_norm_options o) {
    int axes = o.axes ? o.axes : 1, rank = tri_ndim(x);
    tri_shape from = tri_shape_of(x), tail = {.rank = axes < 1 || axes > rank ? 0 : axes};
    for (int i = 0; i < tail.rank; i++) tail.dim[i] = from.dim[rank - axes + i];
    return APPLY("layer_norm",
                 INPUTS(x, norm_affine(x, gamma, 1, tail), norm_affine(x, beta, 0, tail)),
                 AI("axes", axes), AF("eps", o.eps == 0 ? 1e-5 : o.eps));
}
