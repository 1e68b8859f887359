/* SPDX-License-Identifier: Apache-2.0
 * Padding: samples that fill up the last step of an epoch (--tail pad) and do not count. All their
 * labels have the value that the network's loss ignores. */
#ifndef RUN_PADDING_H
#define RUN_PADDING_H

#include "run/run.h"

/* Marks the inputs from which the loss takes its labels (run_input.labels). Fails if samples cannot
 * be ignored: if the loss also depends on them in another way, or is divided by their number. */
tri_status padding_plan(const tri_graph *model, struct machine *m);
/* Sets the labels of a row that has been read to the ignored value. */
void padding_mark(const struct machine *m, const struct feed_place *row);

#endif
