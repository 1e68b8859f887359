/* SPDX-License-Identifier: Apache-2.0
 * A barrier of a few ranks, threads or processes, over memory that all of them have mapped. Each
 * rank counts in a place of its own the barriers that it has come to; it goes on when nobody has
 * counted fewer. Who waits spins briefly, then yields, then sleeps until it is woken. */
#ifndef COMM_BARRIER_H
#define COMM_BARRIER_H

#include <stdalign.h>
#include <stdatomic.h>

#include "base/base.h"
#include "base/wait.h"

#define BARRIER_LINE 128 /* bytes that cores take from one another: lines are fetched in pairs */

/* What the ranks share of one of them. All zero before the first barrier. */
struct barrier_line {
    alignas(BARRIER_LINE) atomic_uint arrived; /* barriers that the rank has reached, modulo 2^32 */
    alignas(BARRIER_LINE) wait_queue queue;    /* apart: its own rank reads it often */
};

/* One rank's view. */
struct barrier {
    struct barrier_line *line; /* of each rank */
    int ranks, rank;
    bool crowded;     /* more ranks than cores: a waiting rank soon sleeps */
    unsigned arrived; /* that of its own line */
};

/* What any rank wrote before is seen by all after it. A rank that never comes is waited for without
 * end: whoever started the ranks ends them. */
void barrier_wait(struct barrier *b);

#endif
