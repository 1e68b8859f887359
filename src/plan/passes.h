/* SPDX-License-Identifier: Apache-2.0
 * The way from a network to what runs, as one list of passes. Each is data in, data out; the graphs
 * are verified between them, and any can be printed. */
#ifndef PLAN_PASSES_H
#define PLAN_PASSES_H

#include "graph/target.h"
#include "plan/lanes.h"

struct compilation {
    const tri_options *options;
    const struct target *target; /* of the device; null: it has all and wishes nothing */
    tri_graph *model;    /* as the user wrote it; "train" adds to it. Not owned */
    tri_type half;       /* what "precision" has lowered to; TRI_F32: nothing */
    const char *note;    /* something that the user should know; null: nothing */
    tri_graph *whole;    /* for this batch and these lanes */
    int64_t lanes;
    int all_threads;          /* that will share the steps with other processes; 0: there are none */
    int levels;          /* of sums that are left to the step */
    struct lane_tree tree; /* of the lanes' sums */
    struct cut cut;
    /* The graphs of the phases; for count and lane one for each size that a lane has. */
    tri_graph *pre, *step;
    int n_sizes;
    int64_t samples[2];
    tri_graph *count[2], *lane[2];
    tri_graph *merge[2]; /* sums of two partials: of count, of lane */
};

/* Runs all passes, or up to and with the one named (null: all). */
tri_status passes_run(struct compilation *c, const char *last);
void passes_free(struct compilation *c);

int passes_count(void);
const char *passes_name(int i);
const char *passes_help(int i);
bool passes_may(int i); /* be left out, by tri_options.passes */

/* What there is after a pass, as text to be freed; null with a message. */
char *passes_dump(tri_graph *g, const tri_options *o, const struct target *target,
                  const char *after);

#endif
