/* SPDX-License-Identifier: Apache-2.0
 * Starts a user's command from a process with threads. */
#ifndef BASE_SPAWN_H
#define BASE_SPAWN_H

#include <sys/types.h>

/* Runs argv[0], an absolute path. Its descriptors are fd[0 to n - 1] as 0 to n - 1 (-1: /dev/null)
 * and no others. It gets its own process group, so Ctrl-C does not reach it; no signal is blocked
 * or ignored except a SIGHUP that this process ignores (nohup). Returns an error number. */
int spawn_command(char *const argv[], char *const env[], const int *fd, int n, pid_t *pid);

#endif
