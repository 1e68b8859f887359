/* SPDX-License-Identifier: Apache-2.0
 * What the machine gives to this process: cores, memory, and the limits set on them. */
#ifndef BASE_HOST_H
#define BASE_HOST_H

#include "base/base.h"
#include "base/host.h"

struct host {
    int cores;      /* online */
    int usable;     /* of them, by affinity */
    double quota;   /* cores' worth of time that control groups allow; 0: no limit */
    int64_t memory, available; /* bytes; 0: not known */
    int64_t limit;  /* of memory by control groups; 0: none */
    int64_t oom_kills; /* processes of this group that were killed for lack of memory; without a
                          group, of the machine; -1: not known */
    int64_t shared; /* size of /dev/shm; -1: there is none */
};

/* The limits are the least of the process's own control group and its parents, of version 1 or 2.
 * root: where proc, sys and dev are looked for; "" but in tests. */
void host_read(const char *root, struct host *h);
/* Cores that this process may use: affinity and cgroup. */
int host_cores(void);
/* "avx2 fma avx512f", or the name of the machine's kind. */
void host_instructions(struct text *out);

#endif
