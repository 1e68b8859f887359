/* SPDX-License-Identifier: Apache-2.0
 * The coordinator's process: starts an agent on each host of --hosts, and answers them until the
 * run is over (launch/coordinator.h decides). It computes nothing. */
#ifndef LAUNCH_COORDINATE_H
#define LAUNCH_COORDINATE_H

#include "launch/agent.h"

/* Runs it to the end and returns the exit code. Failures have been reported. */
int coordinate(const struct launch *l);

#endif
