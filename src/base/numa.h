/* SPDX-License-Identifier: Apache-2.0
 * Machines whose memory is divided into nodes, each near some of the processors. */
#ifndef BASE_NUMA_H
#define BASE_NUMA_H

#include "base/base.h"

#define NUMA_MOST 1024

/* The node of a processor; 0 if nodes are unknown. */
int numa_of_cpu(int cpu);
/* Reads a list of numbers, "0-3,8", as the kernel writes it: sets is[i] for each i below `most`,
 * and returns how many it set. */
int numa_list(const char *text, bool *is, int most);
/* Spreads the untouched pages of a shared mapping over all nodes in turn, so that memory which all
 * workers use alike is equally far from each. Does nothing on one node. */
void numa_spread(void *at, size_t bytes);

#endif
