/* SPDX-License-Identifier: Apache-2.0 */
#include "data/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/spawn.h"

#define BUFFER_BYTES ((size_t)1 << 16)
#define TICK 50 /* milliseconds between checks whether anybody still waits */

extern char **environ;

/* ---- a command ---- */

/* The command gets its own process group. Another process in the group waits until the other end of
 * file 3 is closed, which happens when this process ends in any way, and then kills the group. */
static const char watched[] =
    "{ read -r x; kill -9 0; } <&3 >/dev/null 2>&1 & exec 3<&-; exec /bin/sh -c \"$1\"";

static tri_status start(struct stream *s, const char *command) {
    char *const argv[] = {
        "/bin/sh", "-c", (char *)(uintptr_t)watched, "sh", (char *)(uintptr_t)command, NULL};
    int out[2] = {-1, -1}, life[2] = {-1, -1};
    int failed = pipe2(out, O_CLOEXEC) || pipe2(life, O_CLOEXEC) ? errno : 0;
    if (!failed)
        failed = spawn_command(argv, environ, (int[]){STDIN_FILENO, out[1], STDERR_FILENO, life[0]},
                               4, &s->command);
    if (out[1] >= 0) close(out[1]);
    if (life[0] >= 0) close(life[0]);
    if (!failed) {
        s->fd = out[0];
        s->life = life[1];
        return TRI_OK;
    }
    s->command = 0;
    if (out[0] >= 0) close(out[0]);
    if (life[1] >= 0) close(life[1]);
    return base_fail(TRI_FAILED, "%s: %s", s->name, strerror(failed));
}

/* Kills what is left of the group; its number is still reserved. */
static int reap(struct stream *s) {
    int code = 0;
    siginfo_t info;
    waitid(P_PID, (id_t)s->command, &info, WEXITED | WNOWAIT);
    kill(-s->command, SIGKILL);
    waitpid(s->command, &code, 0);
    close(s->life);
    s->command = 0;
    return code;
}

/* ---- reading ---- */

tri_status stream_open(struct stream *s, const char *from) {
    size_t n = strlen(STREAM_COMMAND);
    stream_close(s);
    s->at = s->n = 0;
    if (!s->buffer && !(s->buffer = malloc(BUFFER_BYTES))) return base_no_memory(s->name);
    if (!strncmp(from, STREAM_COMMAND, n)) return start(s, from + n);
    /* Does not wait for a writer. */
    s->fd = strcmp(from, "-") ? open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : STDIN_FILENO;
    return s->fd >= 0 ? TRI_OK : base_fail(TRI_FAILED, "%s: %s", s->name, strerror(errno));
}

static tri_status nobody_waits(const struct stream *s) {
    return base_fail(TRI_FAILED, "%s: no data arrived, and nobody waits for it any more", s->name);
}

/* Reads as soon as there are any bytes; *got 0: the end. */
static tri_status read_some(struct stream *s, void *to, size_t n, size_t *got) {
    for (;;) {
        struct pollfd p = {.fd = s->fd, .events = POLLIN};
        int ready = poll(&p, 1, TICK);
        ssize_t some = ready > 0 ? read(s->fd, to, n) : -1;
        if (some >= 0) {
            *got = (size_t)some;
            return TRI_OK;
        }
        if (ready > 0 && errno != EINTR && errno != EAGAIN)
            return base_fail(TRI_FAILED, "%s: read: %s", s->name, strerror(errno));
        if (s->data && data_unwanted(s->data)) return nobody_waits(s);
    }
}

int64_t stream_take(struct stream *s, void *to, size_t n) {
    char *p = to;
    for (size_t left = n, some; left; left -= some, p += some) {
        tri_status status = TRI_OK;
        if (s->at == s->n && left >= BUFFER_BYTES) {
            status = read_some(s, p, left, &some);
        } else {
            if (s->at == s->n) {
                s->at = s->n = 0;
                status = read_some(s, s->buffer, BUFFER_BYTES, &s->n);
            }
            some = s->n - s->at < left ? s->n - s->at : left;
            if (!status) memcpy(p, s->buffer + s->at, some);
            s->at += some;
        }
        if (status) return -1;
        if (!some) return (int64_t)(n - left);
    }
    return (int64_t)n;
}

/* It has closed its output; waits until it ends. */
tri_status stream_end(struct stream *s) {
    if (!s->command) return TRI_OK;
    siginfo_t info = {.si_pid = 0};
    for (useconds_t wait = 100;
         !waitid(P_PID, (id_t)s->command, &info, WEXITED | WNOHANG | WNOWAIT) && !info.si_pid;) {
        if (s->data && data_unwanted(s->data)) return nobody_waits(s);
        usleep(wait);
        if (wait < TICK * 1000) wait *= 2;
    }
    int code = reap(s);
    if (!code) return TRI_OK;
    return base_fail(TRI_FAILED, "%s: the command %s %d", s->name,
                     WIFSIGNALED(code) ? "was ended by signal" : "ended with exit code",
                     WIFSIGNALED(code) ? WTERMSIG(code) : WEXITSTATUS(code));
}

void stream_close(struct stream *s) {
    if (s->fd > STDIN_FILENO) close(s->fd);
    s->fd = -1;
    if (!s->command) return;
    kill(-s->command, SIGKILL);
    reap(s);
}
