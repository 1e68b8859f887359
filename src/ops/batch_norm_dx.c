/* SPDX-License-Identifier: Apache-2.0
 * batch_norm_dx: the gradients with respect to x, gamma [c] and beta [c], from dy, x, gamma and the
 * statistics [G, c] (mean, biased variance), for G groups of samples as in batch_norm. With
 * h = (x - mean) rsqrt(var + eps): dgamma = sum(dy h), dbeta = sum(dy),
 * dx = gamma rsqrt(var + eps) (dy - mean(dy) - h mean(dy h)). The two means are over a group; with
 * training=0 dx omits their terms. */
#include "ops/norm.h"

static int infer(const tri_node *n, tri_spec *out) {
    const tri_shape *x = in_shape(n, 0);
    if (!norm_need_same(n) || !norm_need_channels(n)) return 0;
    int64_t c = x->dim[1], groups = in_shape(n, 3)->rank ? in_shape(n, 3)->dim[0] : 0;
    if (!norm_need_eps(n) || !norm_need_f32(n, 2, 3, TRI_SHAPE(c)) ||
        !norm_need_f32(n, 3, 5, TRI_SHAPE(groups, c)))
        return 0;
    if (groups > x->dim[0])
        return tri_op_error(n, "there are statistics of %lld groups of samples, but only %lld "
                               "samples", (long long)groups, (long long)x->dim[0]);
    out[0] = *in_spec(n, 0);
    out[1] = out[2] = *in_spec(n, 2);
    return 3;
}

static void factors(const tri_node *n, char *text, size_t bytes) {
    char rest[TRI_MAX_RANK + 1]; /* "bCD" */
    norm_group_letters(n, rest);
    snprintf(text, bytes, "(sA)%s,(sA)%s,b,sb,sb->(sA)%s,b,b", rest, rest, rest);
}

static bool split_form(const tri_node *n, tri_tensor **out) {
    struct norm_groups g;
    if (!norm_groups_of(n->in[0], in_shape(n, 3)->dim[0], &g)) return false;
    tri_tensor *dy = norm_wide(n->in[0], g.whole), *x = norm_wide(n->in[1], g.whole);
    tri_tensor *mean = norm_wide(n->in[3], g.stats), *var = norm_wide(n->in[4], g.stats);
    tri_tensor *r = tri_rsqrt(tri_add_number(var, tri_attr_float(n, "eps")));
    tri_tensor *h = tri_mul(tri_sub(x, mean), r);
    tri_tensor *with_h = norm_sum(tri_mul(dy, h), g.axes), *alone = norm_sum(dy, g.axes);
    tri_tensor *d = dy;
    if (tri_attr_int(n, "training"))
        d = tri_sub(tri_sub(dy, tri_scale(alone, 1 / g.count)),
                    tri_mul(h, tri_scale(with_h, 1 / g.count)));
    out[0] = norm_back(tri_mul(d, tri_mul(r, tri_reshape(n->in[2], g.channel))), n->in[0]);
    tri_tensor *sums[] = {with_h, alone};
    for (int i = 0; i < 2; i++)
        out[1 + i] = tri_sum_(tri_reshape(sums[i], *in_shape(n, 3)), TRI_SHAPE(0),
                              (tri_reduce_options){0});
    return true;
}

static double flops(const tri_node *n) { return 12.0 * (double)tri_shape_count(in_shape(n, 0)); }

const tri_op op_batch_norm_dx = {
    .name = "batch_norm_dx",
    .inputs = 5,
    .attributes = "eps:float=1e-5 training:int=1",
    .infer = infer,
    .gradient = tri_grad_refused,
    .factor_fn = factors,
    .names = BATCH_NORM_NAMES,
    .split_form = split_form,
    .flops = flops,
    .examples = EXAMPLES(
        "f32[3,3,2,3], f32[3,3,2,3], f32[3]@0.5:2, f32[1,3], f32[1,3]@0.5:2",
        "f32[4,3,2,2], f32[4,3,2,2], f32[3]@0.5:2, f32[2,3], f32[2,3]@0.5:2 {eps=0.001}",
        "f32[6,5], f32[6,5], f32[5]@0.5:2, f32[2,5], f32[2,5]@0.5:2",
        "f32[7,4], f32[7,4], f32[4]@0.5:2, f32[1,4], f32[1,4]@0.5:2",
        "f32[2,17,5], f32[2,17,5], f32[17]@0.5:2, f32[2,17], f32[2,17]@0.5:2",
        "f32[3,2,2,2], f32[3,2,2,2], f32[2]@0.5:2, f32[1,2], f32[1,2]@0.5:2 {training=0}",
        "f32[4,2,3], f32[4,2,3], f32[2]@0.5:2, f32[2,2], f32[2,2]@0.5:2 {training=0}",
        "bf16[4,3,2,2], bf16[4,3,2,2], f32[3]@0.5:2, f32[2,3], f32[2,3]@0.5:2"),
};
