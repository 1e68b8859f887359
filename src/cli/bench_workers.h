/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_BENCH_WORKERS_H
#define CLI_BENCH_WORKERS_H

#include "cli/options.h"

struct bench_workers {
    const char *list;  /* "1,2,4" */
    int argc;          /* the whole command line of `trireme bench` */
    char *const *argv;
    const struct option_row *rows; /* of the options that bench alone has */
    char *const *program; /* a program's words, whose network is trained; null: MODEL */
    int threads;       /* of each worker; 0: cores divided by workers */
    int64_t steps;     /* per run; 0: a run takes a few seconds */
    double until_loss; /* also measure the time until this loss; 0: do not */
};

int bench_workers(const struct bench_workers *b);

#endif
