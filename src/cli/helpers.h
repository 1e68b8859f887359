/* SPDX-License-Identifier: Apache-2.0
 * Processes that help this one with an evaluation: they run the same command line, and draw batches from memory that
 * all share. Whatever becomes of them, this process computes what they have not. */
#ifndef CLI_HELPERS_H
#define CLI_HELPERS_H

#include <sys/types.h>

#include "data/tally.h"
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

/* Starts n of them, with so many threads each; words: those of the command line behind the program's name. */
tri_status helpers_start(struct helpers *h, int n, int64_t threads, int64_t batches, int values, int argc, char **words);
/* Where bad samples are counted by all. */
struct tally *helpers_bad(const struct helpers *h);
/* Waits until they have ended, and tells of those that failed. */
void helpers_wait(struct helpers *h);
/* Ends those that are left: nothing of theirs is wanted any more. */
void helpers_end(struct helpers *h);

/* Whether this process is a helper, which is `place`; then the memory is there. Fails with a message. */
tri_status helpers_join(struct helpers *h, int *place);
int64_t helpers_threads(const struct helpers *h);
/* Why it gives up, for the one that it helps. */
void helpers_give_up(const struct helpers *h, int place, const char *text);

#endif
