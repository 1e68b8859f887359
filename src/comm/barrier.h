/* SPDX-License-Identifier: Apache-2.0
 * A barrier for a few ranks, threads or processes, in memory that all of them have mapped. Each
 * rank counts the barriers that it has reached, in a line of its own; it continues when no rank has
 * a lower count. */
#ifndef COMM_BARRIER_H
#define COMM_BARRIER_H

#include <stdalign.h>
#include <stdatomic.h>

#include "base/base.h"
#include "base/wait.h"

#define BARRIER_LINE 128 /* bytes: processors fetch cache lines in pairs */

/* The shared state of one rank. All zero before the first barrier. */
struct barrier_line {
    alignas(BARRIER_LINE) atomic_uint arrived; /* barriers that the rank has reached, modulo 2^32 */
    alignas(BARRIER_LINE) wait_queue queue;    /* apart: its own rank reads it often */
};

/* One rank's view. */
struct barrier {
    struct barrier_line *line; /* one per rank */
    int ranks, rank;
    bool crowded;     /* more ranks than cores: a waiting rank soon sleeps */
    unsigned arrived; /* the same as in its own line */
};

/* Writes of any rank before the barrier are visible to all ranks after it. There is no timeout: if
 * a rank dies, whoever started the ranks must end the others. */
void barrier_wait(struct barrier *b);

#endif
