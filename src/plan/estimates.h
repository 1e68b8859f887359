/* SPDX-License-Identifier: Apache-2.0
 * The wire format topk needs an estimate of each gradient, by node of the lanes' tree that is
 * rounded: a state of the parameter's shape, which each step sets to what the node was rounded to.
 * So it moves, is kept and is hashed as the optimizer's states are. */
#ifndef PLAN_ESTIMATES_H
#define PLAN_ESTIMATES_H

#include "plan/lanes.h"
#include "plan/wire_ask.h"

/* Names are this, four digits for the node among the tops of the tree, a dot and the parameter's
 * name: in the order of names, a node's estimates follow one another. */
#define ESTIMATE_PREFIX "optimizer.wire."
bool estimate_is(const char *name);
/* To be freed with text_free. */
void estimate_name(const char *param, int top, struct text *name);

/* The gradient of update i that is summed over the lanes, and the format in which it travels. Null:
 * there is none, or it travels as it is. used: see wire_ask_format. */
tri_status wire_of_update(const tri_options *o, const struct cut *cut, size_t i,
                          const tri_tensor **gradient, struct wire_want *want, bool *used);

/* Adds the estimates that the options ask for to the graph of so many lanes, or says why there can
 * be none. half: see struct compilation. */
tri_status estimates_add(tri_graph *whole, int64_t lanes, tri_type half, const tri_options *o);

#endif
