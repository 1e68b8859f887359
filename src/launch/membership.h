/* SPDX-License-Identifier: Apache-2.0
 * An agent of a run over several hosts: its connection to the coordinator, and its ferry
 * (launch/member.h decides). */
#ifndef LAUNCH_MEMBERSHIP_H
#define LAUNCH_MEMBERSHIP_H

#include <poll.h>

#include "launch/agent.h"

struct join_options {
    const char *address; /* of the coordinator, "host:port" */
    const char *key;     /* file; "-": standard input; null: */
    uint8_t *secret;     /* LINK_KEY bytes, which are cleared */
    double patience;     /* seconds in which the coordinator may be out of reach; 0: none */
    const char *name;    /* null: that of this machine */
    const char *ports;   /* see launch_ports */
};

/* Joins a run, takes part in it to its end, and returns the exit code. Failures have been
 * reported. */
int membership_join(const struct join_options *o);

/* ---- for the agent ---- */

struct agent;
const char *membership_name(const struct membership *s);
uint64_t membership_run(const struct membership *s); /* the number of the run */
/* Tells the sizes of the store what hosts there are; then the store's head who they are. */
void membership_size(const struct membership *s, const struct launch *l, struct crew_size *size);
void membership_attach(struct membership *s, struct agent *a);
#define MEMBERSHIP_FDS 3
void membership_poll(const struct membership *s, struct pollfd to[MEMBERSHIP_FDS]);
/* Does what there is to do. */
void membership_turn(struct membership *s);
/* Whether the agent must wait for others, though its workers have ended. */
bool membership_waits(struct membership *s);
/* Whether this host has ended the run for all, as its teller. */
bool membership_told_end(const struct membership *s);
/* The agent makes the store anew, and has killed the workers: nobody has it now. */
void membership_forgets(struct membership *s);
/* The host was cut off, and joins the run again after this agent's run. */
bool membership_joins_again(const struct membership *s);
/* The host leaves the run at the end of a step. */
void membership_leave(struct membership *s);
/* The coordinator has gone for good, so this host's code is the run's. */
bool membership_lost(const struct membership *s);
/* The agent's run has ended with this code. */
void membership_ended(struct membership *s, int code);

#endif
