/* SPDX-License-Identifier: Apache-2.0
 * Machines whose memory lies in several nodes, each near some of the processors. */
#ifndef BASE_NUMA_H
#define BASE_NUMA_H

#include "base/base.h"

#define NUMA_MOST 1024

/* The node that a processor belongs to; 0 where nothing is known of nodes. */
int numa_of_cpu(int cpu);
/* Numbers as the system lists them, "0-3,8": sets is[i] for each below `most`, and returns how many there are. */
int numa_list(const char *text, bool *is, int most);
/* Pages of a shared mapping that have not been touched come from all nodes in turn: memory that all workers use
 * alike is then as far from each. Nothing where there is one node. */
void numa_spread(void *at, size_t bytes);

#endif
