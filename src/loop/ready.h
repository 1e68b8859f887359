/* SPDX-License-Identifier: Apache-2.0
 * Callbacks of the usual loop: the ready-made ones, and how a list of any is called. */
#ifndef LOOP_READY_H
#define LOOP_READY_H

#include "observe/progress.h"

/* What a monitor keeps: when, and behind which step, it said something last. */
struct ready_mark {
    double time; /* of steps: without evaluations */
    int64_t step; /* -1: not known, for another has reported until now */
};

struct callbacks {
    const tri_callback *list; /* ended by an empty one; or null */
    struct ready_mark *since, *epoch; /* by its place in the list */
    bool quiet;                /* monitors print nothing */
    struct progress *progress; /* null: lines go to stderr */
    char directory[4096];      /* of tri_saver, put together */
};

/* Settings of those that are settings go to the options, where these say nothing. */
tri_status callbacks_open(struct callbacks *c, const tri_callback *list, tri_options *o);
/* Once the run is open. */
void callbacks_begin(struct callbacks *c, const tri_run *run);
/* Behind a step that this process tells of. False: one of them ends the run. */
bool callbacks_step(struct callbacks *c, tri_run *run);
void callbacks_close(struct callbacks *c);

#endif
