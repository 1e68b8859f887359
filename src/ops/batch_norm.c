/* SPDX-License-Identifier: Apache-2.0
 * batch_norm: normalises x [n, c, ...] per channel over groups of samples. Each lane has `groups`
 * groups, G in total; group k covers samples [k n / G, (k+1) n / G). Outputs: y, and as [G, c] the
 * mean, biased variance and unbiased variance of each group. With training=0, y uses the given mean
 * and variance, and the statistics repeat these in every row. */
#include "ops/norm.h"

static int infer(const tri_node *n, tri_spec *out) {
    const tri_shape *x = in_shape(n, 0);
    if (!norm_need_channels(n) || !norm_need_eps(n) ||
        !norm_need_f32(n, 1, 5, TRI_SHAPE(x->dim[1])))
        return 0;
    int64_t groups = tri_attr_int(n, "groups");
    if (groups < 1 || groups > x->dim[0] || (n->graph->lanes == 1 && x->dim[0] % groups))
        return tri_op_error(n, "groups is %lld; it must divide the %lld sample(s)",
                            (long long)groups, (long long)x->dim[0]);
    int64_t all = groups * n->graph->lanes;
    out[0] = *in_spec(n, 0);
    for (int i = 1; i < 4; i++) out[i] = (tri_spec){TRI_F32, TRI_SHAPE(all, x->dim[1])};
    return 4;
}

/* In evaluation y also depends on mean and var: y = gamma (x - mean) rsqrt(var + eps) + beta, so
 * dmean = -dbeta gamma rsqrt(var + eps) and dvar = -dgamma gamma / (2 (var + eps)). */
static void evaluation_gradient(const tri_node *n, tri_tensor **dx) {
    tri_tensor *gamma = n->in[1], *v = tri_add_number(n->in[4], tri_attr_float(n, "eps"));
    dx[3] = tri_neg(tri_mul(tri_mul(dx[2], gamma), tri_rsqrt(v)));
    dx[4] = tri_scale(tri_div(tri_mul(dx[1], gamma), v), -0.5);
}

static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    if (!op_only_first(n, dy)) return;
    norm_take(APPLY("batch_norm_dx",
                    INPUTS(dy[0], n->in[0], n->in[1], &n->out[1], &n->out[2]),
                    AF("eps", tri_attr_float(n, "eps")),
                    AI("training", tri_attr_int(n, "training"))), dx);
    if (!tri_attr_int(n, "training") && dx[1]) evaluation_gradient(n, dx);
}

static void factors(const tri_node *n, char *text, size_t bytes) {
    char rest[TRI_MAX_RANK + 1]; /* "bCD" */
    norm_group_letters(n, rest);
    snprintf(text, bytes, "(sA)%s,b,b,b,b->(sA)%s,sb,sb,sb", rest, rest);
}

/* Statistics of the groups: from x in two passes, or those given. */
static void statistics(const tri_node *n, const struct norm_groups *g, tri_tensor *x,
                       tri_tensor **mean, tri_tensor **centred, tri_tensor **var) {
    if (tri_attr_int(n, "training")) {
        *mean = norm_mean(x, g->axes, g->count);
        *centred = tri_sub(x, *mean);
        *var = norm_mean(tri_mul(*centred, *centred), g->axes, g->count);
    } else {
        *mean = tri_reshape(n->in[3], g->channel);
        *centred = tri_sub(x, *mean);
        *var = tri_reshape(n->in[4], g->channel);
    }
}

static bool split_form(const tri_node *n, tri_tensor **out) {
    struct norm_groups g;
    if (!norm_groups_of(n->in[0], out_shape(n, 1)->dim[0], &g)) return false;
    tri_tensor *x = norm_wide(n->in[0], g.whole), *h, *mean, *var;
    statistics(n, &g, x, &mean, &h, &var);
    tri_tensor *k = tri_mul(tri_rsqrt(tri_add_number(var, tri_attr_float(n, "eps"))),
                            tri_reshape(n->in[1], g.channel));
    tri_tensor *y = tri_add(tri_mul(h, k), tri_reshape(n->in[2], g.channel));
    out[0] = norm_back(y, n->in[0]);
    if (tri_attr_int(n, "training")) {
        out[1] = tri_reshape(mean, *out_shape(n, 1));
        out[2] = tri_reshape(var, *out_shape(n, 1));
        out[3] = tri_scale(out[2], g.count / (g.count - 1));
    } else {
        for (int i = 1; i < 4; i++) out[i] = tri_expand(n->in[i > 1 ? 4 : 3], *out_shape(n, 1));
    }
    return true;
}

static double flops(const tri_node *n) { return 8.0 * (double)tri_shape_count(in_shape(n, 0)); }

/* Values per channel in one group. */
static int64_t group_values(const tri_node *n) {
    const tri_shape *x = in_shape(n, 0);
    int64_t groups = tri_attr_int(n, "groups") * n->graph->lanes;
    return x->dim[0] / groups * (tri_shape_count(x) / x->dim[0] / x->dim[1]);
}

const tri_op op_batch_norm = {
    .name = "batch_norm",
    .inputs = 5,
    .attributes = "eps:float=1e-5 groups:int=1 training:int=1",
    .infer = infer,
    .gradient = gradient,
    .factor_fn = factors,
    .names = BATCH_NORM_NAMES,
    .follows = "groups=size:s",
    .split_form = split_form,
    .flops = flops,
    .group_values = group_values,
    .precision = TRI_PRECISION_FOLLOW,
    .in_f32 = 0x1e,
    .examples = EXAMPLES(
        "f32[4,3,2,3], f32[3]@0.5:2, f32[3], f32[3], f32[3]@0.5:2",
        "f32[4,3,2,2], f32[3]@0.5:2, f32[3], f32[3], f32[3]@0.5:2 {groups=2, eps=0.001}",
        "f32[6,5], f32[5]@0.5:2, f32[5], f32[5], f32[5]@0.5:2",
        "f32[2,3,5], f32[3]@0.5:2, f32[3], f32[3], f32[3]@0.5:2",
        "f32[2,17,3,3], f32[17]@0.5:2, f32[17], f32[17], f32[17]@0.5:2",
        "f32[3,2,2,2], f32[2]@0.5:2, f32[2], f32[2], f32[2]@0.5:2 {training=0}",
        "f32[4,3], f32[3]@0.5:2, f32[3], f32[3], f32[3]@0.5:2 {training=0, groups=2}",
        "bf16[4,3,2,2], f32[3]@0.5:2, f32[3], f32[3], f32[3]@0.5:2"),
};

/* running = (1 - momentum) running + momentum * (mean of the statistics over the groups) */
static void move(tri_tensor *running, tri_tensor *stats, double momentum) {
    tri_tensor *now = tri_mean_(stats, TRI_SHAPE(0), (tri_reduce_options){0});
    tri_assign(running, tri_add(tri_scale(running, 1 - momentum), tri_scale(now, momentum)));
}

tri_tensor *tri_batch_norm_(tri_tensor *x, tri_tensor *gamma, tri_tensor *beta, tri_tensor *mean,
                            tri_tensor *var, tri_norm_options o) {
    double momentum = o.momentum == 0 ? 0.1 : o.momentum;
    tri_shape channels = tri_ndim(x) < 2 ? TRI_SHAPE(1) : TRI_SHAPE(tri_dim(x, 1));
    gamma = norm_affine(x, gamma, 1, channels);
    beta = norm_affine(x, beta, 0, channels);
    tri_tensor *y = APPLY("batch_norm", INPUTS(x, gamma, beta, mean, var),
                          AF("eps", o.eps == 0 ? 1e-5 : o.eps),
                          AI("groups", o.groups ? o.groups : 1));
    if (!y || y->node->graph->status) return y;
    if (!(momentum > 0 && momentum <= 1))
        tri_op_error(y->node, "momentum is %g; it must be above 0 and at most 1", momentum);
    move(mean, &y->node->out[1], momentum);
    move(var, &y->node->out[3], momentum);
    return y;
}
