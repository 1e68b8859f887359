/* SPDX-License-Identifier: Apache-2.0
 * Decides who is a member of a run over several hosts (crew/hosts.h). It begins the run when all
 * hosts are ready and agree, gives leases, evicts, and begins epochs. It knows no sockets and no
 * clock: connections are numbers of the caller's, from 0, and `now` is base_now.
 *
 *   1. An epoch begins in two rounds: HOLD to all members, a REPORT of each, EPOCH with all reports
 *      to all. Whatever happens meanwhile begins a later one.
 *   2. A host that is no member any more may join again, with HELLO. When it is ready, it is a
 *      member that *joins*: the others send it the state of the epoch's step, so it waits until
 *      there is a step. If it fails before it has the state, the run goes on without it.
 *   3. The teller is the lowest member that has the state, when the run begins and when the last
 *      teller has gone.
 *   4. A host that leaves gets no lanes of steps that are opened from then on. When it has opened
 *      one of these, all hosts have all of the steps before; then END tells it. It is a member
 *      until its connection ends. If no other host stays, the teller is asked to stop instead. */
#ifndef LAUNCH_COORDINATOR_H
#define LAUNCH_COORDINATOR_H

#include "crew/host_messages.h"

struct coordinator_host {
    const char *name;
    int workers; /* handed out as the launch's number "workers", which it lacks, and as the host's
                  * share of the lanes */
};

struct coordinator_options {
    int n;
    const struct coordinator_host *host; /* of different names; borrowed, as are: */
    const char *version;                 /* hosts must have the same */
    uint64_t run;
    const struct host_launch *launch;
    int64_t lease, connect_timeout, start_timeout; /* nanoseconds; since coordinator_open */
    void *user;
    /* They must not call the coordinator. After `close` nothing of the connection may follow; a
     * connection that ends is not closed. */
    void (*send)(void *user, int conn, const struct host_message *m);
    void (*close)(void *user, int conn);
    void (*say)(void *user, const char *line); /* for the user */
};

struct coordinator;
tri_status coordinator_open(const struct coordinator_options *o, int64_t now,
                            struct coordinator **c);
void coordinator_close(struct coordinator *c); /* nullable */

/* May take the content of *m, which the caller frees in any case. */
void coordinator_arrived(struct coordinator *c, int conn, struct host_message *m, int64_t now);
void coordinator_ended(struct coordinator *c, int conn, const char *why, int64_t now);
void coordinator_tick(struct coordinator *c, int64_t now); /* at least ten times a second */
/* Of the user: passes it to the teller; all but HOST_SAVE also to later ones. HOST_PAUSE and
 * HOST_RESUME go to all hosts; HOST_KILL, too, and is the end. */
void coordinator_ask(struct coordinator *c, enum host_ask what, int64_t now);
/* Of the user: the host leaves as if it had asked for it. Fails if it is not a member. */
tri_status coordinator_evict(struct coordinator *c, const char *name, int64_t now);
/* Whether the host takes part, or has left in order. */
bool coordinator_takes_part(const struct coordinator *c, int host);
/* Of the user: that host goes on with so many workers. */
tri_status coordinator_scale(struct coordinator *c, const char *name, int workers);
struct coordinator_view {
    const char *name, *state;
    int workers;
    uint64_t step;
    uint32_t epoch;
};
void coordinator_look(const struct coordinator *c, int host, struct coordinator_view *v);
/* Whether a host has this connection; -1: any. */
bool coordinator_has(const struct coordinator *c, int conn);
/* Whether the run has ended; all hosts have been told. */
bool coordinator_is_over(const struct coordinator *c, int *code);

#endif
