/* SPDX-License-Identifier: Apache-2.0
 * The usual training loop with everything that a person and a program see of it. */
#ifndef OBSERVE_TRAIN_LOOP_H
#define OBSERVE_TRAIN_LOOP_H

#include "base/base.h"

/* tri_train with a name for the first line. Takes the graph, and o->source. */
tri_status train_loop(tri_graph *g, const tri_options *o, const tri_callbacks *callbacks,
                      const char *model);

/* The scalars that a run leaves, the loss first; arrays of *n, each freed with free(). Null: out of
 * memory. */
const char **train_loop_names(const tri_run *run, int *n);

#endif
