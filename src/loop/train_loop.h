/* SPDX-License-Identifier: Apache-2.0
 * The training loop with its output: progress, metrics, the last line. */
#ifndef LOOP_TRAIN_LOOP_H
#define LOOP_TRAIN_LOOP_H

#include "base/base.h"

/* tri_train with a model name for the first line. Takes ownership of the graph and o->source. */
tri_status train_loop(tri_graph *g, const tri_options *o, const tri_callback *callbacks,
                      const char *model);

#endif
