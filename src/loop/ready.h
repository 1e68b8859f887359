/* SPDX-License-Identifier: Apache-2.0
 * Callbacks of the training loop: the ready-made ones, and calling a list of them. */
#ifndef LOOP_READY_H
#define LOOP_READY_H

#include "observe/progress.h"

/* When a time monitor last printed a line. */
struct ready_mark {
    double time;  /* seconds, without evaluations */
    int64_t step; /* -1: unknown, because another worker was the reporter */
};

struct callbacks {
    const tri_callback *list;         /* an empty one ends it; or null */
    struct ready_mark *since, *epoch; /* by place in the list */
    bool quiet;                /* monitors print nothing */
    struct progress *progress; /* null: lines go to stderr */
    char directory[4096];      /* of tri_saver, with its prefix */
};

/* tri_saver and tri_evaluator set the options that are not set yet. */
tri_status callbacks_open(struct callbacks *c, const tri_callback *list, tri_options *o);
/* After the run has been opened. */
void callbacks_begin(struct callbacks *c, const tri_run *run);
/* Calls them after a step that this process reports. False if one of them ends the run. */
bool callbacks_step(struct callbacks *c, tri_run *run);
void callbacks_close(struct callbacks *c);

#endif
