/* SPDX-License-Identifier: Apache-2.0
 * Starting a command of the user's beside the threads of this process. */
#ifndef BASE_SPAWN_H
#define BASE_SPAWN_H

#include <sys/types.h>

/* Runs argv[0], an absolute path, with files fd[0 to n - 1] as its files 0 to n - 1 (-1: /dev/null) and none else, in a
 * process group of its own, with no signal blocked or ignored, but for a SIGHUP that this process ignores (nohup): a
 * Ctrl-C is not for it. Returns an error number. */
int spawn_command(char *const argv[], char *const env[], const int *fd, int n, pid_t *pid);

#endif
