/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/op.h"

int op_like_input(const tri_node *n, tri_spec *out) {
    out[0] = *in_spec(n, 0);
    return 1;
}

int op_float_like_input(const tri_node *n, tri_spec *out) {
    return op_need_float(n, 0) ? op_like_input(n, out) : 0;
}

int op_number_like_input(const tri_node *n, tri_spec *out) {
    return op_need_number(n, 0) ? op_like_input(n, out) : 0;
}

bool op_broadcast_shape(const tri_shape *a, const tri_shape *b, tri_shape *out) {
    *out = a->rank >= b->rank ? *a : *b;
    for (int i = 1; i <= out->rank; i++) {
        int64_t x = i <= a->rank ? a->dim[a->rank - i] : 1;
        int64_t y = i <= b->rank ? b->dim[b->rank - i] : 1;
        if (x != y && x != 1 && y != 1) return false;
        out->dim[out->rank - i] = x == 1 ? y : x;
    }
    return true;
}

/* Operands of the same type, of any kind. */
static int broadcast_any(const tri_node *n, tri_spec *out) {
    out[0] = *in_spec(n, 0);
    for (int i = 1; i < n->n_in; i++) {
        tri_shape joined;
        if (in_spec(n, i)->type != out[0].type)
            return tri_op_error(n, "the types of the operands differ; tri_cast one of them");
        if (!op_broadcast_shape(&out[0].shape, in_shape(n, i), &joined))
            return tri_op_error(n, "the shapes do not fit: aligned at the last dimension, lengths "
                                   "must be equal or 1");
        out[0].shape = joined;
    }
    return 1;
}

int op_broadcast(const tri_node *n, tri_spec *out) {
    return broadcast_any(n, out) && op_need_number(n, 0);
}

int op_logical(const tri_node *n, tri_spec *out) {
    return op_need_type(n, 0, TRI_BOOL) && broadcast_any(n, out);
}

int op_broadcast_float(const tri_node *n, tri_spec *out) {
    return op_need_float(n, 0) ? op_broadcast(n, out) : 0;
}

int op_compare(const tri_node *n, tri_spec *out) {
    if (!op_broadcast(n, out)) return 0;
    out[0].type = TRI_BOOL;
    return 1;
}

bool op_need_number(const tri_node *n, int i) {
    return in_spec(n, i)->type != TRI_BOOL ||
           tri_op_error(n, "bool is not a number; tri_cast it");
}

bool op_need_float(const tri_node *n, int i) {
    return type_is_float(in_spec(n, i)->type) ||
           tri_op_error(n, "input %d must be floating-point (f32, bf16, f16): tri_cast it first",
                        i);
}

bool op_need_index(const tri_node *n, int i) {
    tri_type t = in_spec(n, i)->type;
    return t == TRI_I32 || t == TRI_I64 || tri_op_error(n, "input %d must be i32 or i64", i);
}

bool op_need_type(const tri_node *n, int i, tri_type type) {
    return in_spec(n, i)->type == type ||
           tri_op_error(n, "input %d must be %s", i, tri_type_name(type));
}

bool op_need_rank(const tri_node *n, int i, int rank) {
    return in_shape(n, i)->rank == rank ||
           tri_op_error(n, "input %d must have %d dimension(s)", i, rank);
}

bool op_need_same_shape(const tri_node *n, int i, int k) {
    return base_shape_equal(in_shape(n, i), in_shape(n, k)) ||
           tri_op_error(n, "inputs %d and %d must have the same shape", i, k);
}

bool op_need_exact(const tri_node *n, double value, tri_type type) {
    static const struct {
        double low, below;
        const char *text;
    } range[] = {[TRI_I32] = {-0x1p31, 0x1p31, "whole numbers from -2^31 to 2^31 - 1"},
                 [TRI_I64] = {-0x1p63, 0x1p63, "whole numbers from -2^63 to 2^63 - 1"},
                 [TRI_U8] = {0, 256, "whole numbers from 0 to 255"},
                 [TRI_BOOL] = {0, 2, "0 and 1"}};
    if (type_is_float(type)) return true;
    bool inside = value >= range[type].low && value < range[type].below;
    return (inside && value == (double)(int64_t)value) ||
           tri_op_error(n, "%s cannot hold %.9g; it holds %s: tri_cast the other operand to a "
                           "floating-point type first", tri_type_name(type), value,
                        range[type].text);
}

bool op_axis(const tri_node *n, const char *attr, int i, int *axis) {
    int64_t a = tri_attr_int(n, attr);
    int rank = in_shape(n, i)->rank;
    *axis = (int)(a < 0 ? a + rank : a);
    return (a >= -rank && a < rank) ||
           tri_op_error(n, "%s is %lld, but input %d has %d dimension(s)", attr, (long long)a, i,
                        rank);
}

/* ---- gradients ---- */

tri_tensor *op_times_slope(tri_tensor *dy, tri_tensor *at, tri_tensor *(*slope)(tri_tensor *at)) {
    tri_tensor *d = tri_cast(dy, TRI_F32);
    return tri_cast(tri_mul(d, slope(tri_cast(at, TRI_F32))), dy->spec.type);
}

tri_tensor *op_sum_to(tri_tensor *dy, const tri_tensor *like) {
    const tri_shape *from = &dy->spec.shape, *to = &like->spec.shape;
    if (base_shape_equal(from, to)) return dy;
    tri_shape axes = {0};
    for (int i = 0; i < from->rank; i++) {
        int k = i - (from->rank - to->rank);
        if (k < 0 || (to->dim[k] == 1 && from->dim[i] != 1)) axes.dim[axes.rank++] = i;
    }
    /* The sum keeps all dimensions; the reshape drops leading ones that `like` lacks. */
    tri_tensor *sum = tri_sum_(dy, axes, (tri_reduce_options){.keep = true});
    return from->rank == to->rank ? sum : tri_reshape(sum, *to);
}

bool op_only_first(const tri_node *n, tri_tensor *const *dy) {
    for (int i = 1; i < n->n_out; i++)
        if (dy[i])
            return tri_op_error(n, "nothing can be differentiated through output %d, which is for "
                                   "its own derivative; compute it by operators of its own", i);
    return dy[0] != NULL;
}

tri_tensor *op_zeros_like(tri_tensor *x) { return APPLY("fill_like", INPUTS(x)); }

tri_tensor *op_constant_like(double value, const tri_tensor *t) {
    return tri_constant(t->node->graph, value, t->spec.type);
}

static bool loose_constant(const tri_tensor *t) { return node_is(t->node, "constant"); }

void op_match_constants(tri_tensor **a, tri_tensor **b) {
    if (!*a || !*b || (*a)->spec.type == (*b)->spec.type || (*a)->node->graph->status) return;
    if (loose_constant(*b))
        *b = op_constant_like(tri_attr_float((*b)->node, "value"), *a);
    else if (loose_constant(*a))
        *a = op_constant_like(tri_attr_float((*a)->node, "value"), *b);
}

tri_tensor *op_binary(const char *op, tri_tensor *a, tri_tensor *b) {
    op_match_constants(&a, &b);
    return graph_apply(a ? tri_graph_of(a) : tri_graph_of(b), op, 2, INPUTS(a, b), 0, NULL);
}

tri_tensor *op_unary(const char *op, tri_tensor *x) {
    return graph_apply(tri_graph_of(x), op, 1, INPUTS(x), 0, NULL);
}

const char *op_new_name(tri_graph *g, const char *name) {
    const char *full = graph_scoped(g, name);
    if (full && tri_find(g, full))
        graph_mistake(
            g,
            "there are two parameters or states named \"%s\": each layer needs a name, or "
            "a scope (tri_push), of its own",
            full);
    return full;
}

/* ---- factor strings and reductions ---- */

char *op_letters(char *to, int rank, unsigned capitals) {
    for (int i = 0; i < rank; i++) *to++ = (char)((capitals >> i & 1 ? 'A' : 'a') + i);
    *to = 0;
    return to;
}

/* A string that the buffer truncates matches no node; its parser reports that. */
void op_letter_factors(const tri_node *n, unsigned capitals, char *text, size_t bytes) {
    for (int i = 0; i < n->n_in + n->n_out && bytes; i++) {
        char letters[TRI_MAX_RANK + 1];
        const tri_shape *shape = i < n->n_in ? in_shape(n, i) : out_shape(n, i - n->n_in);
        op_letters(letters, shape->rank, capitals);
        size_t used = (size_t)snprintf(text, bytes, "%s%s",
                                       i == 0 ? "" : i == n->n_in ? "->" : ",", letters);
        used = used < bytes ? used : bytes;
        text += used;
        bytes -= used;
    }
}

void op_axis_factors(const tri_node *n, char *text, size_t bytes) {
    int axis;
    CHECK(op_axis(n, "axis", 0, &axis));
    op_letter_factors(n, 1u << axis, text, bytes);
}

bool op_need_axes(const tri_node *n, int rank) {
    tri_shape axes = tri_attr_list(n, "axes");
    for (int i = 0; i < axes.rank; i++)
        if (axes.dim[i] < 0 || axes.dim[i] >= rank)
            return tri_op_error(n, "axes: %lld is not one of the %d dimension(s)",
                                (long long)axes.dim[i], rank);
    return true;
}

unsigned op_axes_mask(const tri_node *n, int rank) {
    tri_shape axes = tri_attr_list(n, "axes");
    unsigned mask = axes.rank ? 0 : (1u << rank) - 1;
    for (int i = 0; i < axes.rank; i++)
        if (axes.dim[i] >= 0 && axes.dim[i] < rank) mask |= 1u << axes.dim[i];
    return mask;
}

tri_shape op_reduced_shape(const tri_shape *x, unsigned mask, bool keep) {
    tri_shape out = {0};
    for (int i = 0; i < x->rank; i++) {
        if (!(mask >> i & 1))
            out.dim[out.rank++] = x->dim[i];
        else if (keep)
            out.dim[out.rank++] = 1;
    }
    return out;
}

char *op_reduced_letters(char *to, int rank, unsigned mask, bool keep) {
    for (int i = 0; i < rank; i++) {
        if (!(mask >> i & 1))
            *to++ = (char)('a' + i);
        else if (keep)
            *to++ = '1';
    }
    *to = 0;
    return to;
}

void op_reduction_factors(const tri_node *n, unsigned capitals, char *text, size_t bytes) {
    char from[TRI_MAX_RANK + 1], to[TRI_MAX_RANK + 1];
    int rank = in_shape(n, 0)->rank;
    op_letters(from, rank, capitals);
    if (node_per_lane(n) && out_shape(n, 0)->dim[0] > 1) {
        snprintf(text, bytes, "(sA)%s->s%s", from + 1, from + 1);
        return;
    }
    op_reduced_letters(to, rank, op_axes_mask(n, rank), tri_attr_int(n, "keep"));
    snprintf(text, bytes, "%s->%s", from, to);
}

tri_shape op_reduce_axes(tri_tensor *x, tri_shape axes) {
    int rank = tri_ndim(x);
    if (axes.rank < 0) {
        axes.rank = rank;
        for (int i = 0; i < rank; i++) axes.dim[i] = i;
    }
    for (int i = 0; i < axes.rank && i < TRI_MAX_RANK; i++) {
        if (axes.dim[i] < 0) axes.dim[i] += rank;
        if (x && (axes.dim[i] < 0 || axes.dim[i] >= rank))
            graph_mistake(x->node->graph, "%s has %d dimension(s); axis %lld is not one",
                          tri_name_of(x), rank, (long long)axes.dim[i]);
    }
    return axes;
}
