/* SPDX-License-Identifier: Apache-2.0
 * top_k: the k largest elements along the last axis and their indices (i64), in descending order.
 * Equal elements keep their order. */
#include <math.h>

#include "ops/op.h"

#define MOST_ROUNDS 64 /* of the split form */

static int infer(const tri_node *n, tri_spec *out) {
    const tri_shape *x = in_shape(n, 0);
    int64_t k = tri_attr_int(n, "k");
    if (!op_need_number(n, 0)) return 0;
    if (x->rank < 1) return tri_op_error(n, "input 0 needs at least 1 dimension");
    if (k < 1 || k > x->dim[x->rank - 1])
        return tri_op_error(n, "k is %lld; it must be 1 to %lld, the last dimension", (long long)k,
                            (long long)x->dim[x->rank - 1]);
    out[0] = *in_spec(n, 0);
    out[0].shape.dim[x->rank - 1] = k;
    out[1] = (tri_spec){TRI_I64, out[0].shape};
    return 2;
}

/* With p [..., k, n], the indices one-hot: dx[..., n] = sum over k of dv[..., k] * p. */
static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    tri_tensor *x = n->in[0], *dv = dy[0];
    if (!dv) return;
    int last = x->spec.shape.rank - 1;
    tri_tensor *places = tri_one_hot(&n->out[1], x->spec.shape.dim[last]);
    places = tri_cast(places, x->spec.type);
    tri_tensor *rows = APPLY("spread", INPUTS(dv, places), AL("axes", TRI_SHAPE(last + 1)));
    dx[0] = tri_sum_(tri_mul(rows, places), TRI_SHAPE(last), (tri_reduce_options){0});
}

static void factors(const tri_node *n, char *text, size_t bytes) {
    op_letter_factors(n, 1u << (in_shape(n, 0)->rank - 1), text, bytes);
}

static double least_of(tri_type type) {
    return type == TRI_I32 ? INT32_MIN : type == TRI_I64 ? (double)INT64_MIN
           : type == TRI_U8 ? 0 : -INFINITY;
}

/* k times the maximum of what is left, and its first place, which is slower than a gather. NaN is
 * the largest, as in `max`. */
static bool split_form(const tri_node *n, tri_tensor **out) {
    const int64_t k = tri_attr_int(n, "k"), length = in_shape(n, 0)->dim[in_shape(n, 0)->rank - 1];
    const int last = in_shape(n, 0)->rank - 1;
    tri_tensor *x = n->in[0], *taken = NULL, *value[MOST_ROUNDS], *place[MOST_ROUNDS];
    const tri_type type = x->spec.type;
    tri_graph *g = tri_graph_of(x);
    if (k > MOST_ROUNDS) return false;
    tri_tensor *least = tri_constant(g, least_of(type), type);
    tri_tensor *no = tri_constant(g, 0, TRI_I32), *yes = tri_constant(g, 1, TRI_I32);
    for (int64_t i = 0; i < k; i++) {
        tri_tensor *left = taken ? tri_where(taken, least, x) : x;
        value[i] = tri_max_(left, TRI_SHAPE(last), (tri_reduce_options){.keep = true});
        tri_tensor *same = tri_equal(x, value[i]);
        if (type_is_float(type))
            same = tri_or(same, tri_and(tri_not_equal(x, x), tri_not_equal(value[i], value[i])));
        if (taken) same = tri_and(same, tri_not(taken));
        same = tri_where(same, yes, no);
        tri_tensor *any = tri_max_(same, TRI_SHAPE(last), (tri_reduce_options){0});
        tri_tensor *at = tri_neg(APPLY("first_equal", INPUTS(same, any), AI("axis", last)));
        tri_tensor *now = tri_cast(tri_one_hot(at, length), TRI_BOOL);
        taken = taken ? tri_or(taken, now) : now;
        place[i] = tri_reshape(at, value[i]->spec.shape);
    }
    out[0] = tri_concat(value, (int)k, last);
    out[1] = tri_concat(place, (int)k, last);
    return true;
}

const tri_op op_top_k = {
    .name = "top_k",
    .inputs = 1,
    .attributes = "k:int",
    .infer = infer,
    .gradient = gradient,
    .factor_fn = factors,
    .split_form = split_form,
    .costly_form = true,
    .precision = TRI_PRECISION_ANY,
    .examples = EXAMPLES("f32[2,5]@-9:9 {k=2}", "f32[2,3,4]@-9:9 {k=4}", "f32[7]@-9:9 {k=1}",
                         "f32[1] {k=1}", "i32[3,9]@-2:3 {k=5}", "bf16[2,9] {k=3}"),
};

void tri_top_k(tri_tensor *x, int64_t k, tri_tensor **values, tri_tensor **indices) {
    tri_tensor *y = APPLY("top_k", INPUTS(x), AI("k", k));
    bool both = y && y->node->n_out == 2; /* otherwise the graph has failed */
    if (values) *values = y;
    if (indices) *indices = both ? &y->node->out[1] : y;
}
