/* SPDX-License-Identifier: Apache-2.0
 * The times of a run's workers over its steps, as many as there are columns of pixels. */
#ifndef PAGE_HEAT_H
#define PAGE_HEAT_H

#include <jansson.h>

#include "base/base.h"

/* {"hosts":[{"host":"h0","steps":[...],"seconds":[...],"workers":[{"worker":0,"lane":[...],
 * "wait":[...],"samples":[...],"no_core":[...],"memory":bytes}]}]}. A column has the last step of
 * its frames and the time that the slowest step took; of a worker, the time of a lane in
 * nanoseconds, and shares of its time. What is not known is null. Null without memory. */
json_t *heat_make(const char *directory, int columns);

#endif
