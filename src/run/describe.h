/* SPDX-License-Identifier: Apache-2.0
 * What run.json says of a network and its run. */
#ifndef RUN_DESCRIBE_H
#define RUN_DESCRIBE_H

#include "run/run.h"

/* The text of an object, for run_file_describe. Without the plan if it would have over `most`
 * bytes. */
void run_describe(const tri_run *run, size_t most, struct text *out);

#endif
