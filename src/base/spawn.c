/* SPDX-License-Identifier: Apache-2.0 */
#include "base/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>

static int set_files(posix_spawn_file_actions_t *files, const int *fd, int n) {
    int failed = 0;
    for (int i = 0; i < n && !failed; i++)
        failed = fd[i] < 0 ? posix_spawn_file_actions_addopen(files, i, "/dev/null", O_RDWR, 0)
                           : posix_spawn_file_actions_adddup2(files, fd[i], i);
    return failed ? failed : posix_spawn_file_actions_addclosefrom_np(files, n);
}

int spawn_command(char *const argv[], char *const env[], const int *fd, int n, pid_t *pid) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    struct sigaction hangup;
    sigset_t none, usual;
    sigemptyset(&none);
    sigfillset(&usual);
    if (!sigaction(SIGHUP, NULL, &hangup) && hangup.sa_handler == SIG_IGN)
        sigdelset(&usual, SIGHUP);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&how);
    int failed = set_files(&files, fd, n);
    if (!failed) failed = posix_spawnattr_setsigmask(&how, &none);
    if (!failed) failed = posix_spawnattr_setsigdefault(&how, &usual);
    if (!failed)
        failed = posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                    POSIX_SPAWN_SETPGROUP);
    if (!failed) failed = posix_spawn(pid, argv[0], &files, &how, argv, env);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return failed;
}
