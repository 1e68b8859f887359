/* SPDX-License-Identifier: Apache-2.0
 * How a run computes its steps: alone, or as one of several workers. All that depends on it goes
 * through this table. */
#ifndef RUN_EXECUTOR_H
#define RUN_EXECUTOR_H

#include "run/run.h"

struct crash_scene;

struct executor {
    /* Opening a run, in this order: the threads of this process and the place of its executables
     * (machine.h); memory and the store's values; data, metrics and events. */
    int (*threads)(const tri_run *run);
    void (*place)(const tri_run *run, struct machine_place *place);
    tri_status (*settle)(tri_run *run);
    tri_status (*start)(tri_run *run);
    void (*failed)(tri_run *run, const char *message); /* opening it, or a step */

    /* One step; false: there is none, or it failed. */
    bool (*step)(tri_run *run);
    /* After the loop: whether this process does what follows it. */
    bool (*finish)(tri_run *run);
    void (*leave)(tri_run *run, tri_status status); /* all is done */
    void (*release)(tri_run *run);                  /* before the team is freed */
    void (*free)(tri_run *run);                     /* after it */

    /* What the calling thread does, for crash reports and the agent; part: the callback, the batch
     * of an evaluation, or -1. */
    void (*at)(tri_run *run, enum crew_at at, int part);
    /* This process opens steps, calls back, prints, saves. */
    bool (*reports)(const tri_run *run);
    /* The latest step is this process's to show and to call back for. */
    bool (*tells)(const tri_run *run);
    /* What this process writes to parameters counts. */
    bool (*writes)(const tri_run *run);
    /* What this process feeds goes into the next step. Of several workers the reporter's does, after
     * it has returned from the latest step: no step is open then, and no other process opens one. */
    bool (*feeds)(const tri_run *run);
    /* The parameters are as the latest step has left them, even if the one after it failed. */
    bool (*is_whole)(const tri_run *run);
    bool (*asked_to_end)(const tri_run *run);
    /* No thread waits for samples any more. */
    bool (*gives_up)(tri_run *run);
    int (*rank)(const tri_run *run);
    int (*size)(const tri_run *run);
    struct crew_shown *(*shown)(tri_run *run); /* null: no other process can have shown anything */
    /* The last line for stdout. True: the agent prints it once the run is closed. */
    bool (*hand_over)(tri_run *run, const char *line);

    /* In a signal handler: what a thread of the team was doing; where the report of a crash goes
     * besides or instead of stderr (to: -1 is nowhere); its trace is written. */
    void (*look)(const tri_run *run, struct crash_scene *s);
    void (*crashed)(const tri_run *run, struct crash_scene *s, int sig, const siginfo_t *info,
                    int to[2]);
    void (*traced)(const tri_run *run, int sig);

    tri_status (*evaluate)(tri_run *run, tri_data *data);
    void (*set_policy)(tri_run *run); /* others that report later continue from run->policy */

    /* Checkpoints: the step that the run began with, as another process has found it; it begins with
     * run->done; another process may hold the directory's lock and be dying. */
    int64_t (*base)(const tri_run *run);
    void (*begin_at)(tri_run *run);
    bool (*saw_deaths)(const tri_run *run);
    void (*save_failed)(tri_run *run, const char *message);
    void (*saved)(tri_run *run); /* or failed: run->checkpointer says */
    /* The number of a request to save that has no answer yet; 0: there is none. */
    uint32_t (*save_asked)(const tri_run *run);
    void (*save_answer)(tri_run *run, uint32_t asked, const char *error);
};

extern const struct executor executor_alone, executor_worker;

/* Whether a signal, the agent or a closed pipe has asked for the end of the run. */
bool run_is_asked_to_end(const tri_run *run);
/* Whether max_time is over. */
bool run_is_late(const tri_run *run);

#endif
