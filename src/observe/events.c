/* SPDX-License-Identifier: Apache-2.0
 * A thread waits for each command, so that no zombie remains and no step has to wait. */
#include "observe/events.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/spawn.h"
#include "observe/log.h"

#define MOST 8      /* at once */
#define PATIENCE 10 /* seconds to wait before the last event and after it */
#define VARIABLES 7

extern char **environ;

struct events {
    char *command, *out, *log; /* out, log: nullable */
    pthread_mutex_t mutex;
    pthread_cond_t fewer; /* a command has ended */
    int running;
    bool abandoned; /* the thread of the last command frees this structure */
};

static void events_free(struct events *e) {
    pthread_cond_destroy(&e->fewer);
    pthread_mutex_destroy(&e->mutex);
    free(e->command);
    free(e->out);
    free(e->log);
    free(e);
}

tri_status events_open(const char *command, const char *out, const char *log,
                       struct events **result) {
    *result = NULL;
    if (!command) return TRI_OK;
    struct events *e = calloc(1, sizeof *e);
    if (!e) return base_no_memory("--on-event");
    pthread_condattr_t clock;
    pthread_mutex_init(&e->mutex, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&e->fewer, &clock);
    pthread_condattr_destroy(&clock);
    e->command = strdup(command);
    e->out = out ? realpath(out, NULL) : NULL; /* null if it does not exist */
    e->log = log ? strdup(log) : NULL;
    if (!e->command || (log && !e->log)) {
        events_free(e);
        return base_no_memory("--on-event");
    }
    *result = e;
    return TRI_OK;
}

/* ---- one command ---- */

struct command {
    struct events *events;
    char name[32];
    pid_t pid;
};

static void report(const struct events *e, const char *event, const char *fmt, ...)
    TRI_PRINTF(3, 4);
static void report(const struct events *e, const char *event, const char *fmt, ...) {
    char text[256];
    struct log log;
    va_list arg;
    va_start(arg, fmt);
    base_format_list(text, sizeof text, fmt, arg);
    va_end(arg);
    fprintf(stderr, "trireme: --on-event, %s: the command %s\n", event, text);
    if (!e->log || log_open(&log, e->log, LOG_BUDGET)) return;
    log_event(&log, LOG_WARNING, "on-event", "about=%s text=%s", event, text);
    log_close(&log);
}

/* A command has ended, or could not be started. The last one frees `e` if it is abandoned. */
static void one_less(struct events *e) {
    pthread_mutex_lock(&e->mutex);
    bool last = !--e->running && e->abandoned;
    pthread_cond_broadcast(&e->fewer);
    pthread_mutex_unlock(&e->mutex);
    if (last) events_free(e);
}

static void *wait_for_command(void *arg) {
    struct command *c = arg;
    int status;
    pid_t pid;
    do pid = waitpid(c->pid, &status, 0);
    while (pid < 0 && errno == EINTR);
    if (pid == c->pid && WIFSIGNALED(status))
        report(c->events, c->name, "was killed by signal %d (%s)", WTERMSIG(status),
               strsignal(WTERMSIG(status)));
    else if (pid == c->pid && WEXITSTATUS(status))
        report(c->events, c->name, "exited with %d", WEXITSTATUS(status));
    one_less(c->events);
    free(c);
    return NULL;
}

/* ---- starting one ---- */

static bool is_ours(const char *variable) {
    static const char *const names[] = {"EVENT=", "OUT=", "STEP=", "WORKER=", "CODE=", "HOST=",
                                        "MESSAGE="};
    if (strncmp(variable, "TRIREME_", 8)) return false;
    for (size_t i = 0; i < COUNT(names); i++)
        if (!strncmp(variable + 8, names[i], strlen(names[i]))) return true;
    return false;
}

/* Our environment and the variables of the event, allocated in `own`. Null if out of memory. */
static char **make_environment(const struct events *e, const struct event *what,
                               struct arena *own) {
    size_t n = 0, kept = 0;
    while (environ[n]) n++;
    char **env = arena_alloc(own, (n + VARIABLES + 1) * sizeof *env);
    if (!env) return NULL;
    for (size_t i = 0; i < n; i++)
        if (!is_ours(environ[i])) env[kept++] = environ[i];
    env[kept++] = arena_text(own, "TRIREME_EVENT=%s", what->name);
    env[kept++] = arena_text(own, "TRIREME_STEP=%lld", (long long)what->step);
    env[kept++] = arena_text(own, "TRIREME_MESSAGE=%s", what->message);
    if (e->out) env[kept++] = arena_text(own, "TRIREME_OUT=%s", e->out);
    if (what->worker >= 0) env[kept++] = arena_text(own, "TRIREME_WORKER=%d", what->worker);
    if (what->host) env[kept++] = arena_text(own, "TRIREME_HOST=%s", what->host);
    if (what->code >= 0) env[kept++] = arena_text(own, "TRIREME_CODE=%d", what->code);
    return own->failed ? NULL : env;
}

/* The command inherits no file but stderr. */
static int spawn(const char *command, char **env, pid_t *pid) {
    char *const argv[] = {"/bin/sh", "-c", (char *)(uintptr_t)command, NULL};
    return spawn_command(argv, env, (int[]){-1, STDERR_FILENO, STDERR_FILENO}, 3, pid);
}

static tri_status start(struct command *c, const struct event *what) {
    struct arena own = {0};
    char **env = make_environment(c->events, what, &own);
    int failed = env ? spawn(c->events->command, env, &c->pid) : ENOMEM;
    arena_free(&own);
    return failed ? base_fail(TRI_FAILED, "cannot be started: %s", strerror(failed)) : TRI_OK;
}

/* The thread blocks every signal: they are for others. */
static tri_status watch(struct command *c) {
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread, NULL, wait_for_command, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!failed) pthread_detach(thread);
    return failed ? base_fail(TRI_FAILED, "cannot be waited for: %s", strerror(failed)) : TRI_OK;
}

static bool one_more(struct events *e) {
    pthread_mutex_lock(&e->mutex);
    bool may = e->running < MOST;
    e->running += may;
    pthread_mutex_unlock(&e->mutex);
    return may;
}

void events_start(struct events *e, const struct event *what) {
    if (!e) return;
    if (!one_more(e)) {
        report(e, what->name, "is not started: %d are running", MOST);
        return;
    }
    struct command *c = malloc(sizeof *c);
    tri_status status = c ? TRI_OK : base_no_memory("it");
    if (c) *c = (struct command){.events = e};
    if (c) base_format(c->name, sizeof c->name, "%s", what->name);
    if (!status) status = start(c, what);
    if (!status && watch(c)) { /* nothing would wait for it, and it would become a zombie */
        kill(-c->pid, SIGKILL);
        waitpid(c->pid, NULL, 0);
        status = TRI_FAILED;
    }
    if (!status) return;
    report(e, what->name, "%s", tri_message());
    free(c);
    one_less(e);
}

/* Waits for at most PATIENCE. Returns how many commands still run. last: no event follows, so the
 * last of them frees `e`. */
static int wait_for_all(struct events *e, bool last) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE;
    pthread_mutex_lock(&e->mutex);
    while (e->running && !pthread_cond_timedwait(&e->fewer, &e->mutex, &until)) continue;
    int left = e->running;
    e->abandoned = last;
    pthread_mutex_unlock(&e->mutex);
    return left;
}

void events_close(struct events *e, const struct event *end) {
    if (!e) return;
    int left = wait_for_all(e, !end);
    if (end) events_start(e, end);
    if (end) left = wait_for_all(e, true);
    if (left)
        fprintf(stderr, "trireme: --on-event: %d command%s still running after %d s; not waiting "
                "any longer\n", left, left == 1 ? " is" : "s are", PATIENCE);
    else
        events_free(e);
}
