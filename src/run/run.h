/* SPDX-License-Identifier: Apache-2.0
 * A run: its executables, the store, the data, and the number of steps done. Its parts have headers
 * of their own, which include this one; open.c creates them. */
#ifndef RUN_RUN_H
#define RUN_RUN_H

#include <signal.h>

#include "data/sampler.h"
#include "machine/machine.h"
#include "plan/plan_file.h"
#include "run/own_series.h"
#include "train/train.h"

struct tri_run {
    tri_status status;
    char *message; /* of the first failure */
    tri_graph *model;
    tri_options options; /* texts that are needed later are copied to `kept` */
    struct arena kept;
    char *fit;             /* patterns that --recompute full or fit stands for */
    const char *fit_note;  /* what fit has chosen, for the user; null: nothing */
    const struct plan_file *plan; /* options point to its texts; null: there is no --plan */
    struct plan_file own_plan; /* of this run */
    char *network;             /* as the user wrote it, for checkpoints; else null */
    struct dev *dev;
    struct team *team;
    struct schedule schedule;
    struct store store;
    /* One per shape of a step (executables.h). The first has the usual shape. */
    struct machine executable[CREW_MOST_SHAPES];
    int n_executables;
    tri_graph *written; /* a copy of what the user wrote; null when the run is open */
    bool too_large;     /* refused: it needs more memory than there is */
    int shape_class[CREW_MOST_SHAPES];        /* the class of lengths, see sampler.h */
    tri_graph *shape_model[CREW_MOST_SHAPES]; /* what the executables after the first are made of */
    struct machine *machine;                  /* the executable of the latest step */
    tri_data *data; /* null: the network has no inputs, or the program feeds them */
    bool fed;       /* the program feeds each batch (tri_feed) into the only batch buffer */
    struct sampler sampler; /* belongs to the loader once that exists */
    int64_t done, total;    /* steps */
    int64_t epoch;
    double rate;     /* the learning rate of the latest step */
    double set_rate; /* set by the program, replaces the schedule's; NaN: not set */
    int skips;       /* consecutive updates, up to the latest step, skipped by the loss scale */
    bool not_finite; /* reported already; workers use struct crew_shown instead */
    const volatile sig_atomic_t *_Atomic asked; /* set by a signal, in the loop; or null */
    _Atomic int64_t asked_since; /* when a thread that waits for samples saw it: ns; 0: not yet */
    atomic_bool gave_up;         /* samples did not arrive in time, and the run ends without them */
    bool holds_pipes;            /* see base/pipes.h */
    bool wants_plan; /* it is only planned, with its data, and own_plan is asked for */
    bool passed;  /* it makes no step and writes nothing (visit_opens) */
    bool unread;  /* the run ends because nobody reads stdout or stderr any more */
    bool stopped; /* the run ends early: it was asked to, or max_time has passed */
    struct run_scalar *lr, *number, *samples; /* set by the run for each step; null: the network
                                                  has none */
    struct tri_fault fault;
    const struct executor *executor;
    struct own_time own_time; /* of a run of one process */
    struct own_series own_series;
    int64_t profile_first, profile_last; /* steps to record; 0: none */
    struct profiler *profiler;   /* of a run of one process; null: nothing has been recorded */
    struct ring *beside[SPEND_BESIDE]; /* of threads beside the team: that read ahead, and last
                                             * the one that writes checkpoints; null: none */
    struct profile_times *times; /* of kernels; null: they are not timed */
    struct worker *worker; /* null: the run has one process */
    struct evaluation *evaluation;
    struct loader *loader;
    struct record *record;
    struct checkpointer *checkpointer;
    struct policy *policy;
    struct crash *crash;
    struct events *events; /* null: none are wanted, or the agent reports them */
};

/* Stores tri_message() as the run's failure if it is the first. Returns the run's status. */
tri_status run_fail(tri_run *run, tri_status status);

/* Sets the scalars "lr" and "step" for a step. */
void run_set_scalars(tri_run *run, int64_t step);
bool run_epoch_ended(const tri_run *run); /* the latest step was the last of its epoch */

int run_output_count(const tri_run *run);
const char *run_output_name(const tri_run *run, int i);
bool run_output_is_scalar(const tri_run *run, int i);
int64_t run_lanes(const tri_run *run);
int64_t run_batch(const tri_run *run);
int run_threads(const tri_run *run);
int64_t run_parameter_elements(const tri_run *run);
void run_device_text(const tri_run *run, char *text, size_t bytes);
double run_lr(const tri_run *run);

#endif
