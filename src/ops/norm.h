/* SPDX-License-Identifier: Apache-2.0
 * What the rows of batch, layer and group normalisation share. x has any floating-point type;
 * gamma, beta and all statistics are f32. */
#ifndef OPS_NORM_H
#define OPS_NORM_H

#include "ops/op.h"

/* Checks that inputs [first, end) are f32 of this shape. */
bool norm_need_f32(const tri_node *n, int first, int end, tri_shape shape);
/* Checks that input 0 is floating-point, [n, c, ...]. */
bool norm_need_channels(const tri_node *n);
/* The attribute "eps" is a number from 0 up. */
bool norm_need_eps(const tri_node *n);
/* For *_dx: dy (input 0) and x (input 1) have one spec. */
bool norm_need_same(const tri_node *n);
/* Checks the attribute "axes" of layer norm against input i: 1 up to its rank. */
bool norm_need_axes(const tri_node *n, int i);
/* The last `axes` dimensions of input i; and those before them. */
tri_shape norm_tail(const tri_node *n, int i);
tri_shape norm_head(const tri_node *n, int i);
/* Checks the attribute "groups" of group norm against input i; gives [n, groups]. */
bool norm_need_groups(const tri_node *n, int i, tri_shape *stats);

/* The derivatives by x, gamma and beta are the three outputs of a node. */
void norm_take(tri_tensor *dx_node, tri_tensor **dx);

/* `given`, or where it is null, a constant in its place. */
tri_tensor *norm_affine(tri_tensor *x, tri_tensor *given, double otherwise, tri_shape shape);

#endif
