/* SPDX-License-Identifier: Apache-2.0
 * Starting workers, ending them, and changing their number. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/agent_inside.h"
#include "launch/cores.h"
#include "launch/membership.h"

extern char **environ;

/* ---- messages ---- */

void agent_print(struct agent *a, const char *fmt, ...) {
    char line[1024];
    va_list arg;
    va_start(arg, fmt);
    base_format_list(line, sizeof line, fmt, arg);
    va_end(arg);
    const struct membership *hosts = a->launch->membership;
    fprintf(stderr, "trireme: %s%s%s\n", hosts ? membership_name(hosts) : "", hosts ? ": " : "",
            line);
    base_format(a->last_print, sizeof a->last_print, "%s", line);
    log_event(&a->log, LOG_INFO, "told", "text=%s", line);
}

void agent_event(struct agent *a, const char *name, int worker, int code, const char *message) {
    const int64_t step = a->head ? (int64_t)atomic_load(&a->head->course.committed) : 0;
    const struct event e = {name, message, worker, step, code, NULL};
    events_start(a->events, &e);
}

/* ---- starting ---- */

#define VARIABLE 64 /* bytes of an added variable */

/* The environment of a worker: ours and three more variables, in one block. */
static char **make_environment(const struct agent *a, int place) {
    size_t n = 0;
    while (environ[n]) n++;
    char **env = calloc(1, (n + 4) * sizeof *env + 3 * VARIABLE);
    if (!env) return NULL;
    char *text = (char *)(env + n + 4);
    memcpy(env, environ, n * sizeof *env);
    base_format(text, VARIABLE, CREW_ENV_STORE "=%d", a->fd);
    base_format(text + VARIABLE, VARIABLE, CREW_ENV_PLACE "=%d", place);
    base_format(text + 2 * VARIABLE, VARIABLE, CREW_ENV_OUTPUT "=%d,%d", a->output[0],
                a->output[1]);
    for (size_t i = 0; i < 3; i++) env[n + i] = text + VARIABLE * i;
    return env;
}

/* Opens worker-K.out, the worker's stdout and stderr. The worker itself opens worker-K.log, which
 * is tried here, because a failure can still end the run. After the first step no failure does. */
static tri_status open_output(const struct agent *a, int place, int *output) {
    static const char *const endings[] = {"log", "out"};
    char path[4096], name[64];
    *output = a->launch->out ? -1 : open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (size_t i = 0; a->launch->out && i < COUNT(endings); i++) {
        snprintf(name, sizeof name, "worker-%d.%s", place, endings[i]);
        agent_path(a, path, name);
        if (*output >= 0) close(*output);
        *output = base_open(path, O_WRONLY | O_CREAT | O_APPEND, NULL);
        if (*output < 0 && !atomic_load(&a->head->course.committed))
            return base_fail(TRI_FAILED, "cannot write %s; choose another directory with --out",
                             tri_message());
    }
    return TRI_OK;
}

/* In the child. */
static void become_worker(const struct agent *a, int place, int output, char **env, pid_t agent) {
    launch_leave_signals(&a->old_mask);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != agent) _exit(127);
    const struct crew_hosts *hosts = &a->head->hosts;
    bool reports = atomic_load(&a->head->workers.reporter) == place &&
                   (!hosts->n || atomic_load(&hosts->teller) == hosts->self);
    if (reports || output >= 0) {
        dup2(reports ? a->output[0] : output, STDOUT_FILENO);
        dup2(reports ? a->output[1] : output, STDERR_FILENO);
    }
    cores_pin(&a->cores, atomic_load(&a->head->worker[place].core), a->launch->threads, 0);
    execvpe(a->launch->program ? a->launch->program : a->launch->argv[0], a->launch->argv, env);
    _exit(127);
}

static void reset_place(struct agent *a, int place) {
    struct crew_head *h = a->head;
    struct crew_worker *w = &h->worker[place];
    a->process[place] = (struct process){0};
    for (int t = 0; t < h->size.threads; t++) {
        struct crew_thread *thread = &h->thread[place * h->size.threads + t];
        atomic_store(&thread->held, 0);
        atomic_store(&thread->tid, 0);
        atomic_store(&thread->at, CREW_AT_START);
        atomic_store(&thread->lane, -1);
        atomic_store(&thread->item, -1);
        atomic_store(&thread->lane_time, 0);
        atomic_store(&thread->pure_time, 0);
        atomic_store(&thread->lane_began, 0);
        atomic_store(&thread->again, 0);
        atomic_store(&thread->rows, 0);
    }
    *w->failure = 0;
    atomic_store(&w->leave, 0);
    atomic_store(&w->first_claimed, 0);
    atomic_store(&w->peak, 0);
    atomic_store(&w->traced, 0);
    atomic_store(&w->crashed, 0);
    atomic_store(&w->sender, 0);
    atomic_store(&w->reads_lane, 0);
    atomic_store(&w->state, CREW_STARTING);
}

tri_status agent_start(struct agent *a, int place) {
    struct crew_worker *w = &a->head->worker[place];
    char **env = make_environment(a, place);
    if (!env) return base_no_memory("a worker");
    int output;
    tri_status status = open_output(a, place, &output);
    if (status) {
        free(env);
        return status;
    }
    reset_place(a, place);
    pid_t agent = getpid(), pid = fork();
    if (!pid) become_worker(a, place, output, env, agent);
    free(env);
    if (output >= 0) close(output);
    if (pid > 0) setpgid(pid, pid); /* the child does the same; one of them is first */
    if (pid < 0) {
        atomic_store(&w->state, CREW_EMPTY);
        return base_fail(TRI_FAILED, "cannot start worker %d: %s", place, strerror(errno));
    }
    a->process[place].pid = pid;
    atomic_store(&w->pid, pid);
    log_event(&a->log, LOG_INFO, "start", "worker=%d pid=%d rank=%d", place, (int)pid,
              atomic_load(&w->rank));
    return TRI_OK;
}

tri_status agent_start_all(struct agent *a) {
    const struct crew_size *s = &a->head->size;
    tri_status status = TRI_OK;
    for (int i = 0; i < s->places; i++)
        atomic_store(&a->head->worker[i].core, i < s->workers ? i * s->threads : -1);
    for (int i = 0; i < s->workers + s->spares && !status; i++) status = agent_start(a, i);
    return status;
}

/* ---- ending ---- */

/* Kills the worker and all processes that it has started, which are in its process group. */
void agent_kill(const struct agent *a, int place) {
    pid_t pid = a->process[place].pid;
    if (!pid) return;
    kill(pid, SIGKILL);
    kill(-pid, SIGKILL);
}

static int find_empty(const struct agent *a) {
    for (int i = 0; i < a->head->size.places; i++)
        if (!a->process[i].pid) return i;
    return -1;
}

/* -1: the worker that had it could not be started again. */
static int holder_of_rank(const struct agent *a, int rank) {
    for (int i = 0; i < a->head->size.places; i++)
        if (a->process[i].pid && atomic_load(&a->head->worker[i].rank) == rank) return i;
    return -1;
}

void agent_end_now(struct agent *a, int code) {
    a->forced_code = code;
    agent_kill_all(a);
}

void agent_fail(struct agent *a, const char *why) {
    struct crew_course *r = &a->head->course;
    int none = 0, runs = CREW_RUNS;
    bool keeps = atomic_load(&r->keeps) && crew_begun(a->head) && !atomic_load(&r->ending);
    agent_print(a, "%s; the run ends%s", why, keeps ? " after its last step is saved" : "");
    if (!keeps) {
        agent_end_now(a, 1);
        return;
    }
    a->forced_code = 1;
    if (atomic_compare_exchange_strong(&r->failing, &none, CREW_AGENT + 1))
        base_format(r->failure, sizeof r->failure, "step %llu: %s",
                    (unsigned long long)atomic_load(&r->opened), why);
    atomic_compare_exchange_strong(&r->ending, &runs, CREW_FAILED);
    agent_begin_grace(a);
}

void agent_kill_all(struct agent *a) {
    a->stopped = true;
    for (int i = 0; a->process && i < a->head->size.places; i++) agent_kill(a, i);
    for (int i = 0; a->process && i < a->head->size.places; i++) {
        if (!a->process[i].pid) continue;
        waitpid(a->process[i].pid, NULL, 0);
        a->process[i].pid = 0;
        atomic_store(&a->head->worker[i].state, CREW_EMPTY);
    }
}

/* ---- the number of workers ---- */

/* The reporter stays, because it may be writing; it swaps its rank with that of rank 0. */
static void keep_reporter(struct agent *a, int wanted) {
    struct crew_worker *w = &a->head->worker[atomic_load(&a->head->workers.reporter)];
    int rank = atomic_load(&w->rank), first = holder_of_rank(a, 0);
    if (rank < wanted) return;
    if (first >= 0) atomic_store(&a->head->worker[first].rank, rank);
    atomic_store(&w->rank, 0);
}

static bool any_worker_leaves(const struct agent *a) {
    for (int i = 0; i < a->head->size.places; i++)
        if (a->process[i].pid && atomic_load(&a->head->worker[i].leave)) return true;
    return false;
}

static void scale(struct agent *a, int now, int wanted) {
    struct crew_head *h = a->head;
    agent_print(a, "scaling from %d to %d worker(s)", now, wanted);
    keep_reporter(a, wanted);
    for (int i = 0; i < h->size.places && wanted < now; i++)
        if (atomic_load(&h->worker[i].rank) >= wanted) {
            atomic_store(&h->worker[i].leave, 1);
            atomic_store(&h->worker[i].rank, -1);
        }
    atomic_store(&h->workers.ranks, wanted);
    for (int rank = now; rank < wanted; rank++) {
        int place = find_empty(a);
        if (place < 0) break;
        atomic_store(&h->worker[place].rank, rank);
        atomic_store(&h->worker[place].core, rank * h->size.threads);
        if (agent_start(a, place)) agent_print(a, "%s", tri_message());
    }
    crew_notify(a->head);
}

/* Starts workers or lets the last ranks leave between two steps. It waits until earlier ones have
 * left, because there are places and slots for at most `most` workers. */
void agent_scale(struct agent *a) {
    struct crew_head *h = a->head;
    int asked = atomic_load(&h->asked.wanted), now = atomic_load(&h->workers.ranks);
    if (!asked || a->stopped || atomic_load(&h->course.ending) || !crew_begun(h)) return;
    if (a->automatic || any_worker_leaves(a)) return; /* -n auto finishes first */
    int wanted = asked > h->size.most ? h->size.most : asked;
    if (wanted != now) scale(a, now, wanted);
    atomic_compare_exchange_strong(&h->asked.wanted, &asked, 0);
}
