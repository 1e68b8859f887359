/* SPDX-License-Identifier: Apache-2.0
 * The state of a run in a checkpoint: describes a run, and restores one. */
#ifndef RUN_STATE_H
#define RUN_STATE_H

#include "checkpoint/checkpoint.h"
#include "run/run.h"

/* Fails if a checkpoint has no room for all scalars, or for a text that a resume compares. */
tri_status state_check(const tri_run *run);
void state_describe(struct checkpoint_state *s, const tri_run *run);
/* The options that may be changed when a run resumes, and that change its results. The number of
 * steps, which is last, matters only if the schedule ends with it. */
void state_options(struct checkpoint_options *out, const tri_run *run);
/* Restores a run from its newest intact checkpoint, and reports what is wrong with newer ones.
 * state->step -1: there is none. */
tri_status state_resume(tri_run *run, struct checkpoint_state *state);

#endif
