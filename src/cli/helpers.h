/* SPDX-License-Identifier: Apache-2.0
 * Helpers: processes that share the batches of an evaluation with this one. They run the same
 * command line and claim batches in shared memory. This process computes whatever they leave. */
#ifndef CLI_HELPERS_H
#define CLI_HELPERS_H

#include <sys/types.h>

#include "base/base.h"
#include "base/tally.h"
#include "crew/eval_queue.h"

#define HELPERS_MOST 128

struct helpers_shared;

struct helpers {
    int fd, n;
    size_t bytes;
    struct helpers_shared *shared;
    struct eval_queue queue;
    pid_t pid[HELPERS_MOST];
};

/* Starts n helpers with `threads` threads each. words: the whole command line. */
tri_status helpers_start(struct helpers *h, int n, int64_t threads, int64_t batches, int values,
                         char **words);
/* The count of bad samples, shared by all processes. */
struct tally *helpers_bad(const struct helpers *h);
/* Waits until all have ended, and reports those that failed. */
void helpers_wait(struct helpers *h);
/* Kills the helpers that still run, and releases the memory. */
void helpers_end(struct helpers *h);

/* If this process is a helper, maps the shared memory and sets *place, else sets it to -1. */
tri_status helpers_join(struct helpers *h, int *place);
int64_t helpers_threads(const struct helpers *h);
/* Leaves the reason for a helper's failure to the first process, which prints it. */
void helpers_give_up(const struct helpers *h, int place, const char *text);

#endif
