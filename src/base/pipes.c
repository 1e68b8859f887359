/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pipes.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdio_ext.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int holds;
static bool installed;
static struct sigaction before;
static atomic_bool closed;

static bool is_closed(int fd) {
    struct pollfd p = {.fd = fd};
    return poll(&p, 1, 0) > 0 && (p.revents & (POLLERR | POLLHUP));
}

/* The signal does not say which descriptor it is about. */
static void handle(int sig) {
    int error = errno;
    (void)sig;
    if (is_closed(STDOUT_FILENO) || is_closed(STDERR_FILENO)) atomic_store(&closed, true);
    errno = error;
}

void pipes_hold(void) {
    struct sigaction ours = {.sa_handler = handle, .sa_flags = SA_RESTART};
    sigemptyset(&ours.sa_mask);
    pthread_mutex_lock(&mutex);
    if (!holds++) {
        atomic_store(&closed, false);
        bool own = sigaction(SIGPIPE, NULL, &before) || (before.sa_flags & SA_SIGINFO) ||
                   (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN);
        installed = !own && !sigaction(SIGPIPE, &ours, NULL);
    }
    pthread_mutex_unlock(&mutex);
}

void pipes_release(void) {
    struct sigaction now;
    pthread_mutex_lock(&mutex);
    if (!--holds && installed) {
        if (is_closed(STDOUT_FILENO) && fflush(stdout)) __fpurge(stdout);
        bool stands = !sigaction(SIGPIPE, NULL, &now) && !(now.sa_flags & SA_SIGINFO) &&
                      now.sa_handler == handle;
        if (stands) sigaction(SIGPIPE, &before, NULL);
        installed = false;
    }
    pthread_mutex_unlock(&mutex);
}

bool pipes_closed(void) { return atomic_load(&closed); }
