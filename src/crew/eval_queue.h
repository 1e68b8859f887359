/* SPDX-License-Identifier: Apache-2.0
 * The batches of an evaluation that several processes share. A word for each batch
 * (crew/claim.h) says who computes it, or that its sums are done. The sums have a place per
 * batch, and are added up in the batches' order, whoever computed them. The words speak of the
 * step whose parameters are evaluated; a batch that a late process still computes for an earlier
 * step stays taken, as it will write there. */
#ifndef CREW_EVAL_QUEUE_H
#define CREW_EVAL_QUEUE_H

#include "base/wait.h"
#include "crew/claim.h"

/* A process's view of it. */
struct eval_queue {
    int64_t batches;
    int values;        /* sums of a batch */
    claim_word *word;  /* by batch */
    double *sum;       /* by batch, then value */
    wait_queue *queue; /* where processes wait for others' batches; null: nobody waits */
    _Atomic uint64_t *heartbeat; /* grows while this process waits; nullable */
    int owner;         /* this process, in the words */
    uint32_t step;     /* whose parameters are evaluated, from 1 */
    int64_t next;      /* all batches before it are taken */
};

size_t eval_queue_bytes(int64_t batches, int values);
/* memory: eval_queue_bytes of zeros, or what other processes have made of them. */
void eval_queue_bind(struct eval_queue *s, void *memory, int64_t batches, int values);
/* From here on the queue is about this step. */
void eval_queue_begin(struct eval_queue *s, uint64_t step);

/* Whether a batch may be free. */
bool eval_queue_left(struct eval_queue *s);
/* Claims `first`, else any. -1: none is free. */
int64_t eval_queue_claim(struct eval_queue *s, int64_t first);
/* Publishes the sums of a batch that this process has claimed. Null: it could not be computed. */
void eval_queue_put(const struct eval_queue *s, int64_t batch, const double *sums);
/* Null: they are not published. */
const double *eval_queue_find(const struct eval_queue *s, int64_t batch);
/* A process computes it, for this step. */
bool eval_queue_in_flight(const struct eval_queue *s, int64_t batch);

#endif
