/* SPDX-License-Identifier: Apache-2.0
 * The resources of this process: cores, memory, and their limits. */
#ifndef BASE_HOST_H
#define BASE_HOST_H

#include "base/base.h"

struct host {
    int cores;      /* online */
    int usable;     /* of them, those that affinity allows */
    double quota;   /* cores' worth of time that control groups allow; 0: no limit */
    int64_t memory, available; /* bytes; 0: unknown */
    int64_t limit;  /* on memory, by control groups; 0: none */
    /* processes of this group killed for lack of memory; without a group, of the machine; -1:
     * unknown */
    int64_t oom_kills;
    int64_t shared; /* size of /dev/shm; -1: there is none */
    /* Of the group whose quota stops its processes most: the periods so far; those in which it has
     * stopped them, and for how many seconds, summed over cores. 0 without a quota. */
    int64_t periods, throttled_periods;
    double throttled;
};

/* Limits are the least of the process's control group and its parents, version 1 or 2. root: the
 * directory of proc, sys and dev; "" except in tests. */
void host_read(const char *root, struct host *h);
/* The cores that this process may use, by affinity and cgroup. */
int host_cores(void);
/* Seconds since this process began, exact to 10 ms; 0: unknown. */
double host_age(void);
/* The most bytes that it has had in memory; 0: unknown. */
double host_peak(void);
/* Seconds that others than this process and its children that have ended have run on the cores of
 * its affinity, of which there are *cores; the difference of two calls counts. 0: unknown. root: as
 * above. */
double host_others(const char *root, int *cores);
/* Seconds in which a hypervisor gave these cores to others, summed; *cores, root: as above. */
double host_stolen(const char *root, int *cores);
/* A thread, or with pid as tid the first one of a process. */
struct host_thread {
    char name[64]; /* without control characters */
    char state;    /* the kernel's letter, 'T': it is stopped; 0: there is no such thread */
    int parent, processor; /* processor: where it has run last; -1: unknown */
    uint64_t ticks, start; /* that it has run; when it began, since the machine's start */
};
/* False: there is none, or it is hidden. A tid is known in any process. root: as above. */
bool host_thread(const char *root, int pid, int tid, struct host_thread *t);
/* When a process of this machine began, in ticks since the machine's start; -1: it is not there. */
int64_t host_process(int pid);
/* Bytes that this process has taken from its heap and not returned; 0: unknown. */
size_t host_heap(void);
#define HOST_COMMAND 131072 /* bytes of a command line */
#define HOST_WORDS 4096
/* This process's command line, in `text`, and a null. False: it is unknown, or cut. */
bool host_command(char text[HOST_COMMAND], char *word[HOST_WORDS + 1]);
/* "avx2 fma avx512f", or the machine's name from uname. */
void host_instructions(struct text *out);

#endif
