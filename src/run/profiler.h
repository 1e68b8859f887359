/* SPDX-License-Identifier: Apache-2.0
 * Which steps of a run are recorded (--profile, tri_profile, `trireme profile`). Spans go through
 * rings (crew/ring.h) into files of DIR/profile/FIRST. */
#ifndef RUN_PROFILER_H
#define RUN_PROFILER_H

#include "base/base.h"

struct tri_run;
struct profiler; /* of a run of one process: its rings and drainer */

#define PROFILER_MOST ((int64_t)1 << 30) /* bytes, unless --profile-most says otherwise */

/* Reads tri_options.profile, and refuses steps that the run does not make. Of those that a run that
 * resumes has done, it says so. */
tri_status profiler_take(struct tri_run *run);
/* Prints how large a profile will be, about. */
void profiler_expect(const struct tri_run *run, const char *folder, int64_t first, int64_t last);

/* Ends the recording in this process. Between two steps. */
struct team;
void profiler_stop(struct team *team);

/* A run of one process: between two steps, `step` is the next; after the last; when no thread of it
 * is left. A failure is printed, and the run goes on. */
void profiler_turn(struct tri_run *run, int64_t step);
void profiler_finish(struct tri_run *run);
void profiler_free(struct tri_run *run);

#endif
