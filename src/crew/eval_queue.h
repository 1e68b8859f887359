/* SPDX-License-Identifier: Apache-2.0
 * The batches of an evaluation that several processes share. A word for each says who computes it, or that its sums
 * are there: in a place of their own, to be added up in the batches' order, whoever has computed them. Words speak of
 * a step, as those of the board do: what has been left of an earlier one is free, but for what somebody is still at,
 * who will write there. */
#ifndef CREW_EVAL_QUEUE_H
#define CREW_EVAL_QUEUE_H

#include "base/wait.h"
#include "crew/board.h"

/* A process's view of it. */
struct share {
    int64_t batches;
    int values;       /* sums of a batch */
    board_cell *word; /* by batch */
    double *sum;      /* by batch, then value */
    bell *bell;       /* that those wait at who need others' batches; null: nobody waits */
    int owner;        /* this process, in the words */
    uint32_t step;    /* whose parameters are evaluated, from 1 */
    int64_t next;     /* all batches before it have been drawn */
};

size_t share_bytes(int64_t batches, int values);
/* memory: share_bytes of zeros, or what other processes have made of them. */
void share_bind(struct share *s, void *memory, int64_t batches, int values);
/* From here on it is about this step. */
void share_begin(struct share *s, uint64_t step);

/* Whether some may be left to be drawn. */
bool share_left(struct share *s);
/* Claims `first`, or else any. -1: there is none. */
int64_t share_draw(struct share *s, int64_t first);
/* Of a batch that this process has drawn. Null: it could not be computed. */
void share_put(const struct share *s, int64_t batch, const double *sums);
/* Null: they are not there. */
const double *share_find(const struct share *s, int64_t batch);
/* Somebody computes it, of this step. */
bool share_in_flight(const struct share *s, int64_t batch);

#endif
