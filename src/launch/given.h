/* SPDX-License-Identifier: Apache-2.0
 * What a launcher (mpirun, srun, torchrun, Kubernetes) tells each of the processes that it starts,
 * in the environment: how many there are, which one this is, and perhaps where the first one is. */
#ifndef LAUNCH_GIVEN_H
#define LAUNCH_GIVEN_H

#include "base/base.h"

struct given {
    const char *by;             /* who: "mpirun"; null: nobody has, or it is one process alone */
    int rank, size;             /* of all processes */
    int local_rank, local_size; /* of those on this host */
    int host, hosts;            /* number of this host, of them; -1: not known */
    int workers;                /* of this host; 0: not known */
    char address[300];          /* "host:port" of the first one; "": it is not told */
    char job[20];               /* digits, the same in all processes; "": not known */
};

/* join: also variables that any shell may have, such as MASTER_ADDR. Fails if variables contradict
 * each other. */
tri_status given_read(bool join, struct given *g);
/* From now on nothing is given: to this process, and to those that it starts. */
void given_take(void);
bool given_is_taken(void);
/* Whether all processes are on one host. */
bool given_is_local(const struct given *g);

#endif
