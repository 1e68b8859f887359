/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/norm.h"

bool norm_need_f32(const tri_node *n, int first, int end, tri_shape shape) {
    char spec[SPEC_TEXT];
    tri_spec want = {TRI_F32, shape};
    for (int i = first; i < end; i++)
        if (in_spec(n, i)->type != TRI_F32 || !base_shape_equal(in_shape(n, i), &shape))
            return tri_op_error(n, "input %d must be %s", i, base_spec_text(&want, spec));
    return true;
}

bool norm_need_channels(const tri_node *n) {
    return op_need_float(n, 0) &&
           (in_shape(n, 0)->rank >= 2 ||
            tri_op_error(n, "input 0 needs at least 2 dimensions, [batch, channel, ...]"));
}

void norm_group_letters(const tri_node *n, char *rest) {
    char x[TRI_MAX_RANK + 1];
    op_letters(x, in_shape(n, 0)->rank, ~3u);
    memmove(rest, x + 1, strlen(x));
}

bool norm_need_eps(const tri_node *n) {
    double eps = tri_attr_float(n, "eps");
    return eps >= 0 || tri_op_error(n, "eps is %g; it must be at least 0", eps);
}

bool norm_need_same(const tri_node *n) {
    return op_need_float(n, 0) && op_need_type(n, 1, in_spec(n, 0)->type) &&
           op_need_same_shape(n, 0, 1);
}

bool norm_need_axes(const tri_node *n, int i) {
    int64_t axes = tri_attr_int(n, "axes");
    int rank = in_shape(n, i)->rank;
    return (axes >= 1 && axes <= rank) ||
           tri_op_error(n, "axes is %lld; of %d dimension(s) it can be 1 to %d", (long long)axes,
                        rank, rank);
}

tri_shape norm_head(const tri_node *n, int i) {
    tri_shape s = *in_shape(n, i);
    s.rank -= (int)tri_attr_int(n, "axes");
    return s;
}

tri_shape norm_tail(const tri_node *n, int i) {
    const tri_shape *x = in_shape(n, i);
    tri_shape s = {.rank = (int)tri_attr_int(n, "axes")};
    for (int k = 0; k < s.rank; k++) s.dim[k] = x->dim[x->rank - s.rank + k];
    return s;
}

bool norm_need_groups(const tri_node *n, int i, tri_shape *stats) {
    int64_t groups = tri_attr_int(n, "groups"), channels = in_shape(n, i)->dim[1];
    *stats = TRI_SHAPE(in_shape(n, i)->dim[0], groups);
    return (groups >= 1 && channels % groups == 0) ||
           tri_op_error(n, "groups is %lld; it must divide the %lld channels", (long long)groups,
                        (long long)channels);
}

bool norm_groups_of(const tri_tensor *x, int64_t groups, struct norm_groups *out) {
    const tri_shape *s = &x->spec.shape;
    struct norm_groups g = {.x = *s};
    if (s->dim[0] % groups || (groups > 1 && s->rank == TRI_MAX_RANK)) return false;
    if (groups > 1) g.whole.dim[g.whole.rank++] = groups;
    int samples = g.whole.rank;
    for (int i = 0; i < s->rank; i++) g.whole.dim[g.whole.rank++] = s->dim[i];
    g.whole.dim[samples] /= groups;
    g.stats = g.whole;
    g.count = 1;
    for (int i = samples; i < g.whole.rank; i++) {
        if (i == samples + 1) continue;
        g.axes.dim[g.axes.rank++] = i;
        g.stats.dim[i] = 1;
        g.count *= (double)g.whole.dim[i];
    }
    g.channel.rank = s->rank - 1;
    for (int i = 0; i < g.channel.rank; i++) g.channel.dim[i] = i ? 1 : s->dim[1];
    *out = g;
    return true;
}

double norm_runs(const tri_node *n, int i, tri_shape *whole, tri_shape *axes, tri_shape *stats,
                 tri_shape *channel) {
    const tri_shape *x = in_shape(n, i);
    const int64_t groups = tri_attr_int(n, "groups");
    double count = 1;
    if (x->rank == TRI_MAX_RANK) return 0;
    *axes = (tri_shape){0};
    *whole = TRI_SHAPE(x->dim[0], groups, x->dim[1] / groups);
    for (int k = 2; k < x->rank; k++) whole->dim[whole->rank++] = x->dim[k];
    *stats = *whole;
    *channel = TRI_SHAPE(groups, whole->dim[2]);
    for (int k = 2; k < whole->rank; k++) {
        axes->dim[axes->rank++] = k;
        count *= (double)whole->dim[k];
        stats->dim[k] = 1;
        if (k > 2) channel->dim[channel->rank++] = 1;
    }
    return count;
}

void norm_run_letters(const tri_node *n, char *text, size_t bytes) {
    char rest[TRI_MAX_RANK + 1];
    op_letters(rest, in_shape(n, 0)->rank, ~1u);
    snprintf(text, bytes, "a(zB)%s", rest + 2);
}

double norm_tail_axes(const tri_node *n, int i, tri_shape *axes, tri_shape *stats) {
    double count = 1;
    *axes = (tri_shape){0};
    *stats = *in_shape(n, i);
    for (int k = norm_head(n, i).rank; k < stats->rank; k++) {
        axes->dim[axes->rank++] = k;
        count *= (double)stats->dim[k];
        stats->dim[k] = 1;
    }
    return count;
}

tri_tensor *norm_wide(tri_tensor *x, tri_shape shape) {
    tri_tensor *f = tri_cast(x, TRI_F32);
    return base_shape_equal(&x->spec.shape, &shape) ? f : tri_reshape(f, shape);
}

tri_tensor *norm_back(tri_tensor *y, const tri_tensor *like) {
    if (!base_shape_equal(&y->spec.shape, &like->spec.shape)) y = tri_reshape(y, like->spec.shape);
    return tri_cast(y, like->spec.type);
}

tri_tensor *norm_sum(tri_tensor *x, tri_shape axes) {
    return tri_sum_(x, axes, (tri_reduce_options){.keep = true});
}

tri_tensor *norm_mean(tri_tensor *x, tri_shape axes, double count) {
    return tri_div(norm_sum(x, axes), tri_constant(tri_graph_of(x), count, TRI_F32));
}

void norm_take(tri_tensor *dx_node, tri_tensor **dx) {
    for (int i = 0; i < 3; i++) dx[i] = tri_node_out(dx_node->node, i);
}

tri_tensor *norm_affine(tri_tensor *x, tri_tensor *given, double otherwise, tri_shape shape) {
    return given || !x ? given
                       : tri_expand(tri_constant(tri_graph_of(x), otherwise, TRI_F32), shape);
}
