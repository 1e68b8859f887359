/* SPDX-License-Identifier: Apache-2.0
 * The threads of one process, which work on one task at a time. The caller is thread 0. A waiting
 * thread spins for a moment, then sleeps (see base/wait.h). If there are more threads than cores,
 * it does not spin. */
#ifndef MACHINE_TEAM_H
#define MACHINE_TEAM_H

#include "base/base.h"

struct team;

/* With threads = 1 the team is null; all functions here take null for a team of the caller
 * alone. */
tri_status team_make(int threads, struct team **out);
/* One whose threads only count: a run that is planned, but not opened, has no use for them. They
 * work from team_start on. */
tri_status team_plan(int threads, struct team **out);
tri_status team_start(struct team *t);
bool team_works(const struct team *t);
void team_free(struct team *t);
int team_threads(const struct team *t);

/* Calls work(arg, thread) on every thread, and returns when all calls have returned. All threads
 * see what the caller wrote before; afterwards the caller sees what they wrote. */
void team_run(struct team *t, void (*work)(void *arg, int thread), void *arg);

/* Called within work: waits until the condition holds. A thread that makes it hold must then call
 * team_wake. The words of the condition must be read and written in sequentially consistent
 * order. */
void team_wait(struct team *t, bool (*holds)(void *arg), void *arg);
void team_wake(struct team *t);

/* Whether the threads of all workers exceed the cores. Until it is called: whether the team's
 * threads do. */
void team_crowd(struct team *t, bool crowded);

#endif
