/* SPDX-License-Identifier: Apache-2.0
 * Samples into the inputs of an executable: read from data, or fed by the program. */
#ifndef RUN_FEED_H
#define RUN_FEED_H

#include "run/run.h"

/* Matches the fields of the data to the inputs, once before samples are read. */
tri_status feed_match(struct machine *m, const tri_data *data);
/* Reads sample `index` into its row of every input, and checks it. */
tri_status feed_row(const struct machine *m, tri_data *data, const struct feed_place *to,
                    int64_t index, int64_t epoch, uint64_t seed);
void feed_commit(struct machine *m); /* the device sees what was written */
/* Opens a run that the program feeds: refuses options that make no sense then. */
tri_status feed_open(tri_run *run);
/* The batch that the program has fed becomes the step's: checks that it is complete, and its values. */
tri_status feed_take(tri_run *run, int64_t step);

#endif
