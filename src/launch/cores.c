/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/cores.h"

#include <stdio.h>

#include "base/numa.h"

/* Whether this is the first hardware thread of its physical core. */
static bool is_first(int cpu) {
    char path[128];
    int first = cpu;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *f = fopen(path, "r");
    if (f && fscanf(f, "%d", &first) != 1) first = cpu;
    if (f) fclose(f);
    return first == cpu;
}

/* Renumbers the nodes from 0, without gaps. */
static void number_nodes(struct cores *c) {
    int number[CPU_SETSIZE];
    for (int i = 0; i < c->n; i++) {
        int k = 0;
        while (k < c->nodes && number[k] != c->core[i].node) k++;
        if (k == c->nodes) number[c->nodes++] = c->core[i].node;
        c->core[i].node = k;
    }
}

/* Appends the processors of a node and kind to to[n]: as many as fill whole workers, or, if `rest`,
 * the remaining ones. Returns the new n. */
static int take(const struct cores *from, struct core *to, int n, int threads, int node,
                bool first, bool rest) {
    int all = 0, seen = 0;
    for (int i = 0; i < from->n; i++)
        all += from->core[i].node == node && from->core[i].first == first;
    int whole = all / threads * threads;
    for (int i = 0; i < from->n; i++) {
        if (from->core[i].node != node || from->core[i].first != first) continue;
        if ((seen++ >= whole) == rest) to[n++] = from->core[i];
    }
    return n;
}

void cores_order(struct cores *c, int workers, int threads) {
    struct core to[CPU_SETSIZE];
    int n = 0;
    c->nodes = 0;
    number_nodes(c);
    for (int first = 1; first >= 0; first--)
        for (int rest = 0; rest < 2; rest++)
            for (int node = 0; node < c->nodes; node++)
                n = take(c, to, n, threads, node, first, rest);
    for (int i = 0; i < n; i++) c->core[i] = to[i];
    c->free = workers * threads < c->n;
}

void cores_find(struct cores *c, int workers, int threads) {
    cpu_set_t set;
    c->n = 0;
    if (sched_getaffinity(0, sizeof set, &set)) return;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET((size_t)i, &set))
            c->core[c->n++] = (struct core){i, numa_of_cpu(i), is_first(i)};
    cores_order(c, workers, threads);
}

/* The node of a worker: each in turn takes the node with the most processors left. -1 if that has
 * too few; the worker may then use all processors. */
static int node_for(const struct cores *c, int first, int threads) {
    int left[CPU_SETSIZE] = {0}, best = 0;
    for (int i = 0; i < c->n; i++) left[c->core[i].node]++;
    for (int worker = 0; worker <= first / threads; worker++) {
        best = 0;
        for (int node = 1; node < c->nodes; node++)
            if (left[node] > left[best]) best = node;
        if (left[best] < threads) return -1;
        left[best] -= threads;
    }
    return best;
}

void cores_choose(const struct cores *c, int first, int threads, cpu_set_t *set) {
    bool any = first < 0 || first + threads > c->n;
    int node = c->free && !any ? node_for(c, first, threads) : -1;
    CPU_ZERO(set);
    for (int i = 0; i < c->n; i++) {
        bool mine = c->free ? node < 0 || c->core[i].node == node
                            : i >= first && i < first + threads;
        if (any || mine) CPU_SET((size_t)c->core[i].cpu, set);
    }
}

void cores_pin(const struct cores *c, int first, int threads, pid_t pid) {
    cpu_set_t set;
    cores_choose(c, first, threads, &set);
    if (CPU_COUNT(&set)) sched_setaffinity(pid, sizeof set, &set);
}
