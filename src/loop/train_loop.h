/* SPDX-License-Identifier: Apache-2.0
 * The usual training loop with everything that a person and a program see of it. */
#ifndef LOOP_TRAIN_LOOP_H
#define LOOP_TRAIN_LOOP_H

#include "base/base.h"

/* tri_train with a name for the first line. Takes the graph, and o->source. */
tri_status train_loop(tri_graph *g, const tri_options *o, const tri_callback *callbacks,
                      const char *model);

#endif
