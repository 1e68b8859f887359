/* SPDX-License-Identifier: Apache-2.0
 * The times of a run's workers over its steps, as many as there are columns of pixels. */
#ifndef PAGE_HEAT_H
#define PAGE_HEAT_H

#include <jansson.h>

#include "base/base.h"

/* {"first":1,"steps":[...],"ends":[...],"seconds":[...],
 *  "hosts":[{"host":"h0","workers":[{"worker":0,"lane":[...],"wait":[...],"samples":[...],
 *            "no_core":[...],"memory":bytes,"lanes":N}]}]}
 * Columns are ranges of steps, the same for all hosts: `first` is the first step, `steps` has the
 * last of each column, `ends` when that was over, in seconds since 1970, `seconds` what the slowest
 * took. Of a worker a column has the time of a lane in nanoseconds, and shares of its time; those
 * of a step that was done again are of all times. What is not known is null. host: "" if the run
 * has one. Null without memory. */
json_t *heat_make(const char *directory, int columns);

#endif
