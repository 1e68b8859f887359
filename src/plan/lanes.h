/* SPDX-License-Identifier: Apache-2.0
 * Cutting the graph of the whole batch into lanes. What each tensor is to the lanes follows from
 * the factor strings alone; the result is up to four graphs:
 *
 *     count   once a lane: sums over the batch that the lanes need beforehand (they depend on the
 *             data alone: how many labels are not ignored)
 *     pre     once a step: what the lanes need and is the same for all of them
 *     lane    once a lane: forward and backward
 *     step    once a step, after the lanes' partial sums went through the tree: the update
 *
 * A tensor that crosses from one graph to another is a `given` node there, told by its number in
 * the graph of the whole batch. With one lane everything is in `step`, unless it is cut `apart`: where
 * other workers share the step. The uppermost sums of the lanes' tree are made in `step`, so that they
 * can be one kernel with what is done with them. */
#ifndef PLAN_LANES_H
#define PLAN_LANES_H

#include "plan/factors.h"
#include "plan/lane_tree.h"

enum phase { PHASE_COUNT, PHASE_PRE, PHASE_LANE, PHASE_STEP, PHASES };

struct cut {
    tri_graph *whole;
    int64_t lanes;
    bool apart;              /* lanes are a phase of their own, also if there is one */
    const struct lane_tree *tree; /* of the lanes' sums, for cut_graph; not owned. Null: one given */
    struct split *split;   /* by tensor number of the whole graph, from here on */
    bool *late;              /* known only after the lanes */
    bool *data_only;         /* follows from the data and the step's scalars alone */
    bool *live;              /* something that is wanted depends on it */
    bool *early;             /* WHOLE, and the lanes (or count sums) need it */
    bool *root[2];           /* partial sums that go through the tree: of count, of lane */
};

/* Chooses nothing: cuts into `lanes`, or says why that cannot be. */
tri_status cut_make(tri_graph *whole, int64_t lanes, bool apart, struct cut *out);
void cut_free(struct cut *c);

/* The graph of one phase; for count and lane that of a lane with `samples` samples. Outputs named
 * "=N" are those that tensor N of the whole graph leaves to other phases. Null with a message. */
tri_graph *cut_graph(const struct cut *c, enum phase phase, int64_t samples);

/* Whether the phase has any node but givens and sources. */
bool cut_has(const struct cut *c, enum phase phase);

/* Sums of two partials: one `add` for each root of the phase, outputs "=N". */
tri_graph *cut_merge_graph(const struct cut *c, enum phase phase);

/* Samples of lane i, and the first of them. */
int64_t lane_samples(int64_t batch, int64_t lanes, int64_t i);
int64_t lane_first(int64_t batch, int64_t lanes, int64_t i);

#endif
