/* SPDX-License-Identifier: Apache-2.0
 * The agent: starts the workers of a run, watches them, frees what dead workers held, replaces
 * them, and leaves no process or memory behind. It computes nothing. */
#ifndef LAUNCH_AGENT_H
#define LAUNCH_AGENT_H

#include "launch/launch.h"

/* The exit code of a run that was asked to end. 0 to 2 are those of tri_status. */
enum { AGENT_RESUMABLE = 3 };

/* Runs it to the end and returns the exit code. Failures have been reported. */
int agent_run(const struct launch *l);

/* DIR/exit, with the exit code, for schedulers whose launcher reports another. Code -1: removes
 * it. */
void agent_write_exit(const char *directory, int code);
/* Whether a host of this run over hosts has its files in DIR, and what number it has given those of
 * an earlier run. */
bool agent_has_run(const char *directory, uint64_t run, int *earlier);

#endif
