/* SPDX-License-Identifier: Apache-2.0
 * Tables of a profile, as CSV with a line of names. Times are in seconds.
 *
 *     ops.csv     what was computed, by kind of operator and then by instance, longest first.
 *                 calls: how often; what several threads computed together counts once. seconds:
 *                 of all threads; share: of those of all operators; roofline: the time that
 *                 arithmetic and memory allow, as a share of the time taken
 *     steps.csv   per step and worker, what its computing threads spent their time on (spent_rows).
 *                 seconds: from the opening of the step to that of the next one. Times `threads` it
 *                 is the sum of the kinds, but for what was not recorded
 *     comm.csv    moves, sums and transfers. bytes: of a move, those that it brings to others, once
 *                 for all of its items; of a sum, those that it touches; of a transfer, those on
 *                 the link, and `whole` those that they were in memory. exposed: of their
 *                 seconds, those in which no thread of the worker, or for a transfer of the host,
 *                 computed. waited: of the waits for this item, of all threads; most: the worker
 *                 that waited longest
 *     buckets.csv buckets of gradients, means over the steps, seconds from the step's opening.
 *                 first: its first sum or transfer begins; ready: the last one that sends it
 *                 begins, or if nothing is sent its last sum; crossed: all have ended. sums, sends:
 *                 what these take; bytes: of a sum, on the link
 *     memory.csv  at each operator of a worker's first thread in its first step, planned bytes: of
 *                 its arena, live, and of the rest of the run's memory; measured: what the worker
 *                 had taken by then, at most, with all that is shared */
#ifndef PROFILE_TABLES_H
#define PROFILE_TABLES_H

#include "profile/out.h"
#include "profile/read.h"

/* With its study. */
tri_status tables_write(const struct profile *p, const char *folder);
/* One of them, "ops"; adds nothing if there is none of that name. */
tri_status tables_text(const struct profile *p, const char *name, struct text *out);

/* What the computing threads of a worker spent their time on: h->n_steps * SPENTS times in
 * nanoseconds, to be freed; null: no memory. */
int64_t *tables_spent(const struct profile *p, int host, int place);
/* How many threads of the worker compute. */
int tables_threads(const struct profile *p, int host, int place);

/* What an item has taken, of all threads, and what they have waited for it. */
struct tables_item {
    int64_t calls, ns, waited;
    double whole, wire; /* of a transfer: calls, but a chunk counts as its part of the whole; and
                         * wire, as what it takes of the most */
};
/* By host and item: tables_number numbers them through. To be freed; null: no memory. */
struct tables_item *tables_items(const struct profile *p);
size_t tables_number(const struct profile *p, int host, int item);

enum tables_comm { COMM_NONE, COMM_MOVE, COMM_SUM, COMM_TRANSFER };
/* Of an item: a move, a sum of what lanes made (its phase is "sum"), or a transfer. */
enum tables_comm tables_comm_of(const struct profile_item *item);

/* The seconds of one thread that an item takes at the rate of arithmetic or that of memory,
 * whichever is longer; 0: not known. */
double tables_ideal(const struct profile_host *h, const struct profile_item *item);

/* comm.csv, buckets.csv */
tri_status comm_write(const struct profile *p, const struct tables_item *items, struct out *o);
tri_status buckets_write(const struct profile *p, const struct tables_item *items, struct out *o);

#endif
