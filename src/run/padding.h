/* SPDX-License-Identifier: Apache-2.0
 * Samples that fill up an epoch's last step (--tail pad) and do not count: all their labels are the one that the
 * network's loss leaves out. */
#ifndef RUN_PADDING_H
#define RUN_PADDING_H

#include "run/run.h"

/* Notes which inputs the loss takes its labels from (run_input.labels). Fails where samples cannot be left out: a
 * part of the loss depends on them in another way, or is divided by how many they are. */
tri_status padding_plan(const tri_graph *model, struct machine *m);
/* Gives that label to a row that has been read. */
void padding_mark(const struct machine *m, const struct feed_place *row);

#endif
