/* SPDX-License-Identifier: Apache-2.0
 * What a run gives its observers (progress, metrics), and means over several steps. Observers see
 * only numbers and names, no graphs and devices. */
#ifndef OBSERVE_OBSERVE_H
#define OBSERVE_OBSERVE_H

#include "base/base.h"

/* Of a run over several hosts: what this one has sent to others and received, in bytes on the wire,
 * what that sent was in memory, and the seconds in which its threads waited for others, their mean;
 * all since some time. */
struct observed_hosts {
    double sent, received, sent_whole, exposed;
};

/* The results of a step. */
struct observed {
    int64_t step, total; /* 1 to total */
    int64_t epoch;
    int64_t samples; /* of this step */
    double lr;
    double now;   /* seconds since the run began, */
    double aside; /* of which evaluations have taken this many */
    int n;
    const char *const *name; /* [n], the loss first */
    const double *value;     /* [n] */
    const struct observed_hosts *hosts; /* null: there is one host */
};

/* Means over steps, weighted by their samples. */
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

/* Seconds that a process with much memory may take to end, after a kill or after its agent. */
#define OBSERVE_DIES 1.0

#endif
