/* SPDX-License-Identifier: Apache-2.0
 * What the files of this folder share. Each of them holds one operator: its row, and the builder
 * that users call. Shape inference, gradients and factor strings that several operators have in
 * common are here; kernels are in the backends. */
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

/* An operator with the attributes of node n, all of which its row has too. */
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
int op_compare(const tri_node *n, tri_spec *out); /* broadcast, gives bool */
int op_logical(const tri_node *n, tri_spec *out); /* bools, broadcast */

/* Checks that return false after telling the mistake. */
bool op_need_number(const tri_node *n, int i); /* not bool */
bool op_need_float(const tri_node *n, int i);
bool op_need_index(const tri_node *n, int i); /* i32 or i64 */
bool op_need_type(const tri_node *n, int i, tri_type type);
bool op_need_rank(const tri_node *n, int i, int rank);
bool op_need_same_shape(const tri_node *n, int i, int k);
/* Whether a tensor of this type holds the value: integer types and bool exactly; float types
 * round. */
bool op_need_exact(const tri_node *n, double value, tri_type type);
/* The attribute as an axis of input i, counted from the start. */
bool op_axis(const tri_node *n, const char *attr, int i, int *axis);
/* Shapes aligned at the end; false if some dimension neither fits nor is 1. */
bool op_broadcast_shape(const tri_shape *a, const tri_shape *b, tri_shape *out);

/* ---- gradients ---- */

/* dy times the slope at x (or y, whatever `at` is). Of half types it is computed in f32 and rounded
 * once: several operations, each of them rounded, would leave few digits. */
tri_tensor *op_times_slope(tri_tensor *dy, tri_tensor *at, tri_tensor *(*slope)(tri_tensor *at));
/* Sums dy over the dimensions that broadcasting added, so that it has the shape of `like`. */
tri_tensor *op_sum_to(tri_tensor *dy, const tri_tensor *like);
tri_tensor *op_zeros_like(tri_tensor *x);
tri_tensor *op_constant_like(double value, const tri_tensor *t); /* scalar of t's type */
/* Outputs but the first are for the derivative's use; false if none arrives for the first, or after
 * telling that one does for another. */
bool op_only_first(const tri_node *n, tri_tensor *const *dy);

/* For the builders: a scalar constant follows the type of its partner. */
void op_match_constants(tri_tensor **a, tri_tensor **b);
tri_tensor *op_binary(const char *op, tri_tensor *a, tri_tensor *b);
tri_tensor *op_unary(const char *op, tri_tensor *x);
/* The full name of a new parameter or state; the graph fails if it is taken. */
const char *op_new_name(tri_graph *g, const char *name);

/* ---- factor strings ---- */

/* Dimension i of an operand is the letter 'a' + i; capitals where the bit is set. */
char *op_letters(char *to, int rank, unsigned capitals);

/* "ab,abc->ab": dimension i of every operand, whatever its rank, is the letter 'a' + i. */
void op_letter_factors(const tri_node *n, unsigned capitals, char *text, size_t bytes);
/* The same, where the attribute "axis" may not be split: "aBc,aBc->aBc". */
void op_axis_factors(const tri_node *n, char *text, size_t bytes);

/* Whether "axes" are dimensions of a tensor of this rank; false after telling the mistake. */
bool op_need_axes(const tri_node *n, int rank);
/* The axes of a reduction as a bit mask, from the attribute "axes" (empty: all). */
unsigned op_axes_mask(const tri_node *n, int rank);
/* The shape that is left; `keep` keeps the reduced dimensions with length 1. */
tri_shape op_reduced_shape(const tri_shape *x, unsigned mask, bool keep);
/* "abcd->ac" or, kept, "abcd->a1c1" for a reduction of input 0 over "axes" to one output; letters
 * of `capitals` may not be split. */
void op_reduction_factors(const tri_node *n, unsigned capitals, char *text, size_t bytes);
char *op_reduced_letters(char *to, int rank, unsigned mask, bool keep);
/* TRI_ALL and negative axes resolved, as the list to store; the graph fails on a bad axis. */
tri_shape op_reduce_axes(tri_tensor *x, tri_shape axes);

#endif
