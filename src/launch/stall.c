/* SPDX-License-Identifier: Apache-2.0
 * Workers that make no progress: stopped, in an endless loop, in a deadlock. Every thread publishes
 * its activity and a heartbeat. If the heartbeat stays the same for longer than the activity's
 * time limit, the worker is reported and killed. */
#include <math.h>
#include <unistd.h>

#include "base/host.h"
#include "launch/agent_inside.h"

#define NEVER 1e18
#define SLOWER 20 /* times the longest time of the operator so far */
#define LOOKS (2 * SLOWER) /* checks per stall timeout: two for a time that counts, see learn */
#define LONGEST 8 /* intervals between two checks; in a longer time the agent was suspended */

static double time_limit(const struct agent *a, const struct crew_thread *h, bool *kills) {
    const struct launch *l = a->launch;
    const double *slowest = recovery_slowest(&a->recovery, atomic_load(&h->item));
    double slow = slowest ? SLOWER * *slowest : 0;
    int at = atomic_load(&h->at);
    *kills = at != CREW_AT_DATA && at != CREW_AT_CALLBACK && at != CREW_AT_EVALUATE &&
             at != CREW_AT_SAVE;
    switch (at) {
    case CREW_AT_START:
    case CREW_AT_COMPILE:
        return l->start_timeout;
    case CREW_AT_LEAVE:
    case CREW_AT_REST:
        return NEVER;
    case CREW_AT_LANE:
        return slow > l->stall_timeout ? slow : l->stall_timeout;
    default:
        return l->stall_timeout;
    }
}

/* Adds "; workers 0, 2 and 3 wait for it". */
static void add_waiting(const struct agent *a, int place, struct text *out) {
    const struct crew_head *h = a->head;
    int who[CREW_MOST_WORKERS], n = 0;
    for (int i = 0; i < h->size.places; i++)
        if (i != place && a->process[i].pid && atomic_load(&h->worker[i].rank) >= 0 &&
            atomic_load(&h->thread[i * h->size.threads].at) == CREW_AT_WAIT)
            who[n++] = i;
    if (n) text_add(out, "; worker%s", n == 1 ? "" : "s");
    for (int i = 0; i < n; i++)
        text_add(out, "%s%d", !i ? " " : i < n - 1 ? ", " : " and ", who[i]);
    if (n) text_add(out, " wait%s for it", n == 1 ? "s" : "");
}

/* ---- time ---- */

/* A thread in state R may be waiting for a processor, so only the processor time that it uses
 * counts. In every other state all time counts. */

static void measure_thread(struct seen *s, pid_t pid, int thread, double passed) {
    const double before = s->used;
    struct host_thread t; /* another PID namespace has none */
    s->passed = passed;
    s->state = '?';
    if (!host_thread("", pid, thread, &t)) return;
    s->state = t.state;
    s->used = (double)t.ticks / (double)sysconf(_SC_CLK_TCK);
    if (s->state == 'R') s->passed = fmin(s->used - before, passed);
}

/* Measures all threads of a worker. If the first one sleeps, it may be waiting for a running one:
 * then that one's time counts. */
static void measure_threads(struct agent *a, int place, double passed) {
    const struct crew_head *h = a->head;
    struct process *p = &a->process[place];
    for (int t = 0; t < h->size.threads; t++) {
        const struct crew_thread *thread = &h->thread[place * h->size.threads + t];
        int tid = atomic_load(&thread->tid);
        p->seen[t].state = 0;
        if (t && !atomic_load(&thread->held)) continue;
        measure_thread(&p->seen[t], p->pid, tid ? tid : (int)p->pid, passed);
    }
    for (int t = 1; t < h->size.threads; t++)
        if (p->seen[0].state == 'S' && p->seen[t].state == 'R' &&
            p->seen[t].passed < p->seen[0].passed)
            p->seen[0].passed = p->seen[t].passed;
}

/* ---- one thread ---- */

static void stalled(struct agent *a, int place, int thread, double still, bool kills) {
    struct text who = {0};
    char text[512], at[AT_TEXT], seats[CREW_SEATS];
    add_waiting(a, place, &who);
    agent_describe(a, place * a->head->size.threads + thread, at);
    base_format(text, sizeof text, "worker %d (pid %d%s) makes no progress: %s, for %.1f s%s",
                place, (int)a->process[place].pid, crew_name_seats(a->head, place, seats), at,
                still, who.data ? who.data : "");
    log_event(&a->log, LOG_WARNING, "stall", "worker=%d cost=%g text=%s", place, still, text);
    agent_fault(a, "stall", place, text, still);
    const char *what = kills ? "; it is killed" : "; reading data, callbacks and saving may take "
                                                  "long, so it is not killed";
    agent_print(a, "%s%s", text, a->launch->no_kill ? "; it is not killed (--no-kill)" : what);
    agent_event(a, "stall", place, -1, text);
    text_free(&who);
    if (!kills || a->launch->no_kill) return;
    a->idle = 0; /* the others wait for this one */
    a->process[place].stalled = 1 + thread;
    a->process[place].stopped = a->process[place].seen[thread].state == 'T'; /* by a signal */
    agent_kill(a, place);
}

/* The operator was at work at several looks, and no longer is. It took at most a look longer at
 * each end. One that was at work at a single look took less than two of them, so that SLOWER times
 * its time is less than the stall timeout. */
static void learn(struct agent *a, const struct seen *s, double look) {
    double *slowest = recovery_slowest(&a->recovery, s->item);
    double took = s->still + 2 * look;
    if (slowest && s->still > 0 && took > *slowest) *slowest = took;
}

/* look: seconds since the last one. */
static void check_thread(struct agent *a, int place, int thread, double look) {
    struct crew_thread *t = &a->head->thread[place * a->head->size.threads + thread];
    struct seen *s = &a->process[place].seen[thread];
    uint64_t heartbeat = atomic_load(&t->heartbeat);
    if (heartbeat != s->heartbeat) {
        learn(a, s, look);
        s->heartbeat = heartbeat;
        s->still = 0;
        s->warned = s->stopped = false;
        return;
    }
    bool kills;
    const int item = atomic_load(&t->item);
    const double limit = time_limit(a, t, &kills);
    if (atomic_load(&t->heartbeat) != heartbeat) return; /* item and limit may be the next one's */
    s->still += s->passed;
    s->item = item;
    /* T: stopped by SIGSTOP or the like, but not by a debugger. No activity excuses that. */
    if (!thread && !s->stopped && s->still > a->launch->stall_timeout && s->state == 'T') {
        s->stopped = s->warned = true;
        stalled(a, place, thread, s->still, true);
        return;
    }
    if (s->warned || s->still <= limit) return;
    s->warned = true;
    stalled(a, place, thread, s->still, kills);
}

void agent_check_progress(struct agent *a) {
    const struct crew_head *h = a->head;
    int64_t now = base_now();
    double interval = a->launch->stall_timeout / LOOKS;
    double passed = a->looked ? (double)(now - a->looked) / 1e9 : interval;
    if (passed < interval) return;
    if (passed > LONGEST * interval) passed = LONGEST * interval;
    a->looked = now;
    for (int i = 0; i < h->size.places; i++) {
        if (!a->process[i].pid || a->process[i].dead) continue;
        measure_threads(a, i, passed);
        for (int t = 0; t < h->size.threads; t++)
            if (a->process[i].seen[t].state) check_thread(a, i, t, passed);
    }
    agent_check_standstill(a, passed);
}
