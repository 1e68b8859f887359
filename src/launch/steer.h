/* SPDX-License-Identifier: Apache-2.0
 * What users ask of a run over several hosts on one of them (crew_asked): the host's agent passes
 * it on to the coordinator, that to the teller's host, and the answer goes to all. `trireme ctl`
 * reads and writes the head alone, as on one host. It knows no sockets. */
#ifndef LAUNCH_STEER_H
#define LAUNCH_STEER_H

#include "crew/head.h"
#include "crew/host_messages.h"

/* What the coordinator knows of the host. All zeros but `head` at the start. */
struct steer {
    struct crew_head *head;
    int teller; /* to which all of this was said; 1 + its number */
    int paused; /* of asked.paused, */
    int64_t paused_at; /* since when */
    bool stop;
    uint32_t saves, answered;         /* of asked.saves; of told.save_answered */
    uint64_t saves_after;             /* steps that were done here at the latest request to save */
    uint32_t requests;
};

/* Passes on what has been asked or done since the last call. To be called often. connected: to
 * the coordinator. */
void steer_turn(struct steer *s, bool connected, int64_t now,
                void (*send)(void *user, const struct host_message *m), void *user);
/* Takes ASK (but HOST_KILL), DONE, ANSWER or SCALE of the coordinator. */
void steer_take(struct steer *s, const struct host_message *m, int64_t now);

#endif
