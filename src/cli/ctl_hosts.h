/* SPDX-License-Identifier: Apache-2.0
 * Requests of `trireme ctl` to the coordinator of a run over several hosts (launch/requests.h),
 * through the head of this host's store (crew_asked). */
#ifndef CLI_CTL_HOSTS_H
#define CLI_CTL_HOSTS_H

#include "launch/look.h"

/* A host, as the coordinator sees it. */
struct ctl_host {
    char name[HOSTS_NAME], state[16];
    int workers, lanes; /* lanes: of the step opened last; -1: none was */
    uint64_t step;
    uint32_t epoch;
};

/* Waits for the answer until the time `until` of base_now. answer: CREW_ANSWER bytes. */
tri_status ctl_request(struct look *l, const char *request, int64_t until, char *answer);
/* Asks for the hosts; fills in at most HOSTS_MOST and returns how many; -1: it failed. */
int ctl_hosts(struct look *l, int64_t until, struct ctl_host *to);
/* As a table. */
void ctl_hosts_print(const struct ctl_host *host, int n, struct text *out);

#endif
