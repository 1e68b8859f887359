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
struct eval_queue {
    int64_t batches;
    int values;       /* sums of a batch */
    board_cell *word; /* by batch */
    double *sum;      /* by batch, then value */
    wait_queue *queue;       /* that those wait at who need others' batches; null: nobody waits */
    _Atomic uint64_t *turns; /* grows while this process waits; nullable */
    int owner;        /* this process, in the words */
    uint32_t step;    /* whose parameters are evaluated, from 1 */
    int64_t next;     /* all batches before it have been drawn */
};

size_t eval_queue_bytes(int64_t batches, int values);
/* memory: eval_queue_bytes of zeros, or what other processes have made of them. */
void eval_queue_bind(struct eval_queue *s, void *memory, int64_t batches, int values);
/* From here on it is about this step. */
void eval_queue_begin(struct eval_queue *s, uint64_t step);

/* Whether some may be left to be drawn. */
bool eval_queue_left(struct eval_queue *s);
/* Claims `first`, or else any. -1: there is none. */
int64_t eval_queue_draw(struct eval_queue *s, int64_t first);
/* Of a batch that this process has drawn. Null: it could not be computed. */
void eval_queue_put(const struct eval_queue *s, int64_t batch, const double *sums);
/* Null: they are not there. */
const double *eval_queue_find(const struct eval_queue *s, int64_t batch);
/* Somebody computes it, of this step. */
bool eval_queue_in_flight(const struct eval_queue *s, int64_t batch);

#endif
