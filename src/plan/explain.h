/* SPDX-License-Identifier: Apache-2.0
 * What a mesh does to a lane, as data and as short texts: what each node computes of itself, what
 * moves between seats, and what a seat holds. Nothing is expanded. */
#ifndef PLAN_EXPLAIN_H
#define PLAN_EXPLAIN_H

#include "graph/target.h"
#include "plan/dist.h"

/* "rows/data, out/model": the factor along each axis; "whole"; "partial sums/model". */
void explain_split(const struct dist *d, const tri_node *n, struct text *out);
bool explain_is_split(const struct dist *d, const tri_node *n);
/* Whether it computes something of each lane's samples that other lanes have, too: statistics, or
 * what .per_lane asks for. */
bool explain_per_lane(const tri_node *n);

/* The part of a tensor in the layout that the seat at these coordinates has; null: the seat at the
 * origin, whose parts are the largest. */
tri_shape explain_slice(const struct dist *d, const tri_tensor *t, const struct layout *l,
                        const int16_t *at);

/* Adds what the user should know of a node; target: of the device, or null. */
void explain_warning(const struct dist *d, const struct target *target, const tri_node *n,
                     struct text *out);

const tri_tensor *explain_tensor(const struct dist *d, const struct move *m);

/* What a move is, along all axes. MOVE_MIXED: not the same along all. */
enum move_kind {
    MOVE_ALL_GATHER,
    MOVE_ALL_REDUCE,
    MOVE_REDUCE_SCATTER,
    MOVE_ALL_TO_ALL,
    MOVE_HALO, /* rows or columns beside a seat's own */
    MOVE_MIXED,
    MOVE_KINDS
};
extern const char *const move_kinds[MOVE_KINDS];
enum move_kind move_kind(const struct mesh *m, const struct move *move);

enum move_when { MOVE_FORWARD, MOVE_BACKWARD, MOVE_TO_STORE, MOVE_TIMES };
enum move_when move_when(const struct dist *d, const struct move *m);

/* The moves of one lane. */
struct move_sums {
    struct {
        int n;
        double bytes;
    } of[MOVE_TIMES][MOVE_KINDS], all[MOVE_TIMES];
};
void explain_sum(const struct dist *d, const struct move *m, struct move_sums *s); /* adds one */
struct move_sums explain_sums(const struct dist *d);

/* Whether a pattern of --match, null for any, names the operator, or for a gradient its forward
 * one; and whether it names one of the lane's: false with a message. */
bool explain_names(const char *match, const tri_node *n);
bool explain_matches(const tri_graph *lane, const char *match);

/* Adds a line about an operator, after which notes may follow; about a move. target: of the device,
 * or null. */
void explain_operator(const struct dist *d, const struct target *target, const tri_node *n,
                      struct text *out);
void explain_move(const struct dist *d, const struct move *m, struct text *out);

/* Adds a table of what is split and what moves, forward and backward: layers that repeat are
 * folded, and neighbouring operators that are split alike share a line. The bytes of its lines add
 * up to those of all moves. */
void explain_outline(const struct dist *d, struct text *out);

/* Adds lines, each after `prefix`, about what may not be expected: tensors that move from one
 * split to another, operators that stay whole although a strategy splits them; and warnings. */
struct compilation;
void explain_notes(const struct compilation *c, bool warnings, const char *prefix,
                   struct text *out);

/* Bytes that one seat holds. A tensor that several operators need in different parts counts once
 * for each different part, up to the whole. */
struct seat_bytes {
    size_t params, states; /* what it reads of them */
    size_t data;           /* of the lane's inputs, scalars and constants */
    size_t given;          /* of what other phases have computed: casts, sums over the batch */
    size_t results;        /* of the lane's results: gradients, metrics, new states */
    size_t computed;       /* of all that its operators compute, as if none took another's place */
};
struct seat_bytes explain_seat(const struct dist *d, const int16_t *at);

/* The coordinates of seat i; the last axis varies fastest. */
void mesh_at(const struct mesh *m, int64_t i, int16_t at[MESH_MOST_AXES]);

#endif
