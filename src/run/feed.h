/* SPDX-License-Identifier: Apache-2.0
 * Writes samples to the inputs of an executable: from data, or from the program. */
#ifndef RUN_FEED_H
#define RUN_FEED_H

#include "run/run.h"

/* Matches the fields of the data to the inputs. Call it once, before samples are read. */
tri_status feed_match(struct machine *m, const tri_data *data);
/* Reads sample `index` into its row of every input, and checks it. */
tri_status feed_row(const struct machine *m, tri_data *data, const struct feed_place *to,
                    int64_t index, int64_t epoch, uint64_t seed);
void feed_commit(struct machine *m); /* copies what was written to the device */
/* Opens a run that the program feeds; refuses options that make no sense for it. */
tri_status feed_open(tri_run *run);
/* Takes the batch that the program has fed for the step, after it has checked it and its values. */
tri_status feed_take(tri_run *run, int64_t step);

#endif
