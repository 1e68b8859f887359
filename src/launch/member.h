/* SPDX-License-Identifier: Apache-2.0
 * What an agent does as a member of a run over several hosts: it stands between the coordinator
 * (launch/coordinator.h), the host's ferry and the head of its store (crew/hosts.h), of which it
 * writes what is the agent's. It knows no sockets, processes or clock.
 *
 *   1. HELLO is sent at once. After `welcome` the caller makes the store and calls member_attach;
 *      then starts a ferry and calls member_ferry_started.
 *   2. A ferry that dies is replaced by another, after what it held is free (launch/recover.h).
 *      The coordinator then begins an epoch.
 *   3. A lease is renewed only by the coordinator. When its connection ends, there is none.
 *   4. A host that the coordinator has evicted, or does not hear any more, is *cut*: it holds. If
 *      another connection can be made, the caller ends this member and begins another one, which
 *      joins the run; else `lost` follows. */
#ifndef LAUNCH_MEMBER_H
#define LAUNCH_MEMBER_H

#include "crew/host_messages.h"

#define MEMBER_BEAT 100000000 /* nanoseconds from one to the next */
#define MEMBER_PING 1000000000 /* the same of the ferry */
#define MEMBER_PATIENCE 10    /* leases after the last one */

struct member_options {
    const char *name, *version;
    int pid;
    const uint8_t *key;  /* of the ferries' link, HOST_BYTES */
    const char *address; /* for the ferry to listen at, see struct link_options */
    int port[2];
    void *user;
    /* They must not call the member, but for `welcome` member_attach. */
    void (*to_coordinator)(void *user, const struct host_message *m);
    void (*to_ferry)(void *user, const struct host_message *m);
    void (*welcome)(void *user, const struct host_message *m);
    void (*wake)(void *user); /* crew_notify */
    void (*steer)(void *user, const struct host_message *m); /* ASK, DONE, ANSWER, SCALE */
    /* An epoch has begun in which that host takes part again, or does not any more. */
    void (*changed)(void *user, int host, const struct host_message *epoch);
    void (*fail)(void *user, const char *text);          /* the run, as its teller */
    void (*end)(void *user, int code, const char *text); /* at once; the last call */
    void (*lost)(void *user, const char *text); /* save, and end; the last call */
    void (*stuck)(void *user); /* the ferry does not answer, or not as it should: kill it */
    void (*told)(void *user, const char *line); /* by the ferry, for the log */
};

struct member;
tri_status member_open(const struct member_options *o, int64_t now, struct member **m);
void member_close(struct member *m); /* nullable */

/* Writes what the agent writes at the start. hosts: of the store's head, all zeros. */
void member_attach(struct member *m, struct crew_hosts *hosts);
void member_ferry_started(struct member *m, const struct host_wire *wire, int64_t now);
void member_ferry_died(struct member *m); /* nothing of it follows */

void member_from_coordinator(struct member *m, const struct host_message *message, int64_t now);
void member_from_ferry(struct member *m, const struct host_message *message);
void member_coordinator_ended(struct member *m, const char *why);
/* At least ten times a second. opened: the latest step that this host has opened. */
void member_tick(struct member *m, uint64_t opened, int64_t now);
bool member_is_cut(const struct member *m, int64_t now);

/* Of the host's own run: */
/* hosts: `agrees` is set. bytes: of the state. resumed: the step of its checkpoint; 0: none. */
void member_ready(struct member *m, int64_t bytes, int weight, uint64_t resumed);
void member_failed(struct member *m, const char *text); /* the teller's `fail` follows */
void member_closed(struct member *m, int code, const char *text);
void member_workers(struct member *m, int workers); /* that are ready */
/* Of the host's users: ASK, DONE, REQUEST. */
void member_pass(struct member *m, const struct host_message *message);
void member_leave(struct member *m); /* `end` follows, when its last step is over */

#endif
