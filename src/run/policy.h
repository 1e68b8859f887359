/* SPDX-License-Identifier: Apache-2.0
 * Evaluations while a run trains: when they are due, which was the best, and whether it is time to stop. Whoever
 * reports decides, and workers that report after it go on from what it has left in the store; of batches all compute
 * their part. */
#ifndef RUN_POLICY_H
#define RUN_POLICY_H

#include "base/base.h"
#include "checkpoint/policy_state.h"

struct policy {
    tri_data *data; /* null: nothing is evaluated */
    int64_t every;  /* steps; 0: each epoch */
    char *metric;   /* "top1:max": by which evaluations are compared, */
    char *of;       /* and its name alone */
    bool most;      /* is the best */
    bool keeps;     /* the checkpoint of the best one is wanted */
    int64_t patience; /* evaluations in succession without a better one that end the run; 0: any number */
    double change;  /* by more than which one is better */
    struct policy_state is;
    bool here, better; /* there was one behind the step just done; it was the best so far */
    /* What the latest has found: all scalar outputs, the loss first. */
    const char **name;
    double *value;
    int n;
    /* The latest: its step if it failed, and why. */
    int64_t failed;
    char error[512];
};

struct checkpoint_state;

/* Once the run has been planned: opens the data of evaluations, and plans what they need. */
tri_status policy_open(struct policy *j, tri_run *run);
/* Once it has its memory: refuses what there is no memory for besides. */
tri_status policy_settle(const struct policy *j, tri_run *run);
/* The run goes on from there. */
void policy_resume(struct policy *j, const struct checkpoint_state *s);
/* Behind a step that this process tells of: evaluates if that is due. */
void policy_step(struct policy *j, tri_run *run);
/* Behind the step that the run goes on from: makes the evaluation that was broken off when it was asked to end. */
void policy_catch_up(struct policy *j, tri_run *run);
/* Once the checkpoint of a better one is whole: others know of it, and nothing of it is done again. */
void policy_publish(const struct policy *j, tri_run *run);
/* It is time to end, for none has been better for long. */
bool policy_stops(const struct policy *j);
/* "eval at step 120: loss 0.4711  top1 0.8120  (best)" */
void policy_describe(const struct policy *j, int64_t step, struct text *out);
/* The first failure, if the last evaluation failed. */
tri_status policy_end(const struct policy *j);
void policy_free(struct policy *j);

#endif
