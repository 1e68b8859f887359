/* SPDX-License-Identifier: Apache-2.0
 * Threads of one process that work on one thing at a time. The caller is thread 0. A waiting thread
 * spins for a moment, then sleeps (see bell.h); where threads exceed cores it does not spin. */
#ifndef MACHINE_TEAM_H
#define MACHINE_TEAM_H

#include "base/base.h"

struct team;

/* threads 1: null, which every function here takes for a team of the caller alone. */
tri_status team_make(int threads, struct team **out);
void team_free(struct team *t);
int team_threads(const struct team *t);

/* Calls work(arg, thread) on every thread, and returns when all have returned. What was written
 * before is seen by all; what they write is seen by the caller. */
void team_run(struct team *t, void (*work)(void *arg, int thread), void *arg);

/* Waits within a piece of work until the condition holds. A thread that makes it hold calls
 * team_ring after that. The condition is written and read in sequentially consistent order. */
void team_wait(struct team *t, bool (*holds)(void *arg), void *arg);
void team_ring(struct team *t);

/* Whether the threads of all workers exceed the cores. Before a call: whether the team's own do. */
void team_crowd(struct team *t, bool crowded);

#endif
