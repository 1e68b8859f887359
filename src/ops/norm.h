/* SPDX-License-Identifier: Apache-2.0
 * Declarations for the rows of batch, layer and group normalisation. x has any floating-point type;
 * gamma, beta and all statistics are f32. */
#ifndef OPS_NORM_H
#define OPS_NORM_H

#include "ops/op.h"

/* Checks that inputs [first, end) are f32 of this shape. */
bool norm_need_f32(const tri_node *n, int first, int end, tri_shape shape);
/* Checks that input 0 is floating-point, [n, c, ...]. */
bool norm_need_channels(const tri_node *n);
/* Letters of the dimensions of x [n, c, ...] after the samples. Batch norm's samples are "(sA)":
 * groups of samples, which no part may cut. */
void norm_group_letters(const tri_node *n, char *rest);
#define BATCH_NORM_NAMES "s:batch a:batch b:features c:height d:width"
/* Checks that the attribute "eps" is at least 0. */
bool norm_need_eps(const tri_node *n);
/* For *_dx: checks that dy (input 0) and x (input 1) have the same spec. */
bool norm_need_same(const tri_node *n);
/* Checks the attribute "axes" of layer norm against input i: 1 up to its rank. */
bool norm_need_axes(const tri_node *n, int i);
/* The last `axes` dimensions of input i, and the dimensions before them. */
tri_shape norm_tail(const tri_node *n, int i);
tri_shape norm_head(const tri_node *n, int i);
/* Checks the attribute "groups" of group norm against input i; stats: [n, groups]. */
bool norm_need_groups(const tri_node *n, int i, tri_shape *stats);

/* For split forms, in f32. Batch norm: a tensor [n, c, ...] as [groups, n / groups, c, ...], or as
 * it is where there is one group. */
struct norm_groups {
    tri_shape x, whole;       /* shapes: of x, and with a dimension for the groups */
    tri_shape axes;           /* of a group, within `whole` */
    tri_shape stats, channel; /* of statistics, [groups, 1, c, 1, ...], and of gamma, [c, 1, ...] */
    double count;             /* values of a group */
};
/* False: the samples cannot be divided into groups. */
bool norm_groups_of(const tri_tensor *x, int64_t groups, struct norm_groups *out);
/* Group norm of input i: its shape as [n, groups, c / groups, ...], the axes of a group's values,
 * and the shapes of statistics, [n, groups, 1, ...], and of gamma, [groups, c / groups, 1, ...].
 * Returns how many values a group has; 0: x has too many dimensions. */
double norm_runs(const tri_node *n, int i, tri_shape *whole, tri_shape *axes, tri_shape *stats,
                 tri_shape *channel);
/* Letters of the dimensions of x: "a(zB)CD". */
void norm_run_letters(const tri_node *n, char *text, size_t bytes);
#define GROUP_NORM_NAMES "a:batch z:groups b:features c:height d:width"
/* Layer norm: the last `axes` dimensions of x, and the shape of statistics with these of length 1;
 * returns the number of values. */
double norm_tail_axes(const tri_node *n, int i, tri_shape *axes, tri_shape *stats);
tri_tensor *norm_wide(tri_tensor *x, tri_shape shape); /* in f32 and this shape */
tri_tensor *norm_back(tri_tensor *y, const tri_tensor *like); /* of its type and shape */
tri_tensor *norm_sum(tri_tensor *x, tri_shape axes);   /* keeps the axes with length 1 */
tri_tensor *norm_mean(tri_tensor *x, tri_shape axes, double count); /* of so many values */

/* Stores the outputs of a *_dx node, the gradients with respect to x, gamma and beta. */
void norm_take(tri_tensor *dx_node, tri_tensor **dx);

/* `given`, or, if that is null, a tensor of the value `otherwise`. */
tri_tensor *norm_affine(tri_tensor *x, tri_tensor *given, double otherwise, tri_shape shape);

#endif
