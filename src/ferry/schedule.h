/* SPDX-License-Identifier: Apache-2.0
 * The transfers of a step, from its opening and, in the middle of the step, the hosts' reports. */
#ifndef FERRY_SCHEDULE_H
#define FERRY_SCHEDULE_H

#include "crew/host_messages.h"
#include "ferry/mover.h"
#include "plan/path_choice.h"

struct schedule_hosts {
    int n;
    bool alive[HOSTS_MOST];
    int weight[HOSTS_MOST]; /* of those that are alive one is positive */
};

/* Those of n hosts that are members; joined: also those that join. If none has a weight, all have
 * the same. */
void schedule_take_hosts(int n, const struct host_member *member, bool joined,
                         struct schedule_hosts *out);

/* By which paths sums are made. */
struct schedule_way {
    int path; /* enum path, and 1 more; 0: the fastest over these links */
    struct path_link link; /* bandwidth 0: it is not known, and the exchange is taken */
};

struct schedule {
    struct hosts_opening of; /* its step is 0: there is none */
    struct transfers phase[2];
};

/* Fails if no run of so many hosts with this store opens a step so. */
tri_status schedule_check(const struct view *v, int hosts, const struct hosts_opening *o);
/* Whether the two are the same step, dealt alike. */
bool schedule_is_same(const struct hosts_opening *a, const struct hosts_opening *b);
/* Makes *s unless it is this already. hosts: null if all are alive. way: null: the exchange. In the
 * middle of a step, member has the reports of all hosts; reports of another step say that a host
 * has nothing of this one. Else it is null. */
tri_status schedule_make(const struct view *v, const struct schedule_hosts *hosts,
                         const struct schedule_way *way, const struct hosts_opening *o,
                         const struct host_member *member, struct schedule *s);
void schedule_free(struct schedule *s);
/* What a mover needs; borrowed. */
struct mover_step schedule_step(const struct view *v, const struct schedule *s);

#endif
