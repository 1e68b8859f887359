/* SPDX-License-Identifier: Apache-2.0
 * How the hosts of a run that mpirun or srun starts find each other: in files of the folder
 * DIR/launch-JOB, which they share, and which nobody else can read. The first process of each host
 * writes what its host is, that of rank 0 where the coordinator is, and the run's key. */
#ifndef LAUNCH_MEETING_H
#define LAUNCH_MEETING_H

#include "launch/given.h"
#include "launch/host_list.h"
#include "link/link.h"

#define MEETING_SECONDS 300.0 /* in which all must come, unless --start-timeout says otherwise */

/* In the process of rank 0: waits for all hosts, in the order of their ranks. */
tri_status meeting_collect(const struct given *g, const char *directory, double seconds,
                           struct host_list *out);
/* Tells the others where the coordinator is, and the digits of the key; null: they have it. Fails
 * if another process has told so. */
tri_status meeting_announce(const struct given *g, const char *directory, const char *address,
                            const char *digits);
void meeting_end(const struct given *g, const char *directory); /* removes the folder */

/* In another process. *has_key: the file had a key. */
tri_status meeting_find(const struct given *g, const char *directory, double seconds,
                        char address[LINK_ADDRESS], uint8_t key[LINK_KEY], bool *has_key);

/* This host's name, without a domain. */
void meeting_name(char to[HOSTS_NAME]);

#endif
