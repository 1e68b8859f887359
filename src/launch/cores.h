/* SPDX-License-Identifier: Apache-2.0
 * Which processors workers are pinned to. */
#ifndef LAUNCH_CORES_H
#define LAUNCH_CORES_H

#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>

/* Those that this process may use, a processor of each core first, so that workers share a core only
 * where there are more of them than cores; neighbours in the list are neighbours in the machine. */
struct cores {
    int n;
    int cpu[CPU_SETSIZE]; /* -1: retired */
    bool free;            /* nobody is pinned: there are more of them than workers have threads */
};

/* threads: of all workers. Where they do not fill the machine, the system places them: another run may be
 * at work there. */
void cores_find(struct cores *c, int threads);
static inline bool cores_pinned(const struct cores *c) { return !c->free; }
/* `threads` of them from `first` on are used no more; the others keep their places in the list. */
void cores_retire(struct cores *c, int first, int threads);
/* Pins a process (0: this one) to `threads` of them from `first` on; first -1, or behind the last: it may
 * use all. */
void cores_pin(const struct cores *c, int first, int threads, pid_t pid);

#endif
