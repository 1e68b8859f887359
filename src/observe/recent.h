/* SPDX-License-Identifier: Apache-2.0
 * The loss over the last minutes, dense enough for a line of bars. Times are seconds of the
 * monotonic clock. */
#ifndef OBSERVE_RECENT_H
#define OBSERVE_RECENT_H

#include "base/base.h"

struct recent {
    struct {
        double time, loss;
    } point[4096];
    int n;
};
void recent_add(struct recent *r, double time, double loss);
/* Adds the last lines of the run's metrics.jsonl, if it has one, for steps up to `step`. */
void recent_read(struct recent *r, const char *directory, double now, uint64_t step);
/* Means over `width` equal parts of the time up to now, NaN before the first loss, and the least
 * and the greatest of them. Returns the seconds that they span; 0: nothing to show. */
double recent_bars(const struct recent *r, double now, int width, double bar[], double *least,
                   double *most);

#endif
