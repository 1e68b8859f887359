/* SPDX-License-Identifier: Apache-2.0
 * A group: workers that compute one lane of a mesh together, as the members of a replica
 * (machine/replica.h). Its first worker becomes the captain: it claims a lane, deals the members'
 * roles to the workers that are there, and gives an order. The others follow it.
 *
 * All who work on an order share the group's arena, and write to the slots that the captain has
 * taken. So nothing of an order may be used again while one of them is still at work on it:
 *
 *   1. A worker says that it is at work (`busy`), then checks that the order still stands.
 *   2. An order ends when it is done or given up. Then nobody begins on it any more.
 *   3. Before the captain releases slots or gives another order, it waits until no other worker is
 *      busy. If the captain dies, the agent waits for that, then frees what it has claimed.
 *
 * A worker is no longer there once the stage is over, or it is dead: the agent then gives up the
 * order in which it has a role. */
#ifndef CREW_GROUP_H
#define CREW_GROUP_H

#include <stddef.h>

#include "base/wait.h"

/* What a worker says about itself; the agent clears both after its death. */
struct group_place {
    _Alignas(64) _Atomic uint64_t there; /* group_stage of the stage that it takes part in, or 0 */
    atomic_int busy;                     /* 1 + the group whose order it is at work on, or 0 */
};

/* What is to be computed. */
struct group_task {
    uint64_t stage;
    int lane, leg, slot; /* slot: of the leg's last bucket */
    uint64_t base;  /* of the words, see struct replica_run; group_order sets it */
};

/* The words of a group, in the store. After it: by executor, its word; by bucket, its slot. */
struct crew_group {
    _Alignas(64) wait_queue queue; /* of threads that wait for words: of these, and `given_up` */
    atomic_int captain;            /* 1 + its place; 0: none */
    _Atomic uint64_t given;        /* orders so far */
    _Atomic uint64_t order;        /* the number of the open order; 0: there is none */
    _Atomic uint64_t given_up;     /* orders up to this number must not be worked on */
    _Atomic uint64_t stage, base;  /* this and below: of the order */
    atomic_int lane, leg, slot;
    int roles, executors;
    atomic_int role[]; /* the place of the worker that has it */
};

/* A group as a process sees it. */
struct group {
    struct crew_group *shared;
    int number;
    wait_queue *event;         /* of the run: woken by every change but those of words */
    struct group_place *place; /* of all workers */
    int places;
};

size_t group_bytes(int roles, int executors, int buckets);
_Atomic uint64_t *group_words(struct crew_group *g);
atomic_int *group_slots(struct crew_group *g);

/* n workers are divided into groups of up to `seats`; the group of the worker of this rank. */
int group_count(int n, int seats);
int group_of(int rank, int n, int seats);

/* What workers compute, by rank, while all of them are there. */
struct group_plan {
    int ranks, most; /* workers now, and at most */
    int seats;       /* of the mesh; 0: none */
    int stages, tracks, claimers; /* of a pipeline; stages 0: none; claimers: threads of a worker */
};
/* The seats of the mesh from `first` to `last`, of the lanes of a replica. */
struct crew_seats {
    int replica, first, last;
};
/* False: it has none. */
bool group_seats(const struct group_plan *p, int rank, struct crew_seats *out);
/* The stages that it serves, "0,2": all of them if it is the only one, else one or every few. */
#define GROUP_STAGES 24
void group_stages(const struct group_plan *p, int rank, char text[GROUP_STAGES]);

/* A stage of a step, in which the workers of this group take part. */
static inline uint64_t group_stage(uint64_t step, int group) {
    return step << 16 | (uint64_t)(group + 1);
}

/* Becomes the captain if there is none. */
bool group_lead(struct group *g, int me);
/* The captain, without an open order: is it no longer. */
void group_resign(struct group *g, int me);
/* Whether no worker but this one is busy. */
bool group_quiet(const struct group *g, int me);
/* The captain, when all is quiet: gives an order, and is busy with it. who: the workers that get
 * roles, itself first; at most as many as there are roles. Returns the order's number. */
uint64_t group_order(struct group *g, int me, const int *who, int n, struct group_task *task);
/* The captain: the order is done or given up; it is busy no longer. Others may be. */
void group_close(struct group *g, int me);
/* Whether the order may still be worked on; to be asked again and again. */
bool group_stands(const struct group *g, uint64_t order);
void group_give_up(struct group *g, uint64_t order);
/* The open order of this stage, if it stands and this worker has a role in it; else 0. */
uint64_t group_find(const struct group *g, int me, uint64_t stage);
/* Begins on an order that was found. False: it is over. */
bool group_begin(struct group *g, int me, uint64_t order, struct group_task *task);
/* This worker does nothing more for the order. */
void group_end(struct group *g, int me);

/* The agent, for each group: a worker is dead, and group_clear has been called. True: it was the
 * captain; when all is quiet, what it claimed may be freed, then group_forget is to be called. */
bool group_died(struct group *g, int dead);
void group_forget(struct group *g, int dead);
void group_clear(struct group_place *dead);

#endif
