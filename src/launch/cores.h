/* SPDX-License-Identifier: Apache-2.0
 * Which processors workers are pinned to. */
#ifndef LAUNCH_CORES_H
#define LAUNCH_CORES_H

#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>

struct core {
    int cpu;
    int node;   /* of memory */
    bool first; /* of the processors of its core */
};

/* Those that this process may use, a processor of each core first, so that workers share a core only
 * where there are more of them than cores; the processors of a worker are of one node, where that can be. */
struct cores {
    int n, nodes;
    struct core core[CPU_SETSIZE];
    bool free; /* nobody is pinned to a core: there are more of them than workers have threads */
};

/* threads: of each worker. Where they do not fill the machine, the system chooses the processors, for another
 * run may be at work there; only nodes are shared out among the workers. */
void cores_find(struct cores *c, int workers, int threads);
/* The same for a given machine, whose processors stand there in the order of their numbers. */
void cores_order(struct cores *c, int workers, int threads);
/* The processors for `threads` threads from `first` on; first -1, or behind the last: all. */
void cores_choose(const struct cores *c, int first, int threads, cpu_set_t *set);
/* Pins a process (0: this one) to them. */
void cores_pin(const struct cores *c, int first, int threads, pid_t pid);

#endif
