/* SPDX-License-Identifier: Apache-2.0
 * Declarations shared by the operators. Each file in this folder holds one operator: its row
 * (tri_op) and the builder that users call. Shape inference, gradients and factor strings that
 * several operators use are here; kernels are in the backends. */
#ifndef OPS_OP_H
#define OPS_OP_H

#include <stdio.h>
#include <string.h>

#include "graph/graph.h"

/* Attributes for APPLY. */
#define AI(key, value) {.name = key, .i = (value)}
#define AF(key, value) {.name = key, .f = (value)}
#define AL(key, value) {.name = key, .list = (value)}
#define AT(key, value) {.name = key, .text = (value)}

/* Applies an operator with the attributes of node n. Its row must have the same attributes. */
#define APPLY_LIKE(n, op, inputs) \
    graph_apply((n)->graph, op, (int)COUNT(inputs), inputs, (n)->entry->n_attrs, (n)->attr)

#define EXAMPLES(...) ((const char *const[]){__VA_ARGS__, NULL})

static inline const tri_spec *in_spec(const tri_node *n, int i) { return &n->in[i]->spec; }
static inline const tri_shape *in_shape(const tri_node *n, int i) { return &n->in[i]->spec.shape; }
static inline const tri_shape *out_shape(const tri_node *n, int i) { return &n->out[i].spec.shape; }

/* ---- inference ---- */

int op_like_input(const tri_node *n, tri_spec *out);       /* the spec of input 0 */
int op_float_like_input(const tri_node *n, tri_spec *out); /* the same; must be floating-point */
int op_number_like_input(const tri_node *n, tri_spec *out); /* the same; not bool */
int op_broadcast(const tri_node *n, tri_spec *out);        /* numbers of one type, broadcast */
int op_broadcast_float(const tri_node *n, tri_spec *out);
int op_compare(const tri_node *n, tri_spec *out); /* broadcast; the result is bool */
int op_logical(const tri_node *n, tri_spec *out); /* bools, broadcast */

/* Checks, which report an error and return false if they fail. */
bool op_need_number(const tri_node *n, int i); /* not bool */
bool op_need_float(const tri_node *n, int i);
bool op_need_index(const tri_node *n, int i); /* i32 or i64 */
bool op_need_type(const tri_node *n, int i, tri_type type);
bool op_need_rank(const tri_node *n, int i, int rank);
bool op_need_same_shape(const tri_node *n, int i, int k);
/* A tensor of this type can hold the value: integer types and bool exactly; floating-point types
 * round it. */
bool op_need_exact(const tri_node *n, double value, tri_type type);
/* The attribute is an axis of input i; a negative one is converted to count from the start. */
bool op_axis(const tri_node *n, const char *attr, int i, int *axis);
/* Aligns the shapes at the last dimension; false if two lengths differ and neither is 1. */
bool op_broadcast_shape(const tri_shape *a, const tri_shape *b, tri_shape *out);

/* ---- gradients ---- */

/* dy times the slope at `at` (x or y). Computes in f32 and rounds 16-bit types once at the end:
 * rounding after every operation would leave few correct digits. */
tri_tensor *op_times_slope(tri_tensor *dy, tri_tensor *at, tri_tensor *(*slope)(tri_tensor *at));
/* Sums dy over the dimensions that were broadcast, down to the shape of `like`. */
tri_tensor *op_sum_to(tri_tensor *dy, const tri_tensor *like);
tri_tensor *op_zeros_like(tri_tensor *x);
tri_tensor *op_constant_like(double value, const tri_tensor *t); /* scalar of t's type */
/* For operators whose outputs after the first exist only for their gradient. False if the first
 * output has no gradient, or, after an error report, if another output has one. */
bool op_only_first(const tri_node *n, tri_tensor *const *dy);

/* For builders: converts a scalar constant to the type of the other operand. */
void op_match_constants(tri_tensor **a, tri_tensor **b);
tri_tensor *op_binary(const char *op, tri_tensor *a, tri_tensor *b);
tri_tensor *op_unary(const char *op, tri_tensor *x);
/* The full name of a new parameter or state; the graph fails if the name is in use. */
const char *op_new_name(tri_graph *g, const char *name);

/* ---- factor strings ---- */

/* Dimension i of an operand has the letter 'a' + i, upper case if bit i of `capitals` is set: such
 * dimensions are not split. */
char *op_letters(char *to, int rank, unsigned capitals);

/* "ab,abc->ab": dimension i of every operand, of any rank, has the letter 'a' + i. */
void op_letter_factors(const tri_node *n, unsigned capitals, char *text, size_t bytes);
/* The same for an operator that cannot be split along its attribute "axis": "aBc,aBc->aBc". */
void op_axis_factors(const tri_node *n, char *text, size_t bytes);

/* Checks that the attribute "axes" names dimensions of a tensor of this rank. */
bool op_need_axes(const tri_node *n, int rank);
/* The attribute "axes" of a reduction (empty: all) as a bit mask. */
unsigned op_axes_mask(const tri_node *n, int rank);
/* The shape after a reduction; `keep` keeps the reduced dimensions with length 1. */
tri_shape op_reduced_shape(const tri_shape *x, unsigned mask, bool keep);
/* "abcd->ac", or "abcd->a1c1" with "keep", for a reduction of input 0 over "axes" to one output.
 * Dimensions in `capitals` are not split. */
void op_reduction_factors(const tri_node *n, unsigned capitals, char *text, size_t bytes);
char *op_reduced_letters(char *to, int rank, unsigned mask, bool keep);
/* For a node per lane, sets dimension 0 of the reduced shape, or reports an error. */
bool op_lane_shape(const tri_node *n, const tri_shape *x, tri_shape *reduced);
/* The builder of reductions per lane: "sum", "mean" or "max". */
tri_tensor *op_reduce_per_lane(tri_tensor *x, tri_shape axes, bool keep, const char *op);
/* The list of axes to store: resolves TRI_ALL and negative axes. The graph fails on a bad axis. */
tri_shape op_reduce_axes(tri_tensor *x, tri_shape axes);

#endif
