/* SPDX-License-Identifier: Apache-2.0
 * Detecting the death of workers, and recovering from it. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch/agent_inside.h"
#include "launch/cores.h"
#include "launch/membership.h"

/* ---- detection ---- */

static void *watch_thread(void *arg) {
    struct watcher *w = arg;
    pthread_mutex_t *life = &w->agent->head->thread[w->number].life;
    uint64_t one = 1;
    bool died = pthread_mutex_lock(life) == EOWNERDEAD; /* else the thread released it */
    if (died) pthread_mutex_consistent(life);
    atomic_store(&w->when, base_now());
    pthread_mutex_unlock(life);
    atomic_store(&w->dead, died);
    if (write(w->agent->deaths, &one, sizeof one) < 0) return NULL; /* the next tick sees it too */
    return NULL;
}

static void join_watcher(struct watcher *w) {
    if (w->started) pthread_join(w->thread, NULL);
    w->started = false;
}

void agent_join_watchers(struct agent *a) {
    for (int i = 0; i < CREW_MOST_THREADS; i++) join_watcher(&a->watcher[i]);
}

static void start_watchers(struct agent *a, int place) {
    for (int t = 0; t < a->head->size.threads; t++) {
        int number = place * a->head->size.threads + t;
        struct watcher *w = &a->watcher[number];
        if (w->started || !atomic_load(&a->head->thread[number].held)) continue;
        w->agent = a;
        w->number = number;
        atomic_store(&w->dead, 0);
        w->started = !pthread_create(&w->thread, NULL, watch_thread, w);
    }
}

/* When the last thread of a worker died; 0 while one lives or cannot be watched. *any: one died. */
static int64_t all_dead(const struct agent *a, int place, bool *any) {
    int64_t last = 0;
    bool all = true;
    for (int t = 0; t < a->head->size.threads; t++) {
        int thread = place * a->head->size.threads + t;
        const struct watcher *w = &a->watcher[thread];
        bool dead = w->started && atomic_load(&w->dead);
        if (!atomic_load(&a->head->thread[thread].held)) continue;
        *any |= dead;
        all &= dead;
        if (dead && atomic_load(&w->when) > last) last = atomic_load(&w->when);
    }
    return all ? last : 0;
}

/* ---- recovery ---- */

static bool alive(const struct agent *a, int place) {
    return a->process[place].pid && !a->process[place].dead;
}

static int find_ready(const struct agent *a, bool spare) {
    for (int i = 0; i < a->head->size.places; i++) {
        struct crew_worker *w = &a->head->worker[i];
        if (alive(a, i) && atomic_load(&w->state) == CREW_READY && !atomic_load(&w->leave) &&
            (atomic_load(&w->rank) < 0) == spare)
            return i;
    }
    return -1;
}

/* Gives the rank to a spare if one is ready; the place becomes that of a spare. */
static void replace(struct agent *a, int place) {
    struct crew_head *h = a->head;
    struct crew_worker *w = &h->worker[place];
    int rank = atomic_load(&w->rank), spare = rank < 0 ? -1 : find_ready(a, true);
    char text[64];
    if (spare >= 0) {
        struct crew_worker *s = &h->worker[spare];
        int core = atomic_load(&w->core);
        atomic_store(&w->rank, -1);
        atomic_store(&w->core, -1);
        atomic_store(&s->core, core);
        cores_pin(&a->cores, core, h->size.threads, a->process[spare].pid);
        atomic_store(&s->first_claimed, 0);
        atomic_store(&s->rank, rank);
        log_event(&a->log, LOG_INFO, "takeover", "worker=%d rank=%d of=%d", spare, rank, place);
        base_format(text, sizeof text, "rank %d of worker %d", rank, place);
        a->lost[rank].takeover = agent_fault(a, "takeover", spare, text, NAN);
    }
    if (atomic_load(&h->workers.reporter) == place) {
        int next = spare >= 0 ? spare : find_ready(a, false);
        if (next >= 0) {
            atomic_store(&h->workers.reporter, next);
            log_event(&a->log, LOG_INFO, "reporter", "worker=%d", next);
        }
    }
}

void agent_describe(const struct agent *a, int thread, char text[AT_TEXT]) {
    const struct crew_thread *h = &a->head->thread[thread];
    int lane = atomic_load(&h->lane);
    const char *name = recovery_name(&a->recovery, atomic_load(&h->item));
    char where[16 + LEG_TEXT] = "", leg[LEG_TEXT + 1];
    if (lane >= 0)
        base_format(where, sizeof where, " %d%s", lane, crew_name_leg(a->head, h, leg));
    unsigned step = atomic_load(&h->step); /* 0: it has just joined */
    if (!step) step = (unsigned)atomic_load(&a->head->course.opened);
    base_format(text, AT_TEXT, "step %u, %s%s%s%s", step,
                crew_at_name((enum crew_at)atomic_load(&h->at)), where,
                *name ? ", operator " : "", name);
}

int agent_thread_at_fault(const struct agent *a, int place) {
    const struct crew_head *h = a->head;
    int first = place * h->size.threads, crashed = atomic_load(&h->worker[place].crashed);
    if (a->process[place].stalled) return first + a->process[place].stalled - 1;
    for (int t = 0; t < h->size.threads && !crashed; t++) {
        int at = atomic_load(&h->thread[first + t].at);
        if (at != CREW_AT_WAIT && at != CREW_AT_REST) return first + t;
    }
    return crashed ? crashed - 1 : first;
}

static void restart_run(struct agent *a) {
    struct crew_head *h = a->head;
    struct crew_course *r = &h->course;
    agent_kill_all(a);
    if (a->launch->membership) membership_forgets(a->launch->membership);
    a->stopped = false;
    recovery_unmap(&a->recovery);
    if (ftruncate(a->fd, (off_t)crew_head_bytes())) {
        agent_print(a, "cannot empty the store: %s", strerror(errno));
        agent_end_now(a, 1);
        return;
    }
    agent_join_watchers(a);
    atomic_store(&h->layout.checked, 0);
    atomic_store(&h->layout.published, 0);
    atomic_store(&h->hosts.agrees, 0);
    hosts_begin(&h->hosts);
    atomic_store(&r->opened, 0);
    atomic_store(&r->committed, 0);
    atomic_store(&r->base, 0);
    atomic_store(&r->began, 0);
    atomic_store(&r->evaluated, 0);
    atomic_store(&r->n_policy_states, 0);
    memset(r->policy_state, 0, sizeof r->policy_state);
    memset(h->place, 0, sizeof h->place);
    if (agent_start_all(a)) {
        agent_print(a, "%s", tri_message());
        agent_end_now(a, 1);
    }
}

/* Before the first step nothing is lost by restarting the run; this is necessary if the reporter
 * died, because it may have been laying out the store or loading weights. */
static void restart_before_first_step(struct agent *a, int place) {
    if (atomic_load(&a->head->workers.reporter) == place)
        restart_run(a);
    else if (agent_start(a, place))
        agent_print(a, "%s", tri_message());
}

bool agent_is_starting(const struct agent *a, int place) {
    int at = atomic_load(&a->head->thread[place * a->head->size.threads].at);
    return at == CREW_AT_START || at == CREW_AT_COMPILE;
}

/* The order in which it has a role is given up. */
static void tell_groups(struct agent *a, int place) {
    struct crew_head *h = a->head;
    atomic_store(&h->worker[place].state, CREW_EMPTY);
    group_clear(&h->place[place]);
    for (int i = 0; a->recovery.view.base && i < h->layout.region[REGION_GROUPS].n; i++) {
        struct group g = crew_group(h, a->recovery.view.base, i);
        group_died(&g, place);
    }
}

/* Whether others still work on an order of this captain. */
static bool is_followed(const struct agent *a, int place) {
    struct crew_head *h = a->head;
    for (int i = 0; a->recovery.view.base && i < h->layout.region[REGION_GROUPS].n; i++) {
        struct group g = crew_group(h, a->recovery.view.base, i);
        if (atomic_load(&g.shared->captain) == place + 1 && !group_quiet(&g, place)) return true;
    }
    return false;
}

static void recover(struct agent *a, int place) {
    struct crew_head *h = a->head;
    struct process *p = &a->process[place];
    p->pending = is_followed(a, place);
    if (p->pending) return;
    recovery_of(&a->recovery, place);
    for (int i = 0; a->recovery.view.base && i < h->layout.region[REGION_GROUPS].n; i++) {
        struct group g = crew_group(h, a->recovery.view.base, i);
        group_forget(&g, place);
    }
    a->died |= crew_begun(h);
    const int64_t death = agent_fault(a, "death", place, p->identity + p->activity, NAN);
    agent_rank_lost(a, atomic_load(&h->worker[place].rank), p->died ? p->died : base_now(), death);
    if (crew_begun(h)) replace(a, place); /* else see restart_before_first_step */
    atomic_fetch_add(&h->workers.epoch, 1);
    wait_wake_after_death(&h->event);
    double after = p->died ? (double)(base_now() - p->died) / 1e6 : 0;
    log_event(&a->log, LOG_WARNING, "death", "worker=%d pid=%d recovered_ms=%g text=%s", place,
              (int)p->pid, after, p->identity + p->activity);
}

static void recover_from(struct agent *a, int place, int64_t when) {
    struct crew_head *h = a->head;
    struct process *p = &a->process[place];
    char text[AT_TEXT], seats[CREW_SEATS];
    agent_describe(a, agent_thread_at_fault(a, place), text);
    if (atomic_load(&h->worker[place].reads_lane))
        base_format(text, AT_TEXT, "step %u, data %d", atomic_load(&h->worker[place].reads_step),
                    atomic_load(&h->worker[place].reads_lane) - 1);
    p->dead = true;
    p->died = when;
    agent_end_times(a, place, when ? when : base_now());
    atomic_fetch_add(&h->worker[place].restarts, 1);
    if (recovery_map(&a->recovery)) {
        agent_print(a, "%s", tri_message());
        agent_end_now(a, 1);
    }
    p->activity = base_format(p->identity, sizeof p->identity, "worker %d (pid %d%s), ", place,
                              (int)p->pid, crew_name_seats(h, place, seats));
    base_format(p->identity + p->activity, AT_TEXT, "%s", text);
    tell_groups(a, place);
    recover(a, place);
}

/* The process is gone, so its watchers end, too. */
static void join_watchers_of(struct agent *a, int place) {
    int threads = a->head->size.threads;
    for (int t = 0; t < threads; t++) join_watcher(&a->watcher[place * threads + t]);
}

/* Whether a worker should not be started again: it died three times in a row before it could take
 * part, and was not killed from outside. */
static bool fails_to_start(struct agent *a, int place, int status, enum cause cause) {
    int *times = &a->failed_starts[place];
    *times = agent_is_starting(a, place) ? *times + (cause != CAUSE_KILL) : 0;
    if (*times < MOST_FAULTS) return false;
    bool alone = true;
    for (int i = 0; i < a->head->size.places; i++) alone &= i == place || !a->process[i].pid;
    agent_print(a, "worker %d has ended %d times before it could take part, and is not started "
                "again: %s", place, *times,
                alone ? "the run ends" : "the others continue without it");
    if (atomic_load(&a->head->worker[place].rank) >= 0)
        agent_rank_back(a, atomic_load(&a->head->worker[place].rank), -1, base_now());
    if (alone) agent_end_now(a, WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : 1);
    return true;
}

static void restart(struct agent *a, int place, int status, enum cause cause) {
    struct crew_head *h = a->head;
    join_watchers_of(a, place);
    if (a->stopped || atomic_exchange(&h->worker[place].leave, 0)) return;
    if (crew_begun(h) && fails_to_start(a, place, status, cause)) return;
    if (!crew_begun(h)) {
        restart_before_first_step(a, place);
    } else if (atomic_load(&h->course.ending) &&
               (atomic_load(&h->workers.reporter) != place || atomic_load(&h->course.closed))) {
        return; /* the others end the run; a dead reporter is replaced for that */
    } else if (agent_start(a, place)) {
        agent_print(a, "%s; the others continue without it", tri_message());
        if (atomic_load(&h->workers.reporter) == place) agent_end_now(a, 1);
    }
}

#define REPORTER_SPEAKS 3000000000 /* nanoseconds for the reporter to meet the same mistake */

/* A program that exits before the first step would do so again, so the run ends. Every worker
 * prints the reason, but only the reporter's output is seen; it gets a moment to print it. */
static bool ends_early(struct agent *a, int place, int status) {
    const struct crew_head *h = a->head;
    if (!WIFEXITED(status) || crew_begun(h)) return false;
    int code = WEXITSTATUS(status);
    if (atomic_load(&h->workers.reporter) != place && code && code != 127) {
        a->process[place].pid = 0;
        atomic_store(&a->head->worker[place].state, CREW_EMPTY);
        if (a->early_exit_deadline) return true;
        a->early_exit_deadline = base_now() + REPORTER_SPEAKS;
        a->early_exit_place = place;
        a->early_exit_code = code;
        return true;
    }
    if (code == 127)
        agent_print(a, "cannot start %s: does it exist, is it executable, and has it its libraries "
                    "(--env LD_LIBRARY_PATH)? See %s/worker-%d.out", a->launch->argv[0],
                    a->launch->out, place);
    else if (!code || (!a->launch->ends_with_run && !*h->worker[place].failure))
        agent_print(a, "worker %d exited with %d before it opened a run that trains", place, code);
    agent_end_now(a, code ? code : 1);
    return true;
}

static void check_early_exit(struct agent *a) {
    if (!a->early_exit_deadline || a->stopped || base_now() < a->early_exit_deadline) return;
    const char *said = a->head->worker[a->early_exit_place].failure;
    agent_print(a, "worker %d exited with %d before the first step%s%s; see %s/worker-%d.out",
                a->early_exit_place, a->early_exit_code, *said ? ": " : "", said,
                a->launch->out ? a->launch->out : "", a->early_exit_place);
    agent_end_now(a, a->early_exit_code);
}

static void print_death(struct agent *a, int place, int status, enum cause cause) {
    const struct crew_worker *w = &a->head->worker[place];
    struct text t = {0};
    text_add(&t, "%s: ", a->process[place].identity);
    if (WIFSIGNALED(status))
        text_add(&t, "killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        text_add(&t, "exited with %d%s%s", WEXITSTATUS(status), *w->failure ? ": " : "",
                 w->failure);
    if (cause == CAUSE_MEMORY) text_add(&t, " for lack of memory");
    if (WIFSIGNALED(status) && atomic_load(&w->sender) > 0)
        text_add(&t, ", sent by process %d", atomic_load(&w->sender));
    if (WIFSIGNALED(status) && atomic_load(&w->traced))
        text_add(&t, "; see %s/worker-%d.out for a trace", a->launch->out, place);
    const char *said = t.failed ? a->process[place].identity : t.data;
    agent_print(a, "%s", said);
    agent_event(a, "death", place, -1, said);
    text_free(&t);
}

static void process_ended(struct agent *a, int place, int status) {
    struct process *p = &a->process[place];
    struct crew_worker *w = &a->head->worker[place];
    if (!recovery_map(&a->recovery)) /* else recover_from reports the failure */
        recovery_of_samples(&a->recovery, place);
    if (!p->dead && atomic_load(&w->state) == CREW_LEFT) {
        if (atomic_load(&a->head->workers.reporter) == place)
            a->reporter_code = WIFEXITED(status) ? WEXITSTATUS(status) : !a->launch->ends_with_run;
        log_event(&a->log, LOG_INFO, "left", "worker=%d", place);
        if (WIFSIGNALED(status) && !a->launch->ends_with_run)
            agent_print(a, "worker %d (pid %d) was killed by signal %d (%s) after it closed the "
                        "run", place, (int)p->pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
        join_watchers_of(a, place);
        p->pid = 0;
        atomic_store(&w->state, CREW_EMPTY);
        return;
    }
    if (!p->dead && ends_early(a, place, status)) return;
    if (!p->dead) recover_from(a, place, 0);
    enum cause cause = p->freed ? CAUSE_KILL : agent_cause(a, place, status);
    if (!p->freed) print_death(a, place, status, cause);
    p->pid = 0;
    atomic_store(&w->state, CREW_EMPTY);
    if (!p->freed) agent_count_death(a, place, cause);
    restart(a, place, status, cause);
}

static bool has_ended(pid_t pid) {
    siginfo_t info = {.si_pid = 0};
    return pid && !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid;
}

/* Kills the processes that the worker has started, while its pid cannot be reused yet. */
static void reap(struct agent *a, int place) {
    pid_t pid = a->process[place].pid;
    int status;
    kill(-pid, SIGKILL);
    agent_end_times(a, place, base_now());
    if (waitpid(pid, &status, 0) == pid) process_ended(a, place, status);
}

void agent_reap(struct agent *a) {
    check_early_exit(a);
    agent_check_memory(a);
    for (int i = 0; i < a->head->size.places; i++) {
        struct process *p = &a->process[i];
        if (!p->pid) continue;
        if (p->pending) recover(a, i);
        start_watchers(a, i);
        bool any = false;
        int64_t when = alive(a, i) ? all_dead(a, i, &any) : 0;
        bool left = atomic_load(&a->head->worker[i].state) == CREW_LEFT;
        if (any && !left) agent_kill(a, i); /* a thread of it is dead */
        if (when && !left && crew_begun(a->head)) recover_from(a, i, when);
        bool ended = !p->pending && has_ended(p->pid);
        if (ended && !p->dead && crew_begun(a->head) &&
            atomic_load(&a->head->worker[i].state) != CREW_LEFT)
            recover_from(a, i, 0);
        if (ended && !p->pending) reap(a, i);
    }
}
