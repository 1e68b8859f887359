/* SPDX-License-Identifier: Apache-2.0
 * What a run of one process writes beside metrics.jsonl, if it has a directory: run.log, run.json
 * and workers.series. With workers the agent does that. */
#ifndef RUN_OWN_FILES_H
#define RUN_OWN_FILES_H

#include "observe/run_file.h"
#include "run/record.h"
#include "run/run.h"

/* Also opens metrics.jsonl. The files of an earlier run have a number then, unless this one
 * continues it. */
tri_status own_files_open(tri_run *run);
/* Without open files, these do nothing. */
void own_files_failed(tri_run *run, const char *message);
void own_files_saved(tri_run *run);
void own_files_note(tri_run *run);
/* A step has been timed, which ended at that time. */
void own_files_timed(tri_run *run, int64_t now);
void own_files_close(tri_run *run, int code);

/* After each step. */
static inline void own_files_step(tri_run *run) {
    const struct record *r = run->record;
    if (run_file_is_due(r->own.run, r->begin + r->seen.now)) own_files_note(run);
}

#endif
