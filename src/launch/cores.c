/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/cores.h"

#include <stdio.h>

/* Of the threads of its core the first. */
static bool is_first(int cpu) {
    char path[128];
    int first = cpu;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%d", &first) != 1) first = cpu;
    if (f) fclose(f);
    return first == cpu;
}

void cores_find(struct cores *c, int threads) {
    cpu_set_t set;
    c->n = 0;
    if (sched_getaffinity(0, sizeof set, &set)) return;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < CPU_SETSIZE; i++)
            if (CPU_ISSET((size_t)i, &set) && is_first(i) == !pass) c->cpu[c->n++] = i;
    c->free = threads < c->n;
}

void cores_retire(struct cores *c, int first, int threads) {
    for (int i = first; i >= 0 && i < first + threads && i < c->n; i++) c->cpu[i] = -1;
}

void cores_pin(const struct cores *c, int first, int threads, pid_t pid) {
    cpu_set_t set;
    CPU_ZERO(&set);
    bool all = c->free || first < 0 || first + threads > c->n;
    for (int i = all ? 0 : first; i < (all ? c->n : first + threads); i++)
        if (c->cpu[i] >= 0) CPU_SET((size_t)c->cpu[i], &set);
    if (CPU_COUNT(&set)) sched_setaffinity(pid, sizeof set, &set);
}
