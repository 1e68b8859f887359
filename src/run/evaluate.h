/* SPDX-License-Identifier: Apache-2.0
 * Evaluations: the means of all scalar outputs over a data set. */
#ifndef RUN_EVALUATE_H
#define RUN_EVALUATE_H

#include "crew/eval_queue.h"
#include "run/run.h"

/* plan: compiles what evaluations of this data need, so that their memory is known. settle: takes
 * that memory, after the run has taken its own. */
tri_status evaluation_plan(tri_run *run, const tri_data *data);
tri_status evaluation_settle(tri_run *run);
/* Whether planned evaluations have this result. */
bool evaluation_has(const tri_run *run, const char *name);
/* The executable that was planned last. All others lend it their memory. */
const struct machine *evaluation_machine(const tri_run *run);
/* How many batches tri_evaluate computes of a data set. */
int64_t evaluation_batches(const tri_run *run, const tri_data *data);
/* Claims a batch of the queue and computes it, for the process that adds up. *found: one was left.
 * A batch has one value for each output of the evaluation's executable. */
tri_status evaluation_compute_next(tri_run *run, tri_data *data, struct eval_queue *queue,
                                   bool *found);
/* As tri_evaluate, but uses the batches that are done in the queue (or null). */
tri_status evaluation_run(tri_run *run, tri_data *data, struct eval_queue *queue);
void evaluation_free(struct evaluation *e);

#endif
