/* SPDX-License-Identifier: Apache-2.0
 * group_norm: normalises x [n, c, ...] over each of `groups` equal runs of a sample's channels.
 * Outputs: y, and as [n, groups] the mean and rsqrt(variance + eps). */
#include "ops/norm.h"

static int infer(const tri_node *n, tri_spec *out) {
    tri_shape stats;
    if (!norm_need_channels(n) || !norm_need_groups(n, 0, &stats) || !norm_need_eps(n) ||
        !norm_need_f32(n, 1, 3, TRI_SHAPE(in_shape(n, 0)->dim[1])))
        return 0;
    out[0] = *in_spec(n, 0);
    out[1] = out[2] = (tri_spec){TRI_F32, stats};
    return 3;
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    if (!op_only_first(n, dy)) return;
    norm_take(APPLY("group_norm_dx",
                    INPUTS(dy[0], n->in[0], n->in[1], &n->out[1], &n->out[2]),
                    AI("groups", tri_attr_int(n, "groups"))), dx);
}

static void factors(const tri_node *n, char *text, size_t bytes) {
    char x[TRI_MAX_RANK + 4];
    norm_run_letters(n, x, sizeof x);
    snprintf(text, bytes, "%s,(zB),(zB)->%s,az,az", x, x);
}

static bool split_form(const tri_node *n, tri_tensor **out) {
    tri_shape whole, axes, stats, channel;
    const double count = norm_runs(n, 0, &whole, &axes, &stats, &channel);
    if (count == 0) return false;
    tri_tensor *x = norm_wide(n->in[0], whole), *mean = norm_mean(x, axes, count);
    tri_tensor *h = tri_sub(x, mean), *var = norm_mean(tri_mul(h, h), axes, count);
    tri_tensor *rstd = tri_rsqrt(tri_add_number(var, tri_attr_float(n, "eps")));
    tri_tensor *gamma = tri_reshape(n->in[1], channel), *beta = tri_reshape(n->in[2], channel);
    out[0] = norm_back(tri_add(tri_mul(tri_mul(h, rstd), gamma), beta), n->in[0]);
    out[1] = tri_reshape(mean, *out_shape(n, 1));
    out[2] = tri_reshape(rstd, *out_shape(n, 2));
    return true;
}

static double flops(const tri_node *n) { return 8.0 * (double)tri_shape_count(in_shape(n, 0)); }

const tri_op op_group_norm = {
    .name = "group_norm",
    .inputs = 3,
    .attributes = "groups:int eps:float=1e-5",
    .infer = infer,
    .gradient = gradient,
    .factor_fn = factors,
    .names = GROUP_NORM_NAMES,
    .follows = "groups=size:z",
    .split_form = split_form,
    .flops = flops,
    .precision = TRI_PRECISION_FOLLOW,
    .in_f32 = 6,
    .examples = EXAMPLES("f32[2,6,2,3], f32[6]@0.5:2, f32[6] {groups=3}",
                         "f32[2,4,3], f32[4]@0.5:2, f32[4] {groups=1, eps=0.001}",
                         "f32[3,6], f32[6]@0.5:2, f32[6] {groups=2}",
                         "f32[2,3,5,1], f32[3]@0.5:2, f32[3] {groups=3}",
                         "bf16[2,4,2,2], f32[4]@0.5:2, f32[4] {groups=2}"),
};

tri_tensor *tri_group_norm_(tri_tensor *x, int64_t groups, tri_tensor *gamma, tri_tensor *beta,
                            tri_norm_options o) {
    tri_shape channels = tri_ndim(x) < 2 ? TRI_SHAPE(1) : TRI_SHAPE(tri_dim(x, 1));
    return APPLY("group_norm",
                 INPUTS(x, norm_affine(x, gamma, 1, channels), norm_affine(x, beta, 0, channels)),
                 AI("groups", groups), AF("eps", o.eps == 0 ? 1e-5 : o.eps));
}
