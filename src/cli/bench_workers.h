/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_BENCH_WORKERS_H
#define CLI_BENCH_WORKERS_H

#include "base/base.h"

struct bench_workers {
    const char *list;  /* "1,2,4" */
    int argc;          /* the command line, options and all; those of this command are left out of */
    char *const *argv; /* what trains */
    int threads;       /* of each worker; 0: cores divided by workers */
    int64_t steps;     /* of a measurement; 0: as many as some seconds take */
    double until_loss; /* 0: no */
};

int bench_workers(const struct bench_workers *b);

#endif
