/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/siblings.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/host.h"

#define GATHER INT64_C(10000000000) /* nanoseconds for siblings to come */
#define FIND INT64_C(60000000000)   /* and to find the first one */
#define PAUSE 20                    /* milliseconds between two tries */

/* What a sibling says first. */
struct greeting {
    uint64_t command; /* of its words */
    cpu_set_t cores;
};

/* The process that has started all of this host: MPICH's, or the parent; a shell may be between. */
static int find_starter(void) {
    struct host_thread t;
    for (int pid = getppid(), k = 0; k < 10 && host_thread("", pid, pid, &t); pid = t.parent, k++)
        if (!strcmp(t.name, "hydra_pmi_proxy")) return pid;
    return getppid();
}

static socklen_t address_of(const struct given *g, struct sockaddr_un *to) {
    *to = (struct sockaddr_un){.sun_family = AF_UNIX};
    const int n = snprintf(to->sun_path + 1, sizeof to->sun_path - 1, "trireme-%u-%s-%d",
                           (unsigned)getuid(), g->job, *g->job ? 0 : find_starter());
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* Whether the other end is of the same user. */
static bool is_own(int fd) {
    struct ucred is;
    socklen_t n = sizeof is;
    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &is, &n) && is.uid == getuid();
}

/* Processes with other words are no parts of one run. */
static uint64_t own_command(void) {
    static char text[HOST_COMMAND], *word[HOST_WORDS + 1];
    uint64_t hash = 0;
    host_command(text, word);
    for (int i = 0; word[i]; i++) hash = base_hash(word[i], strlen(word[i]) + 1, hash);
    return hash;
}

/* ---- the others ---- */

static int find_first(const struct given *g) {
    struct sockaddr_un to;
    const socklen_t n = address_of(g, &to);
    const int64_t end = base_now() + FIND;
    do {
        const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (fd >= 0 && !connect(fd, (struct sockaddr *)&to, n) && is_own(fd)) return fd;
        if (fd >= 0) close(fd);
        poll(NULL, 0, PAUSE);
    } while (base_now() < end);
    return -1;
}

int siblings_wait(const struct given *g) {
    struct greeting hello = {.command = own_command()};
    int code = 1;
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* the launcher has gone */
    const int fd = find_first(g);
    if (fd < 0) {
        fprintf(stderr, "trireme: process %d of %d by %s: the first one on this host has not come "
                "within %lld s\n", g->rank, g->size, g->by, (long long)(FIND / 1000000000));
        return code;
    }
    /* A launcher sends its signals to all of them. The first one decides what follows. */
    signal(SIGINT, SIG_IGN), signal(SIGTERM, SIG_IGN), signal(SIGHUP, SIG_IGN);
    sched_getaffinity(0, sizeof hello.cores, &hello.cores);
    ssize_t got = send(fd, &hello, sizeof hello, MSG_NOSIGNAL);
    do got = recv(fd, &code, sizeof code, 0);
    while (got < 0 && errno == EINTR);
    close(fd);
    if (got == (ssize_t)sizeof code) return code;
    fprintf(stderr, "trireme: process %d of %d by %s: the first one on this host has gone\n",
            g->rank, g->size, g->by);
    return 1;
}

/* ---- the first one ---- */

static tri_status open_listener(const struct given *g, struct siblings *s) {
    struct sockaddr_un at;
    const socklen_t n = address_of(g, &at);
    s->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->listener >= 0 && !bind(s->listener, (struct sockaddr *)&at, n) &&
        !listen(s->listener, (int)COUNT(s->fd)))
        return TRI_OK;
    if (errno == EADDRINUSE)
        return base_fail(TRI_USAGE, "two processes of %s are the first one on this host, by their "
                         "variables", g->by);
    return base_fail(TRI_FAILED, "cannot wait for the processes of %s: %s", g->by, strerror(errno));
}

/* Takes those that have come, with their cores; cores null: they have come too late for that. */
static void take(struct siblings *s, cpu_set_t *cores) {
    struct greeting hello;
    int fd;
    while ((fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        const struct timeval soon = {1, 0};
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
        if (s->n == (int)COUNT(s->fd) || !is_own(fd) ||
            recv(fd, &hello, sizeof hello, 0) != (ssize_t)sizeof hello) {
            close(fd);
            continue;
        }
        if (cores) CPU_OR(cores, cores, &hello.cores);
        s->differs |= hello.command != s->command;
        s->fd[s->n++] = fd;
    }
}

tri_status siblings_gather(const struct given *g, struct siblings *s) {
    cpu_set_t cores;
    const int64_t end = base_now() + GATHER;
    *s = (struct siblings){.listener = -1, .command = own_command()};
    if (g->local_size < 2) return TRI_OK;
    tri_status status = open_listener(g, s);
    if (status) return status;
    sched_getaffinity(0, sizeof cores, &cores);
    take(s, &cores);
    for (int64_t left; s->n + 1 < g->local_size && (left = end - base_now()) > 0;) {
        struct pollfd wait = {s->listener, POLLIN, 0};
        poll(&wait, 1, (int)(left / 1000000) + 1);
        take(s, &cores);
    }
    if (s->n + 1 < g->local_size)
        fprintf(stderr, "trireme: of the %d processes that %s starts on this host, %d came within "
                "%lld s; the run has %d workers all the same\n", g->local_size, g->by, s->n + 1,
                (long long)(GATHER / 1000000000), g->local_size);
    sched_setaffinity(0, sizeof cores, &cores);
    if (!s->differs) return TRI_OK;
    siblings_end(s, TRI_USAGE);
    return base_fail(TRI_USAGE, "%s has started %d processes here, one run, but their command "
                     "lines differ; for a run each, set TRIREME_LAUNCHED=1", g->by, g->local_size);
}

void siblings_end(struct siblings *s, int code) {
    if (s->listener < 0) return;
    take(s, NULL);
    for (int i = 0; i < s->n; i++) {
        send(s->fd[i], &code, sizeof code, MSG_NOSIGNAL);
        close(s->fd[i]);
    }
    close(s->listener);
}
