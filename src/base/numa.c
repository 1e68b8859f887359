/* SPDX-License-Identifier: Apache-2.0 */
#include "base/numa.h"

#include <dirent.h>
#include <limits.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int numa_of_cpu(int cpu) {
    char path[64];
    int node = 0;
    base_format(path, sizeof path, "/sys/devices/system/cpu/cpu%d", cpu);
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));)
        if (sscanf(e->d_name, "node%d", &node) == 1) break;
    if (d) closedir(d);
    return node;
}

int numa_list(const char *text, bool *is, int most) {
    int n = 0;
    for (int i = 0; i < most; i++) is[i] = false;
    while (*text >= '0' && *text <= '9') {
        char *end;
        long first = strtol(text, &end, 10), last = first;
        if (*end == '-') last = strtol(end + 1, &end, 10);
        for (long i = first; i <= last && i < most; i++) {
            n += !is[i];
            is[i] = true;
        }
        text = end + (*end == ',');
    }
    return n;
}

void numa_spread(void *at, size_t bytes) {
    enum { WORD = CHAR_BIT * sizeof(unsigned long) };
    char text[1024] = "";
    bool is[NUMA_MOST];
    unsigned long mask[NUMA_MOST / WORD] = {0};
    FILE *f = fopen("/sys/devices/system/node/has_memory", "r");
    bool known = f && fgets(text, sizeof text, f);
    if (f) fclose(f);
    if (!known || numa_list(text, is, NUMA_MOST) < 2) return;
    for (int i = 0; i < NUMA_MOST; i++)
        if (is[i]) mask[i / (int)WORD] |= 1ul << i % (int)WORD;
    /* Some containers forbid it. Then each page is placed where it is first touched, which is only
     * slower. */
    syscall(SYS_mbind, at, bytes, MPOL_INTERLEAVE, mask, (unsigned long)NUMA_MOST, 0);
}
