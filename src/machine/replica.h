/* SPDX-License-Identifier: Apache-2.0
 * A replica: several members, each with the same number of threads, that compute one lane of a mesh
 * together. Each member has its own copy of the lane's program (program_make_member). A thread of a
 * member is an executor. A thread of a process may play several of them. All use one arena.
 *
 * An item is run by the members that carry a seat of its owner; the parts of each of its two rounds
 * are divided over their threads. Every executor goes through all items in the program's order,
 * does its share, and publishes in a word of its own how far it is. Before a share it waits until
 * the words of others have what the share needs: the last writers of what the item reads, the last
 * writers and readers of the addresses that it writes. Needs point backwards, so there is no
 * deadlock: whoever has the first round that is not done can run it. Addresses of the scratch of
 * threads are among those written: each executor of an item has its own.
 *
 * At a stop the captain, thread 0 of member 0, waits until all earlier items are done and calls
 * at_stop. Then the first threads of the other members call theirs. No thread of a member passes
 * the stop before its member's call has returned. The last stop is after all items: nobody uses
 * anything of this run after that. */
#ifndef MACHINE_REPLICA_H
#define MACHINE_REPLICA_H

#include "base/wait.h"
#include "machine/replica_needs.h"

/* What one thread keeps during a run. */
struct replica_thread {
    size_t round;   /* its next one */
    uint64_t *seen; /* by executor: its word, less the base, when last looked at */
};

struct replica {
    struct program *p; /* of this member. Not owned */
    int member, executors;
    size_t begin, end; /* the items that it runs */
    int *rank;         /* by item, from the first: program_rank */
    size_t *stop;      /* the items before which there is a stop, ascending, some repeatedly */
    int n_stops;
    struct replica_needs needs;
    struct replica_thread *thread;
};

#define REPLICA_RUNS (-2) /* it waits for nobody */

/* How a run is done. */
struct replica_run {
    _Atomic uint64_t *word; /* by executor: member * threads + thread */
    uint64_t base;          /* no word is larger; the next run's may be replica_span more */
    wait_queue *queue;      /* of changes of the words */
    enum wait_kind kind;
    _Atomic uint64_t *heartbeat;              /* of a waiting thread; nullable */
    bool (*go_on)(void *user);                /* asked before each share and while waiting */
    /* Before a share of an item, or when it must wait for another executor (-1: not known) */
    void (*note)(void *user, size_t item, int waits_for);
    bool (*at_stop)(void *user, int member, int stop);
    void *user; /* these functions are nullable */
};

/* An executor that the calling thread plays. */
struct replica_part {
    struct replica *replica;
    int thread;
};

/* The range is copied; a stop after its items is added. */
tri_status replica_make(struct program *p, int member, const struct replica_range *range,
                        struct replica *out);
void replica_free(struct replica *r);
uint64_t replica_span(const struct replica *r);

/* Runs the shares of n executors of one replica, on the calling thread. False: a kernel failed on
 * this thread (see step->fault, of this thread alone), or go_on or at_stop returned false. */
bool replica_run(const struct replica_part *part, int n, const struct replica_run *run,
                 const struct program_step *step);

/* The same in single rounds. Goes to the first one; */
void replica_begin(struct replica *r, int thread);
/* whether none is left; */
bool replica_ended(const struct replica *r, int thread);
/* whether all that the next one needs is published; */
bool replica_ready(struct replica *r, int thread, const struct replica_run *run);
/* runs it, and goes to the next. */
bool replica_advance(struct replica *r, int thread, const struct replica_run *run,
                     const struct program_step *step);

#endif
