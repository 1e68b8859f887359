/* SPDX-License-Identifier: Apache-2.0
 * Probes on the hosts of a run that has not begun, as seen by the process that asks them. Questions
 * and answers go through ssh, so no firewall between the hosts can hide an answer. */
#ifndef LAUNCH_PROBES_H
#define LAUNCH_PROBES_H

#include <jansson.h>

#include "launch/host_list.h"
#include "launch/links.h"
#include "launch/starter.h"
#include "plan/transfer.h"

struct probe_host {
    const char *name;
    /* It is asked nothing any more, for this reason; "": it takes part. What has come last that was
     * no answer, and its exit code; -1: it has not exited. */
    char why[300], said[200];
    int code;
    json_t *about, *sees; /* its answers to `describe` and `look`; null: none */
    double ahead;         /* seconds of its clock before this one's, */
    int64_t fastest;      /* by the answer that has taken the fewest nanoseconds */
    /* From here on null or "" until probes_connect. */
    char to[80];      /* the coordinator's address, for this host */
    char address[80]; /* where it listens, as a ferry does; "": nowhere, perhaps because of */
    char trouble[300];
    json_t *reach[HOSTS_MOST + 1]; /* its answers to `reach`, of each host, and the coordinator */

    pid_t pid; /* 0: it has ended */
    int in, out;
    bool asked;
    int64_t asked_at;
    struct text got;
    json_t *answer;
};

struct probes {
    const struct launch *launch;
    struct host_list list;
    struct probe_host host[HOSTS_MOST];
    int n, port[2];
    int64_t most; /* bytes of a message; what is less than links need counts as that */
    char nonce[33];
    struct starter starter;
    struct control *control; /* listens as a coordinator does */
    int signals;
    sigset_t mask;
    bool interrupted;
};

#define PROBES_PATIENCE 20.0 /* seconds for an answer, beside the time that it needs */

/* Starts a probe on each host and asks what it is; if the launch has `out`, also about that. Fails
 * if an option is wrong, and if it is interrupted. probes_close follows, whatever fails. */
tri_status probes_open(const struct launch *l, struct probes *p);
/* Ends them all, and leaves no process. */
void probes_close(struct probes *p);
/* Lets each reach the coordinator, and then all others. Fails if this machine cannot listen, and if
 * it is interrupted. */
tri_status probes_connect(struct probes *p);
/* Whether the two have a session, so that it can be measured. */
bool probes_joined(const struct probes *p, int a, int b);
/* From one host to another, for so many seconds. Fails with the reason. */
tri_status probes_measure(struct probes *p, int from, int to, double seconds,
                          struct link_speed *out);

struct probes_sums {
    enum path path; /* that so many hosts allow */
    int64_t bytes;
    int n;          /* how many are timed, at most PROBE_MOST_SUMS */
    double seconds; /* that all of them may take */
};
struct sum_speed {
    double seconds; /* of a sum, the median; of the slowest host */
    double bytes;   /* sent or received for one, whichever is more; of the busiest host */
    double cpu;     /* seconds of processor time of all hosts, per GB that is sent */
};
/* Sums of numbers that all hosts have, over all hosts. Fails if one is wrong. After a host has
 * failed no further sum can follow. */
tri_status probes_sum(struct probes *p, const struct probes_sums *of, struct sum_speed *out);

#endif
