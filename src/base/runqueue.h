/* SPDX-License-Identifier: Apache-2.0
 * Threads that are ready to run while others have their core, and who has it. Everything is read
 * from ROOT/proc; root is "" except in tests. */
#ifndef BASE_RUNQUEUE_H
#define BASE_RUNQUEUE_H

#include "base/base.h"

/* Opens what the kernel counts for a thread; -1: it counts nothing, or there is no such thread. */
int runqueue_open(const char *root, int pid, int tid);
/* Nanoseconds that the thread has been ready to run without a core, up to the last time that it
 * began to run; -1: it has ended. A thread of a group that has used up its quota is ready, too. */
int64_t runqueue_waited(int fd);

/* How long each thread of the machine has run, as far as /proc shows them. */
struct rivals {
    struct rival_task {
        int pid, tid, core; /* core: where it has run last */
        uint64_t ticks, used; /* so far; since the look before */
    } *task; /* by tid */
    size_t n, capacity;
    bool hidden; /* /proc does not show processes of other users */
    int looks;
};

struct rival {
    int pid; /* 0: none */
    double seconds;
    char name[64]; /* without control characters */
};

/* Looks at all threads of all processes, which takes about 10 us for each. */
void rivals_look(struct rivals *all, const char *root);
/* The process that has used this core most between the last two looks, not counting `but`. */
void rivals_on(const struct rivals *all, const char *root, int core, int but, struct rival *r);
/* Where a thread has run last; -1: not known. */
int rivals_core(const struct rivals *all, int tid);
void rivals_free(struct rivals *all);

#endif
