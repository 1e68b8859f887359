/* SPDX-License-Identifier: Apache-2.0
 * A run: the compiled phases of a step, the store, the data, and where the run stands. */
#ifndef RUN_RUN_H
#define RUN_RUN_H

#include <signal.h>

#include "data/sampler.h"
#include "run/crash.h"
#include "crew/head.h"
#include "run/policy.h"
#include "run/checkpointer.h"
#include "run/loader.h"
#include "run/record.h"
#include "machine/machine.h"
#include "observe/events.h"
#include "train/train.h"

struct evaluation; /* see evaluate.c */
struct eval_queue;      /* see share.h */
struct worker;       /* see crew.h */
struct crew_shown; /* see crew_shared.h */
struct crew_shape;

struct tri_run {
    tri_status status;
    char *message; /* of the first failure */
    tri_graph *model;
    tri_options options; /* of its texts those are kept that are needed later */
    char *kept[12];
    const struct dev *dev;
    struct team *team;
    struct schedule schedule;
    struct store store;
    struct machine executable[CREW_MOST_SHAPES]; /* steps are of one of these: the first of most */
    int n_executables;
    tri_graph *written; /* the network before anything was added to it, if there may be another shape; else null */
    int shape_class[CREW_MOST_SHAPES]; /* of lengths, see sampler.h */
    tri_graph *shape_model[CREW_MOST_SHAPES]; /* what they are made from, but the first */
    struct machine *machine; /* of the step that is done, or was last */
    tri_data *data; /* null: there are no inputs, or the program feeds them */
    bool fed;       /* the program feeds each batch (tri_feed); then one room holds it */
    struct sampler sampler; /* the loader's, once that is made */
    struct loader loader;
    int64_t done, total;
    double rate; /* the learning rate of the last step */
    double set_rate; /* that the program has set in place of the schedule's; NaN: none */
    int skips;   /* updates that the loss scale has skipped in succession, up to the last step's */
    bool not_finite; /* it has been told; with several workers see struct crew_shown */
    const volatile sig_atomic_t *_Atomic asked; /* a loop's flag that it is asked to end; or null */
    _Atomic int64_t asked_since; /* as seen by whoever waits for samples: nanoseconds; 0: not yet */
    atomic_bool gave_up; /* samples did not come, and were waited for no more */
    bool holds_pipes; /* see base/pipes.h */
    bool unread;  /* it ends since nobody reads stdout or stderr any more */
    bool stopped; /* it ends before all steps are done, as it was asked to, or by max_time */
    struct run_scalar *lr, *number; /* what the step itself sets; null: the network has none */
    int64_t epoch;
    struct tri_fault fault;
    struct record record;
    struct evaluation *evaluation;
    struct worker *worker; /* null: no others take part */
    struct crash crash;
    struct events *events; /* null: nobody asks, or they are told by the agent */
    struct checkpointer checkpointer;
    struct policy policy;
};

/* As tri_open, but only planned: nothing is allocated, and it cannot run. Null with a message. */
tri_run *run_plan(tri_graph *g, const tri_options *o);
/* The same as one of several workers. */
tri_run *run_plan_workers(tri_graph *g, const tri_options *o, const struct crew_shape *shape);
/* Opens the data of a run that is only planned, so that what it holds counts, too; without any it does nothing. */
tri_status run_plan_data(tri_run *run);
void run_free(tri_run *run);

/* Whether a signal, or somebody from outside, has asked for the end of the run. */
bool run_is_asked_to_end(const tri_run *run);
/* Whether max_time is over. */
bool run_is_late(const tri_run *run);
/* Whether the store is as the last step that is done has left it, also if the one behind it has failed. */
bool run_is_whole(const tri_run *run);
/* Whether what this process writes to parameters counts. */
bool run_writes(const tri_run *run);

/* What the run is at, in case it crashes or stalls; part: of the list of callbacks, or -1. */
void run_at(tri_run *run, enum worker_at at, int part);
/* Reads the data of the next step. */
tri_status run_fetch(tri_run *run);
/* Whether what this process feeds, or would, is the next step's. Of several workers the reporter's is, once it has
 * returned from the latest step: then no step is open, and none is opened but by this process. */
bool run_feeds(const tri_run *run);
/* Sets the scalars that are the run's own, "lr" and "step", for a step. */
void run_set_scalars(tri_run *run, int64_t step);

/* Remembers the first failure, from tri_message(); returns the run's status. */
tri_status run_fail(tri_run *run, tri_status status);

/* Matches the fields of the data to the inputs; once before its samples are read. */
tri_status feed_match(struct machine *m, const tri_data *data);
/* Reads sample `index` into its row of every input, checks it. */
tri_status feed_row(const struct machine *m, tri_data *data, const struct feed_place *to, int64_t index,
                    int64_t epoch, uint64_t seed);
void feed_commit(struct machine *m); /* what was written becomes visible to the device */
/* Opens a run that the program feeds: refuses what does not go with it. */
tri_status feed_open(tri_run *run);
/* The batch that has been fed becomes that of the step: checks that it is complete, and its values. */
tri_status feed_take(tri_run *run, int64_t step);

/* Compiles what evaluations of such data need; then its memory is known. Takes it, once the run has its own. */
tri_status evaluation_plan(tri_run *run, const tri_data *data);
tri_status evaluation_settle(tri_run *run);
/* Whether evaluations, once planned, have this result. */
bool evaluation_has(const tri_run *run, const char *name);
/* The last of all that have been planned, to which the others lend. */
const struct machine *evaluation_machine(const tri_run *run);
/* Those of a data set that tri_evaluate computes one after the other. */
int64_t evaluation_batches(const tri_run *run, const tri_data *data);
/* Computes a batch that nobody has drawn, for whoever adds up. *drawn: there was one. A batch has as many values as
 * the evaluation's machine has outputs. */
tri_status evaluation_draw(tri_run *run, tri_data *data, struct eval_queue *queue, bool *drawn);
/* As tri_evaluate, but sums that are in the share (or null) are taken from there. */
tri_status evaluation_run(tri_run *run, tri_data *data, struct eval_queue *queue);
void evaluation_free(struct evaluation *e);

/* For progress lines and the like. */
/* The loop is over: whether this worker does what comes after it. */
bool run_finish(tri_run *run);
bool run_reports(const tri_run *run);
/* Whether what is shown and called back of the step just done is this process's. */
bool run_tells(const tri_run *run);
struct crew_shown *run_shown(tri_run *run); /* null: no other can have shown anything */
/* The last line for stdout. True: somebody else prints it, when the run has been closed well. */
bool run_hand_over(tri_run *run, const char *line);
int run_output_count(const tri_run *run);
const char *run_output_name(const tri_run *run, int i);
bool run_output_is_scalar(const tri_run *run, int i);
bool run_epoch_ended(const tri_run *run); /* the step just done is the last of its epoch */
int64_t run_lanes(const tri_run *run);
int64_t run_batch(const tri_run *run);
int run_threads(const tri_run *run);
int64_t run_parameter_elements(const tri_run *run);
void run_device_text(const tri_run *run, char *text, size_t bytes);
double run_lr(const tri_run *run);

#endif
