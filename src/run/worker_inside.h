/* SPDX-License-Identifier: Apache-2.0
 * What the files of a worker's step share: crew_step.c opens and ends it, crew_lanes.c has the lanes,
 * crew_update.c the update. */
#ifndef RUN_WORKER_INSIDE_H
#define RUN_WORKER_INSIDE_H

#include "run/worker.h"

/* One stage of the step that the worker is at: the lanes of a phase, or the sweeps. */
struct crew_stage {
    struct crew *c;
    int k;           /* 0: count, 1: lane; of sweeps: before the lanes, behind them */
    int sweep, from; /* up to which task it has been found done */
    int left;        /* lanes there were when they were left to others */
    int64_t until;   /* a lane that was left to others is looked at again then */
    bool alone;      /* of each worker one hand takes part */
    int64_t leaves;  /* sums and tasks are left to others until then; -1: they are not; 0: not asked yet */
    struct crew_oar *oar;
    struct program_step step;
};

/* What the hand is at; for whoever watches. */
void crew_note(struct crew_oar *o, enum crew_at at, int lane, int item);
/* The stage has no more work for this hand. The first may wait for the others of its team, which
 * are watched themselves; then it goes on to something else at once. */
void crew_rest(struct crew_oar *o);
/* Whether this hand leaves sums and tasks of a stage to others, as it is much slower than they: all would wait for
 * it, who could have done without. For a while: the others may have died. */
bool crew_leaves(struct crew_stage *s);
/* The threads that share a piece of work, of which there are so many for all workers; null: the
 * calling thread alone, as the workers by themselves fill the cores, and threads would only wait
 * for each other. */
struct team *crew_team(const struct crew *c, int64_t pieces);
/* Adds the time since then. */
void crew_spend(_Atomic int64_t *sum, int64_t since);
/* The step is done, or the run has ended: nothing of this hand's is wanted any more. */
bool crew_over(const struct crew *c);
/* Ends the run for all, with a message. The first one counts; if who writes it dies, another does. */
void crew_fail(const struct crew *c, const char *text);
void crew_fail_step(const struct crew *c, const char *text); /* "step 7: TEXT" */

/* Audit. What a lane has yielded is noted before it is published, if it is to be audited; whether the step waits for
 * audits (asked once all lanes are there: those that nobody is there for are over then); whether there is one that this
 * worker may do; which it does: -1, none. Compared with what the other has noted; or given up. */
void crew_audit_note(struct crew *c, int lane, const struct program *p, int hand);
bool crew_audit_pending(const struct crew *c);
bool crew_audit_waits(const struct crew *c);
int crew_audit_draw(struct crew *c, int hand);
void crew_audit_compare(struct crew *c, int lane, const struct program *p, int hand);
void crew_audit_drop(struct crew *c, int lane);

/* Whether there are batches of another's evaluation that this worker may compute; computes one. */
bool crew_evaluation_waits(struct crew *c);
void crew_evaluation_help(struct crew *c, tri_run *run);

/* Takes the crew: whether nobody writes into what the next step will write. */
bool crew_rows_are_free(void *crew);

/* Both take a struct crew_stage, and return when there is nothing more to do for anybody. */
void crew_row_lanes(void *stage, int thread);
void crew_row_sweeps(void *stage, int thread);

#endif
