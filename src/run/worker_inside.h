/* SPDX-License-Identifier: Apache-2.0
 * What the files of a worker's step share: worker_step.c opens and ends it, crew_lanes.c has the lanes,
 * crew_update.c the update. */
#ifndef RUN_WORKER_INSIDE_H
#define RUN_WORKER_INSIDE_H

#include "run/worker.h"

/* One stage of the step that the worker is at: the lanes of a phase, or the sweeps. */
struct worker_stage {
    struct worker *c;
    int k;           /* 0: count, 1: lane; of sweeps: before the lanes, behind them */
    int sweep, from; /* up to which task it has been found done */
    int left;        /* lanes there were when they were left to others */
    int64_t until;   /* a lane that was left to others is looked at again then */
    bool alone;      /* of each worker one hand takes part */
    int64_t leaves;  /* sums and tasks are left to others until then; -1: they are not; 0: not asked yet */
    struct thread_context *context;
    struct program_step step;
};

/* What the hand is at; for whoever watches. */
void worker_note(struct thread_context *o, enum crew_at at, int lane, int item);
/* The stage has no more work for this hand. The first may wait for the others of its team, which
 * are watched themselves; then it goes on to something else at once. */
void worker_rest(struct thread_context *o);
/* Whether this hand leaves sums and tasks of a stage to others, as it is much slower than they: all would wait for
 * it, who could have done without. For a while: the others may have died. */
bool worker_leaves(struct worker_stage *s);
/* The threads that share a piece of work, of which there are so many for all workers; null: the
 * calling thread alone, as the workers by themselves fill the cores, and threads would only wait
 * for each other. */
struct team *worker_team(const struct worker *c, int64_t pieces);
/* Adds the time since then. */
void worker_spend(_Atomic int64_t *sum, int64_t since);
/* The step is done, or the run has ended: nothing of this hand's is wanted any more. */
bool worker_over(const struct worker *c);
/* Ends the run for all, with a message. The first one counts; if who writes it dies, another does. */
void worker_fail(const struct worker *c, const char *text);
void worker_fail_step(const struct worker *c, const char *text); /* "step 7: TEXT" */

/* Audit. What a lane has yielded is noted before it is published, if it is to be audited; whether the step waits for
 * audits (asked once all lanes are there: those that nobody is there for are over then); whether there is one that this
 * worker may do; which it does: -1, none. Compared with what the other has noted; or given up. */
void worker_audit_note(struct worker *c, int lane, const struct program *p, int thread);
bool worker_audit_pending(const struct worker *c);
bool worker_audit_waits(const struct worker *c);
int worker_audit_draw(struct worker *c, int thread);
void worker_audit_compare(struct worker *c, int lane, const struct program *p, int thread);
void worker_audit_drop(struct worker *c, int lane, int thread);

/* Whether there are batches of another's evaluation that this worker may compute; computes one. */
bool worker_evaluation_waits(struct worker *c);
void worker_evaluation_help(struct worker *c, tri_run *run);

/* Crash reports, see executor.h. */
struct crash_scene;
void worker_crash_open(struct worker *c);
void worker_crash_close(struct worker *c);
void worker_look(const tri_run *run, struct crash_scene *s);
void worker_crashed(const tri_run *run, struct crash_scene *s, int sig, const siginfo_t *info,
                    int to[2]);
void worker_traced(const tri_run *run, int sig);

/* Takes the crew: whether nobody writes into what the next step will write. */
bool worker_rows_are_free(void *crew);

/* Both take a struct worker_stage, and return when there is nothing more to do for anybody. */
void worker_run_lanes(void *stage, int thread);
void worker_run_sweeps(void *stage, int thread);

#endif
