/* SPDX-License-Identifier: Apache-2.0
 * How a run computes its steps: in one process, or as one of several workers. This table holds all
 * that differs between the two. */
#ifndef RUN_EXECUTOR_H
#define RUN_EXECUTOR_H

#include "crew/head.h"
#include "run/run.h"

struct crash_scene;

/* What tri_rank, tri_size, tri_host and tri_hosts return. */
struct run_ranks {
    int rank, size, host, hosts;
};

/* UNKNOWN: this host may be cut off from the others, which know. */
enum file_place { FILES_OURS, FILES_UNKNOWN, FILES_OF_OTHERS };

struct executor {
    /* Opening a run calls these in this order. threads: the number of threads of this process.
     * place: where the executables get their memory (machine.h). settle: allocates memory and sets
     * the values of the store. start: opens data, metrics and events. */
    int (*threads)(const tri_run *run);
    void (*place)(const tri_run *run, struct machine_place *place);
    tri_status (*settle)(tri_run *run);
    tri_status (*start)(tri_run *run);
    void (*failed)(tri_run *run, const char *message); /* opening the run failed, or a step */

    /* Computes one step. False: there is none left, or it failed. */
    bool (*step)(tri_run *run);
    /* After the loop. True: this process saves, and ends the run. */
    bool (*finish)(tri_run *run);
    void (*leave)(tri_run *run, tri_status status); /* everything is done */
    void (*release)(tri_run *run);                  /* before the team is freed */
    void (*free)(tri_run *run);                     /* after it */

    /* Notes what the calling thread does, for crash reports and the agent. part: the callback, the
     * batch of an evaluation, or -1. */
    void (*at)(tri_run *run, enum crew_at at, int part);
    /* Whether this process opens steps, calls back, prints and saves. */
    bool (*reports)(const tri_run *run);
    /* Whether this process prints the latest step and calls back for it. */
    bool (*reports_step)(const tri_run *run);
    /* Whether values that this process writes to parameters take effect. */
    bool (*writes)(const tri_run *run);
    /* Whether what this process feeds goes into the next step. Of several workers, only the
     * reporter's does, once it has returned from the latest step: no step is open then, and no
     * other process opens one. */
    bool (*feeds)(const tri_run *run);
    /* Whether the parameters are as the latest step left them, even if the next one has failed. */
    bool (*is_whole)(const tri_run *run);
    bool (*asked_to_end)(const tri_run *run);
    /* Whether threads stop waiting for samples. */
    bool (*gives_up)(tri_run *run);
    int (*size)(const tri_run *run);  /* workers of this host */
    int (*cores)(const tri_run *run); /* that they share; 0: those of this process */
    /* For logs: counted over all hosts that take part. */
    struct run_ranks (*ranks)(const tri_run *run);
    struct crew_shown *(*shown)(tri_run *run); /* null: no other process has printed anything */
    /* The last line for stdout. True: the agent prints it after the run has been closed. */
    bool (*take_last_line)(tri_run *run, const char *line);

    /* In a signal handler. look: what a thread of the team was doing. crashed: sets the descriptors
     * that the report of a crash goes to (-1: none). traced: the trace has been written. */
    void (*look)(const tri_run *run, struct crash_scene *s);
    void (*crashed)(const tri_run *run, struct crash_scene *s, int sig, const siginfo_t *info,
                    int to[2]);
    void (*traced)(const tri_run *run, int sig);

    tri_status (*evaluate)(tri_run *run, tri_data *data);
    void (*set_policy)(tri_run *run); /* later reporters continue from run->policy */

    /* Checkpoints. base: the step that the run started from, if another process has resumed it.
     * begin_at: the run starts from step run->done. saw_deaths: a process that is dying may still
     * hold the directory's lock. */
    int64_t (*base)(const tri_run *run);
    void (*begin_at)(tri_run *run);
    bool (*saw_deaths)(const tri_run *run);
    /* Who changes the files that one host writes. For any thread. */
    enum file_place (*writes_files)(const tri_run *run);
    void (*save_failed)(tri_run *run, const char *message);
    void (*saved)(tri_run *run); /* or failed: run->checkpointer has the status */
    /* The number of a request to save that has not been answered; 0: none. */
    uint32_t (*save_asked)(const tri_run *run);
    void (*save_answer)(tri_run *run, uint32_t asked, const char *error);
};

extern const struct executor executor_alone, executor_worker;

/* Whether a signal, the agent or a closed pipe has asked for the end of the run. */
bool run_is_asked_to_end(const tri_run *run);
/* Whether max_time has passed. */
bool run_is_late(const tri_run *run);

#endif
