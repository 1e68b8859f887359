/* SPDX-License-Identifier: Apache-2.0
 * Evaluations while a run trains: when they are due, which was the best, and whether it is time to stop. Whoever
 * reports decides, and workers that report after it go on from what it has left in the store; of batches all compute
 * their part. */
#ifndef RUN_POLICY_H
#define RUN_POLICY_H

#include "base/base.h"
#include "checkpoint/judged.h"

struct judge {
    tri_data *data; /* null: nothing is evaluated */
    int64_t every;  /* steps; 0: each epoch */
    char *metric;   /* "top1:max": by which evaluations are compared, */
    char *of;       /* and its name alone */
    bool most;      /* is the best */
    bool keeps;     /* the checkpoint of the best one is wanted */
    int64_t patience; /* evaluations in succession without a better one that end the run; 0: any number */
    double change;  /* by more than which one is better */
    struct judged is;
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
tri_status judge_open(struct judge *j, tri_run *run);
/* Once it has its memory: refuses what there is no memory for besides. */
tri_status judge_settle(const struct judge *j, tri_run *run);
/* The run goes on from there. */
void judge_resume(struct judge *j, const struct checkpoint_state *s);
/* Behind a step that this process tells of: evaluates if that is due. */
void judge_step(struct judge *j, tri_run *run);
/* Behind the step that the run goes on from: makes the evaluation that was broken off when it was asked to end. */
void judge_catch_up(struct judge *j, tri_run *run);
/* Once the checkpoint of a better one is whole: others know of it, and nothing of it is done again. */
void judge_publish(const struct judge *j, tri_run *run);
/* It is time to end, for none has been better for long. */
bool judge_stops(const struct judge *j);
/* "eval at step 120: loss 0.4711  top1 0.8120  (best)" */
void judge_describe(const struct judge *j, int64_t step, struct text *out);
/* The first failure, if the last evaluation failed. */
tri_status judge_end(const struct judge *j);
void judge_free(struct judge *j);

#endif
