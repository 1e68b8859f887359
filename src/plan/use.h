/* SPDX-License-Identifier: Apache-2.0
 * What a node does along one axis of a mesh, and what that means for its operands. */
#ifndef PLAN_USE_H
#define PLAN_USE_H

#include "plan/factors.h"

/* What a node does along one axis of the mesh. */
struct use {
    enum { USE_WHOLE, USE_FACTOR, USE_PARTIAL } kind;
    uint8_t factor;        /* of USE_FACTOR: its places are `outer` blocks of `extent` parts */
    int64_t outer, extent;
};

/* The split of a dimension along its places; below 0: whole. */
struct split split_dim(const tri_shape *shape, int dim);
/* A need of windows as the split of what they are windows of; any other split as it is. */
struct split split_plain(const struct split *s, const tri_shape *shape);
/* How the operand is split if its node has this use, which is of a factor. */
struct split operand_split(const struct factors *f, const struct factor_operand *o,
                           const tri_shape *s, const struct use *u);
/* The use of the factor that splits the operand so; false: there is none. */
bool use_of_split(const struct factors *f, const struct factor_operand *o, const struct split *s,
                  struct use *u);
bool operand_has(const struct factor_operand *o, uint8_t factor);
/* Whether it has windows of the factor. */
bool operand_sees(const struct factor_operand *o, uint8_t factor);
/* Whether each of so many parts of the factor concerns places that exist, not padding alone. */
bool windows_exist(const struct factors *f, uint8_t factor, int64_t parts);
/* How the result is split if its node has this use. f: not read unless it is of a factor. */
struct split use_result(const tri_node *n, const struct factors *f, const struct use *u,
                        int output);
/* Whether each of so many seats gets a part of the factor, and every operand has such parts. */
bool use_fits(const tri_node *n, const struct factors *f, const struct use *u, int64_t seats);
/* Whether both are of one factor; two axes that share a factor must cut it into the same blocks. */
bool use_shares(const struct use *a, const struct use *b);
bool use_agrees(const struct use *a, const struct use *b);
/* Whether the node can be split so after it has been rebuilt (tri_op.split_form). */
bool use_needs_form(const tri_node *n, const struct factors *f, const struct use *u);
/* A part of a random tensor must know its place in the whole. */
bool use_knows_place(const tri_node *n);
/* Whether the node gives partial sums if so many of the `reads` inputs that it reads are partial
 * sums, the last of them input `at`. */
bool use_adds_up(const tri_node *n, int partial, int reads, int at);
/* What k seats receive if a tensor of so many bytes moves from one split to the other. */
double split_move_bytes(const struct split *from, const struct split *to, double bytes, double k);

#endif
