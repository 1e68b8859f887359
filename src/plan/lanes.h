/* SPDX-License-Identifier: Apache-2.0
 * Divides the graph of the whole batch into lanes. The split of each tensor follows from the factor
 * strings alone. The result is up to four graphs, the phases of a step:
 *
 *     count   once per lane: sums over the batch that lanes need in advance; they depend on the
 *             data alone, as the number of labels that are not ignored
 *     pre     once per step: what all lanes need and is the same for each
 *     lane    once per lane: forward and backward
 *     step    once per step, after the sums over the lanes: the update
 *
 * A tensor that crosses from one graph to another is a `given` node there, whose attribute is the
 * tensor's number in the graph of the whole batch. With one lane everything is in `step`, unless
 * the lane is a phase of its own (`apart`) because several workers share the step. The uppermost
 * sums over the lanes are computed in `step`, so that one kernel can sum and use them. */
#ifndef PLAN_LANES_H
#define PLAN_LANES_H

#include "plan/factors.h"
#include "plan/lane_tree.h"

enum phase { PHASE_COUNT, PHASE_PRE, PHASE_LANE, PHASE_STEP, PHASES };

struct cut {
    tri_graph *whole;
    int64_t lanes;
    bool apart;              /* lanes are a phase of their own, even if there is only one */
    const struct lane_tree *tree; /* for cut_graph; not owned. Null: `step` gets finished sums */
    struct split *split;     /* this and what follows: by tensor number of the whole graph */
    bool *late;              /* known only after the lanes */
    bool *data_only;         /* follows from the data and the step's scalars alone */
    bool *live;              /* a result depends on it */
    bool *early;             /* WHOLE, and the lanes (or count sums) need it */
    bool *root[2];           /* partial sums that are summed over the lanes: of count, of lane */
};

/* Divides the graph into `lanes` lanes, or fails with the reason why that is impossible. */
tri_status cut_make(tri_graph *whole, int64_t lanes, bool apart, struct cut *out);
void cut_free(struct cut *c);

/* The graph of one phase; for count and lane that of a lane with `samples` samples. An output
 * without a name has the number of its tensor in the whole graph. Null with a message. */
tri_graph *cut_graph(const struct cut *c, enum phase phase, int64_t samples);

/* A tensor like t that another phase computes, as number `of`; `top`: see the operator. */
tri_tensor *phase_given(tri_graph *g, const tri_tensor *t, int of, int top);
/* Declares an output of this number, for other phases. */
void phase_put(tri_graph *g, int of, tri_tensor *t);
/* The output of `from` that a node stands for; null: it is not given, or not by `from`. */
const struct graph_output *phase_gives(const tri_graph *from, const tri_node *n);

/* The lanes' result that update i of the whole graph is computed from, through tensors of the
 * parameter's size; null: there is none, or its target is no parameter. */
tri_status cut_gradient(const struct cut *c, size_t i, const tri_tensor **gradient);

/* Of a state that is an estimate (plan/estimates.h): of which top of the tree; else -1. */
int estimate_top(const tri_node *n);

/* Whether the phase has nodes that compute. */
bool cut_has(const struct cut *c, enum phase phase);

/* The graph that sums two lanes: one `add` for each root of the phase. */
tri_graph *cut_merge_graph(const struct cut *c, enum phase phase);

/* How many samples lane i has, and the first of them. */
int64_t lane_samples(int64_t batch, int64_t lanes, int64_t i);
int64_t lane_first(int64_t batch, int64_t lanes, int64_t i);

#endif
