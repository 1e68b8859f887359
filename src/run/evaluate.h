/* SPDX-License-Identifier: Apache-2.0
 * Evaluations: the means of all scalar outputs over a data set. */
#ifndef RUN_EVALUATE_H
#define RUN_EVALUATE_H

#include "crew/eval_queue.h"
#include "run/run.h"

/* Compiles what evaluations of this data need, so that their memory is known; then takes that memory,
 * once the run has its own. */
tri_status evaluation_plan(tri_run *run, const tri_data *data);
tri_status evaluation_settle(tri_run *run);
/* Whether planned evaluations have this result. */
bool evaluation_has(const tri_run *run, const char *name);
/* The last executable that has been planned, to which all others lend. */
const struct machine *evaluation_machine(const tri_run *run);
/* The batches that tri_evaluate computes of a data set. */
int64_t evaluation_batches(const tri_run *run, const tri_data *data);
/* Computes a batch that nobody has taken, for the process that adds up. *drawn: there was one. A
 * batch has as many values as the evaluation's executable has outputs. */
tri_status evaluation_draw(tri_run *run, tri_data *data, struct eval_queue *queue, bool *drawn);
/* As tri_evaluate, but takes what the queue (or null) has already. */
tri_status evaluation_run(tri_run *run, tri_data *data, struct eval_queue *queue);
void evaluation_free(struct evaluation *e);

#endif
