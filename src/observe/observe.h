/* SPDX-License-Identifier: Apache-2.0
 * What observers of a run are given, and means over several steps of it. They know numbers and
 * names only, nothing of graphs or devices. */
#ifndef OBSERVE_OBSERVE_H
#define OBSERVE_OBSERVE_H

#include "base/base.h"

/* What one step left. */
struct observed {
    int64_t step, total; /* from 1; of how many */
    int64_t epoch;
    int64_t samples; /* of this step */
    double lr;
    double now; /* seconds since the run began, */
    double aside; /* and how many of them went to what is no step: evaluations */
    int n;
    const char *const *name; /* n of them, the loss first */
    const double *value;
};

/* What one of several workers has spent since the run began, in seconds. */
struct observed_worker {
    int worker;
    bool takes_part; /* it is no spare, and has not died */
    double compute, wait, reduce, data;
    int64_t lanes, peak; /* lanes done; bytes of memory, at most */
};

/* Values of the steps since the last clearing, each as often as it has samples. */
struct averages {
    int n;
    int64_t steps, samples;
    double *sum;
};
tri_status averages_open(struct averages *a, int n);
void averages_close(struct averages *a);
void averages_add(struct averages *a, const struct observed *o);
double averages_mean(const struct averages *a, int i);
void averages_clear(struct averages *a);

#endif
