/* SPDX-License-Identifier: Apache-2.0
 * Which processors workers are pinned to. */
#ifndef LAUNCH_CORES_H
#define LAUNCH_CORES_H

#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>

struct core {
    int cpu;
    int node;   /* NUMA node */
    bool first; /* the first hardware thread of its physical core */
};

/* The processors that this process may use, in the order in which workers take them. First hardware
 * threads come first, so that workers share a physical core only if there are more workers than
 * cores. A worker's processors are on one node if possible. */
struct cores {
    int n, nodes;
    struct core core[CPU_SETSIZE];
    bool free; /* there are more processors than threads: workers are not pinned to single ones */
};

/* threads: of each worker. If they do not fill the machine, the scheduler chooses the processors,
 * as other runs may use some; workers are then divided among the nodes only. */
void cores_find(struct cores *c, int workers, int threads);
/* The same for a given list of processors in the order of their numbers. */
void cores_order(struct cores *c, int workers, int threads);
/* The processors for `threads` threads from place `first` on; all if first is -1 or too large. */
void cores_choose(const struct cores *c, int first, int threads, cpu_set_t *set);
/* Pins a process (0: this one) to these processors. */
void cores_pin(const struct cores *c, int first, int threads, pid_t pid);

#endif
