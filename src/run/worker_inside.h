/* SPDX-License-Identifier: Apache-2.0
 * What the files of a worker's step share: worker_step.c opens and ends it, worker_lanes.c computes
 * the lanes, worker_update.c the update. */
#ifndef RUN_WORKER_INSIDE_H
#define RUN_WORKER_INSIDE_H

#include "run/worker.h"

/* No slot was free for a leg when so many legs less one were over (0: there was one). It looks
 * again when another is over, or at this time: deaths release slots too. */
struct busy {
    int over;
    int64_t until;
};

/* What a thread has seen of another track of a pipeline. */
struct seen_track {
    struct turn turn; /* it could take this one, */
    uint64_t progress;
    int64_t since, quiet; /* since then; since when the track's workers make no progress */
};

/* One stage of a step: the lanes of a phase, or the sweeps before or after the lanes. */
struct worker_stage {
    struct worker *c;
    int k;           /* lanes: 0 count, 1 lane. Sweeps: 0 before the lanes, 1 after them */
    int sweep, from; /* tasks of the sweep before `from` are done */
    int left;        /* how many lanes were left when this thread left them to others */
    int64_t until;   /* when it looks again at the lanes that it left to others */
    bool alone;      /* one thread of each worker takes part */
    struct seen_track seen[STAGE_MOST]; /* of a pipeline */
    struct busy busy[2]; /* of claims, and of what it computes again */
    int64_t defers;  /* it leaves sums and tasks to others until then; -1: no; 0: not decided yet */
    struct thread_context *context;
    struct program_step step;
};

/* Attaches the threads of the team, except thread 0, which worker_join has attached. */
void worker_attach(struct worker *c, struct team *team);
int worker_place_threads(const struct worker *c); /* of all places, spares included */

/* Notes what the thread does now, for the agent and crash reports. An operator that is not the
 * activity's first costs two stores. */
void worker_note(struct thread_context *me, enum crew_at at, int lane, int item);
void worker_note_wait(struct thread_context *me, enum crew_for what, int part);
/* The stage has no more work for this thread. Thread 0 may wait for the others of its team, which
 * are watched themselves; it notes at once what it does next. */
void worker_rest(struct thread_context *me);
/* Whether this thread leaves the sums and tasks of a stage to others. It does so if it is much
 * slower than they are, as all would wait for it. It does so only for a while, as the others may
 * have died. */
bool worker_defers(struct worker_stage *s);
/* The team for work of so many pieces, shared by all workers. Null: the calling thread alone, if
 * the workers fill the cores without threads. */
struct team *worker_team(const struct worker *c, int64_t pieces);
/* The step is done or the run has ended: nobody needs this thread's work on the step any more. */
bool worker_over(const struct worker *c);
/* Ends the run for all workers, with a message. The first one counts. If its writer dies, another
 * one may be written. */
void worker_fail(const struct worker *c, const char *text);
void worker_fail_step(const struct worker *c, const char *text); /* "step 7: TEXT" */

/* Audit. note: stores the sums of a bucket's results before it is published, if the lane is to be
 * audited. pending: whether the step waits for audits, asked once all lanes are done; it ends
 * audits that no other worker could make. waits: whether there is an audit that this worker may
 * make. claim: claims one, returns its lane; -1: none. compare: compares the auditor's results with
 * the sums; with the last bucket the audit is done. drop: releases the claim. */
void worker_audit_note(struct worker *c, const struct tree_lane *l, int bucket);
bool worker_audit_pending(const struct worker *c);
bool worker_audit_waits(const struct worker *c);
int worker_audit_claim(struct worker *c, int thread, int *leg);
void worker_audit_compare(struct worker *c, const struct tree_lane *l, int bucket);
void worker_audit_drop(struct worker *c, const struct tree_lane *l);

/* Whether another worker's evaluation has batches that this one may compute; computes one. */
bool worker_evaluation_waits(struct worker *c);
void worker_evaluation_help(struct worker *c, tri_run *run);

/* Several hosts (worker_hosts.c). may_open: the step before is over on all hosts, and somebody has
 * decided how the next one is opened, or this worker does. is_offered: somebody has. offer and
 * take_offer deal the lanes. agree: says what all hosts must have alike. waits_for_hosts: nothing
 * is left for this host to compute of the stage. */
bool worker_has_hosts(const struct worker *c);
bool worker_has_lease(const struct worker *c);
enum file_place worker_writes_files(const struct worker *c);
void worker_wait_for_lease(struct worker *c, struct thread_context *me);
bool worker_waits_for_hosts(const struct worker_stage *s);
bool worker_is_dealt(const struct worker *c, int lane); /* the lane to this host, in this step */
bool worker_may_open(const struct worker *c);
/* Just before the step is opened. False: it must not be, for now. none: no step is being opened,
 * whatever a reporter that has died has begun. */
bool worker_enters(struct worker *c, uint64_t step);
void worker_enters_none(struct worker *c);
bool worker_is_offered(const struct worker *c, uint64_t step);
void worker_offer(struct worker *c, const struct machine *m, uint64_t step);
void worker_take_offer(struct worker *c, const tri_run *run, uint64_t step);
void worker_agree(struct worker *c, tri_run *run);
struct run_ranks worker_ranks(const struct worker *c);
/* Whether other hosts of the run see this host's directory of the run, too. */
bool worker_shares_directory(const struct worker *c);
/* With several hosts: what this one has sent to others so far, and waited for them. */
void worker_count_hosts(const struct worker *c, struct record *r);
/* Refuses what a run over several hosts cannot have. */
tri_status worker_check_hosts(const struct worker *c, const tri_run *run);
struct sha256;
tri_status worker_add_plan(struct sha256 *h, const tri_run *run);

/* A profile (worker_profile.c). open: the reporter is about to open a step. step: a worker is about
 * to compute its part of one. end: the reporter, after a step. */
void worker_profile_end(struct worker *c, uint64_t committed);
void worker_profile_open(struct worker *c, tri_run *run, uint64_t step);
void worker_profile_step(struct worker *c, uint64_t step);

/* Crash reports, see executor.h. */
struct crash_scene;
void worker_crash_open(struct worker *c);
void worker_crash_close(struct worker *c);
void worker_look(const tri_run *run, struct crash_scene *s);
void worker_crashed(const tri_run *run, struct crash_scene *s, int sig, const siginfo_t *info,
                    int to[2]);
void worker_traced(const tri_run *run, int sig);

/* Whether no thread of any worker still writes to the rows that the next step uses. Takes a struct
 * worker. */
bool worker_rows_are_free(void *worker);

/* Fetches the samples of a lane, and binds n programs to them. */
bool worker_fetch_lane(struct worker *c, struct thread_context *me, struct program *const *p, int n,
                       int lane, struct tri_fault *fault);
/* Keeps the fault of the lowest lane. */
void worker_keep_fault(const struct worker *c, struct crew_thread *t, int lane,
                       struct tri_fault *fault);
/* Whether all lanes are done and audited. *leg: of the lane that failed. */
bool worker_lanes_ended(const struct worker_stage *s, int *failed, int *leg);

/* Legs of a pipeline. claim: as machine_claim_leg; a leg of another track only if its workers are
 * dead or late. ready: whether one could be claimed. slow: a lane and leg that another thread is
 * slow with, or -1. */
bool worker_has_legs(const struct worker_stage *s);
int worker_claim_leg(struct worker_stage *s, int *leg);
bool worker_leg_is_ready(struct worker_stage *s);
int worker_slow_leg(const struct worker_stage *s, int *leg);
/* Whether a thread computes it again already; see crew_thread.again. */
bool worker_is_repeated(const struct worker *c, int again);
/* No slot was free when so many legs were over. lacks: none has been freed since. */
void worker_note_busy(struct worker_stage *s, bool again, int over);
bool worker_lacks_slots(const struct worker_stage *s);
/* The leg's number in a step of the usual shape: a smaller step may be cut into fewer legs. */
int worker_leg(const struct worker *c, int leg);
void worker_learn_leg(const struct worker *c, int leg, int64_t took); /* nanoseconds */

/* Replicas. Whether this worker claims lanes: it is its group's captain, or each worker computes
 * alone. */
bool worker_leads(struct worker_stage *s);
/* A captain that has lost its rank, as it is to leave the run: others shall claim lanes. */
bool worker_resigns(const struct worker *c);
/* For others: works on an order of the captain, once there is one. False: the stage is over. */
bool worker_follow(struct worker_stage *s);
/* The captain computes a lane that it has begun, together with its group. */
bool worker_compute_together(struct worker *c, struct thread_context *me, struct tree_lane *l,
                             const struct program_step *step);
/* At the end of a stage; before the process leaves the run. */
void worker_leave_group(struct worker *c);
void worker_settle_group(struct worker *c);

/* Both take a struct worker_stage, and return when the stage has no more work for anybody. */
void worker_run_lanes(void *stage, int thread);
void worker_run_sweeps(void *stage, int thread);

#endif
