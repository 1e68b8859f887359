/* SPDX-License-Identifier: Apache-2.0
 * What the nodes of a network take on this machine, by the prices of the units that they have
 * become. */
#ifndef RUN_NODE_TIMES_H
#define RUN_NODE_TIMES_H

#include "price/prices.h"
#include "run/run.h"

struct node_time {
    const char *name; /* of a forward node */
    double forward;   /* seconds of it in a lane */
    double all;       /* and of its backward nodes */
};

struct node_times {
    struct node_time *of; /* by name; null: too many units have no price */
    size_t n;
    struct arena arena;
};

/* run: planned. With a mesh, which divides nodes, nothing is known. */
tri_status node_times_find(const tri_run *run, const struct prices *p, struct node_times *out);
/* By the machine file of the run `own`, which has planned the other. */
tri_status node_times_open(const tri_run *own, const tri_run *run, struct node_times *out);
/* Null: it has become no unit. */
const struct node_time *node_times_at(const struct node_times *t, const char *name);
void node_times_free(struct node_times *t);

#endif
