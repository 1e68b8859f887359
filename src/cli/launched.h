/* SPDX-License-Identifier: Apache-2.0
 * A run of workers, started by the user's command or by a launcher's processes (launch/given.h). */
#ifndef CLI_LAUNCHED_H
#define CLI_LAUNCHED_H

#include "launch/given.h"
#include "launch/launch.h"

/* Runs it and returns the exit code; of a process that the launcher has started besides, it ends
 * the process. Failures have been reported. */
int launched_run(const struct launch *l, const struct given *g);

/* This is the program `trireme`, whose commands know what they start: networks that they open start
 * nothing (launched_opens in run/open.h). */
void launched_is_command(void);

#endif
