/* SPDX-License-Identifier: Apache-2.0
 * Runs textual graphs whose inputs are the states i0, i1, ..., for tests that compare graphs before
 * and after they have been split over a mesh. */
#ifndef MESH_TRIAL_H
#define MESH_TRIAL_H

#include <stdio.h>

#include "check/trial.h"
#include "plan/expand.h"

/* The graph, its inputs as sources of the trial, its outputs as they are. */
static inline tri_status graph_trial(tri_graph *g, uint64_t seed, struct trial *t) {
    *t = (struct trial){.g = g, .e = {.op = tri_op_find("neg"), .text = "", .seed = seed}};
    for (size_t i = 0; i < g->n_nodes; i++)
        if (node_is(g->node[i], "state") && t->e.n < MAX_INPUTS)
            t->e.spec[t->e.n++] = g->node[i]->out->spec;
    return tri_graph_status(g);
}

/* Adds the outputs of one step on `ref` to out. */
static inline tri_status graph_run(tri_graph *g, uint64_t seed, const struct values *in,
                                   struct values *out) {
    struct trial t;
    struct team *team = NULL;
    tri_status status = graph_trial(g, seed, &t);
    if (!status) status = team_make(1, &team);
    if (!status) status = trial_compile(&t, dev_find("ref"), team);
    if (!status) status = trial_run(&t, in, out);
    t.g = NULL;
    trial_free(&t);
    team_free(team);
    return status;
}

#endif
