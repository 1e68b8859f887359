/* SPDX-License-Identifier: Apache-2.0
 * The evaluation policy: when a run evaluates while it trains, which evaluation was the best, and
 * when it is time to stop. The reporter decides. Its decisions are in the store, so that a later
 * reporter continues from them. All workers compute batches. */
#ifndef RUN_POLICY_H
#define RUN_POLICY_H

#include "base/base.h"
#include "checkpoint/policy_state.h"

struct policy {
    tri_data *data;   /* null: nothing is evaluated */
    int64_t every;    /* steps; 0: after each epoch */
    char *metric;     /* evaluations are compared by it: "top1:max" */
    char *of;         /* its name alone: "top1" */
    bool most;        /* the largest value is the best */
    bool keeps;       /* the checkpoint of the best evaluation is kept */
    int64_t patience; /* the run ends after so many without a better one; 0: no limit */
    double change;    /* an evaluation is better if the metric changed by more than this */
    struct policy_state is;
    bool here, better; /* the latest step was evaluated; it was the best so far */
    /* Results of the latest evaluation: all scalar outputs, the loss first. */
    const char **name;
    double *value;
    int n;
    /* The step of the latest evaluation if it failed, and why. */
    int64_t failed;
    char error[512];
};

struct checkpoint_state;

/* Opens the data of evaluations and plans what they need, after the run has been planned. */
tri_status policy_open(struct policy *p, tri_run *run);
/* Allocates the memory of evaluations, after that of the run; fails if there is not enough. */
tri_status policy_settle(const struct policy *p, tri_run *run);
/* Continues from a checkpoint's state. */
void policy_resume(struct policy *p, const struct checkpoint_state *s);
/* After a step that this process reports: evaluates if that is due. */
void policy_step(struct policy *p, tri_run *run);
/* After the step that the run resumes from: makes the evaluation that was interrupted when the run
 * was asked to end. */
void policy_catch_up(struct policy *p, tri_run *run);
/* Publishes the evaluation to other workers, so that none repeats it. If it is the best, this
 * follows its checkpoint. */
void policy_publish(const struct policy *p, tri_run *run);
/* The step of the best evaluation, or of the last one if none was due; 0: none. */
int64_t policy_best(const struct policy *p, const tri_run *run, double *value);
/* Whether the run ends, because no evaluation has been better for long. */
bool policy_stops(const struct policy *p);
/* "eval at step 120: loss 0.4711  top1 0.8120  (best)" */
void policy_describe(const struct policy *p, int64_t step, struct text *out);
/* Fails with its message if the last evaluation failed. */
tri_status policy_end(const struct policy *p);
void policy_free(struct policy *p);

#endif
