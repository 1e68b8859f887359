/* SPDX-License-Identifier: Apache-2.0
 * Threads of one process that work on one thing at a time. The caller is thread 0. Between two
 * pieces of work the others spin for a moment, then sleep; where there are more of them than cores
 * they sleep at once. */
#ifndef EXEC_TEAM_H
#define EXEC_TEAM_H

#include "base/base.h"

struct team;

/* threads 1: null, which every function here takes for a team of the caller alone. */
tri_status team_make(int threads, struct team **out);
void team_free(struct team *t);
int team_threads(const struct team *t);

/* Calls work(arg, thread) on every thread, and returns when all have returned. What was written
 * before is seen by all; what they write is seen by the caller. */
void team_run(struct team *t, void (*work)(void *arg, int thread), void *arg);

/* For waits within a piece of work: call it with 0, 1, 2 … until what is waited for is there. */
void team_pause(const struct team *t, unsigned turn);

/* Cores that this process may use: affinity and cgroup. */
int team_cores(void);

#endif
