/* SPDX-License-Identifier: Apache-2.0
 * A thread of the agent that reads the head at most 20 times a second, and writes how each worker
 * has spent its time to DIR/workers.series. A slow disk delays nothing else. No worker knows of
 * it. */
#ifndef LAUNCH_METER_H
#define LAUNCH_METER_H

#include "crew/head.h"
#include "observe/log.h"
#include "observe/times.h"

/* The part of a thread's time without a core from which on the meter looks who has the core. */
#define METER_SHARED 0.1

struct meter; /* null: none; the functions below then do nothing */

/* directory: null: *m becomes null. The head stays mapped until meter_close. */
tri_status meter_open(const char *directory, struct crew_head *h, struct meter **m);
/* Writes what the thread has found to the log. For the thread that owns the log. */
void meter_tell(struct meter *m, struct log *log);
/* Ends the thread, after it has written the last frame. */
void meter_close(struct meter *m, struct log *log);

/* What the thread does, for tests: how it begins, each of its turns, and its end. root: as in
 * base/runqueue.h; clock: base_now. */
struct meter *meter_make(const char *directory, struct crew_head *h, const char *root,
                         int64_t (*clock)(void));
void meter_turn(struct meter *m);
void meter_last(struct meter *m); /* writes what there is since the last frame */
void meter_end(struct meter *m);

#endif
