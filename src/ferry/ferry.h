/* SPDX-License-Identifier: Apache-2.0
 * What moves between the hosts of a run (crew/hosts.h), for one of them: the sums of a step, by
 * ferry/mover.h, and two values. The teller's ferry sends a step's opening to all others, once all
 * have all of the step before; so whoever has an opening knows that of all. Each sends to all that
 * it has all of the step. A ferry that has this word of all, and of whose memory the link reads
 * nothing any more, says that the step is over.
 *
 * What belongs to an epoch ends with HOLD: no session lives on. The report tells what the host has
 * of the latest step that it has an opening of, or, if it is the teller, may open. EPOCH has the
 * reports of all, and each host finds alone what the rest of the step is for it:
 *
 *   1. The step is the latest in a report; a host that lacks its opening takes it from there.
 *   2. The step before is over: somebody has had the opening.
 *   3. The operands follow from the opening, and what moves from the reports (plan/transfer.h).
 *
 * A host that joins has no part in the epoch's step. It gets the state that this step leaves, in
 * pieces, which all others send that have done the step; nobody begins the next one meanwhile. Of a
 * step that it lacks it reports nothing; of the one that it has joined in, that it has all.
 *
 * Without a lease of the host nothing is sent and nothing is taken. */
#ifndef FERRY_FERRY_H
#define FERRY_FERRY_H

#include "crew/host_messages.h"
#include "crew/view.h"
#include "ferry/schedule.h"
#include "link/link.h"

typedef tri_status ferry_tell(void *user, const struct host_message *m);

struct ferry_place {
    struct view *view; /* mapped; borrowed */
    const struct link_row *row;
    struct link_options link; /* all but where, user and most */
    bool late;                /* sums are sent when all lanes of the host are done */
    struct schedule_way way;
    ferry_tell *tell;         /* to the agent: REPORT, LOST, TOLD */
    void *user;
};

struct ferry;
tri_status ferry_open(const struct ferry_place *place, struct ferry **f);
void ferry_close(struct ferry *f); /* nullable */
const char *ferry_address(const struct ferry *f);
/* HOLD or EPOCH. */
tri_status ferry_take(struct ferry *f, const struct host_message *m);
/* Does all that can be done without waiting. */
tri_status ferry_work(struct ferry *f);
/* Whether the head has changed so that ferry_work has something to do. From any thread, while no
 * other function runs. */
bool ferry_wants(struct ferry *f);
/* Readable if the link has work; -1: there is no lease. */
int ferry_fd(const struct ferry *f);

/* The process: until the agent closes the socket, which is of SOCK_SEQPACKET and carries host
 * messages: START, HOLD and EPOCH come; ADDRESS, REPORT, LOST and TOLD go. Both descriptors are
 * borrowed. Returns the exit status. */
int ferry_run(int store_fd, int socket_fd);

#endif
