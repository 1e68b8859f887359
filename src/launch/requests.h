/* SPDX-License-Identifier: Apache-2.0
 * Requests of users to the coordinator of a run over several hosts, which `trireme ctl` writes:
 *
 *     hosts         a row for each host: its name, state, workers, step and epoch, between tabs
 *     evict HOST    the host is asked to leave
 *     scale HOST=N  the host is asked to go on with N workers */
#ifndef LAUNCH_REQUESTS_H
#define LAUNCH_REQUESTS_H

#include "crew/head.h"
#include "launch/coordinator.h"

struct request_texts {
    const char *row[HOSTS_MOST];
    char text[HOSTS_MOST][HOSTS_NAME + 160];
};
/* n: hosts of the run. Fills in code and rows of *answer, which point into *t. */
void request_answer(struct coordinator *c, int n, const char *request, int64_t now,
                    struct request_texts *t, struct host_message *answer);

#endif
