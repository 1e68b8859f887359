/* SPDX-License-Identifier: Apache-2.0
 * Workers that are there and do nothing: stopped, in an endless loop, in a deadlock. Each says what it is
 * at and counts its turns; what counts no more for longer than its patience is named, and killed. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "launch/agent_inside.h"

#define NEVER 1e18
#define SLOWER 20 /* than the operator has ever been */
#define LOOKS 20         /* in the time of a stall */
#define LONGEST 4        /* intervals between two looks that count: in any more the agent slept */

static double patience(const struct agent *a, const struct crew_thread *h, bool *kills) {
    const struct launch *l = a->launch;
    double slow = SLOWER * 1e-9 * (double)recovery_slowest(&a->recovery, atomic_load(&h->item));
    int at = atomic_load(&h->at);
    *kills = at != CREW_AT_DATA && at != CREW_AT_CALLBACK && at != CREW_AT_EVALUATE && at != CREW_AT_SAVE;
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

/* "; workers 0, 2 and 3 wait for it": who does meanwhile. */
static void waiting(const struct agent *a, int place, struct text *out) {
    const struct crew_head *h = a->head;
    int who[CREW_MOST_WORKERS], n = 0;
    for (int i = 0; i < h->places; i++)
        if (i != place && a->process[i].pid && atomic_load(&h->worker[i].rank) >= 0 &&
            atomic_load(&h->thread[i * h->threads].at) == CREW_AT_WAIT)
            who[n++] = i;
    if (n) text_add(out, "; worker%s", n == 1 ? "" : "s");
    for (int i = 0; i < n; i++) text_add(out, "%s%d", !i ? " " : i < n - 1 ? ", " : " and ", who[i]);
    if (n) text_add(out, " wait%s for it", n == 1 ? "s" : "");
}

/* ---- time ----
 * A thread in state R may wait for a processor, which is no fault of its own: only the processor
 * time it uses counts. In every other state all time counts. */

/* False: the thread cannot be read, or is of another PID namespace. */
static bool read_thread(pid_t pid, int thread, char *state, double *used) {
    char path[64], line[512] = "";
    unsigned long user, system;
    base_format(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, thread);
    FILE *f = fopen(path, "r");
    if (f && !fgets(line, sizeof line, f)) *line = 0;
    if (f) fclose(f);
    const char *name_ends = strrchr(line, ')');
    static const char format[] = ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu";
    if (!name_ends || sscanf(name_ends, format, state, &user, &system) != 3) return false;
    *used = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
    return true;
}

static void look_at_thread(struct seen *s, pid_t pid, int thread, double passed) {
    double before = s->used;
    s->passed = passed;
    s->state = '?';
    if (read_thread(pid, thread, &s->state, &s->used) && s->state == 'R')
        s->passed = s->used - before < passed ? s->used - before : passed;
}

/* Of all hands of a worker. The first may wait for others: then their time counts. */
static void look_at_threads(struct agent *a, int place, double passed) {
    const struct crew_head *h = a->head;
    struct process *p = &a->process[place];
    for (int t = 0; t < h->threads; t++) {
        const struct crew_thread *thread = &h->thread[place * h->threads + t];
        int tid = atomic_load(&thread->tid);
        p->seen[t].state = 0;
        if (t && !atomic_load(&thread->held)) continue;
        look_at_thread(&p->seen[t], p->pid, tid ? tid : (int)p->pid, passed);
    }
    for (int t = 1; t < h->threads; t++)
        if (p->seen[0].state == 'S' && p->seen[t].state == 'R' &&
            p->seen[t].passed < p->seen[0].passed)
            p->seen[0].passed = p->seen[t].passed;
}

/* ---- one hand ---- */

static void stalled(struct agent *a, int place, int thread, double still, bool kills) {
    struct text who = {0};
    char text[512], at[AT_TEXT];
    waiting(a, place, &who);
    agent_describe(a, place * a->head->threads + thread, at);
    base_format(text, sizeof text, "worker %d (pid %d) makes no progress: %s, for %.1f s%s", place,
                (int)a->process[place].pid, at, still, who.data ? who.data : "");
    log_event(&a->log, LOG_WARNING, "stall", "worker=%d seconds=%g text=%s", place, still, text);
    agent_tell(a, "%s%s", text, a->launch->no_kill ? "; nobody is killed (--no-kill)"
                                : kills ? "; it is killed"
                                        : "; the user's code and files may take their time: it is not killed");
    agent_event(a, "stall", place, -1, text);
    text_free(&who);
    if (!kills || a->launch->no_kill) return;
    a->process[place].stalled = 1 + thread;
    a->process[place].stopped = a->process[place].seen[thread].state == 'T'; /* by a signal */
    agent_kill(a, place);
}

static void look(struct agent *a, int place, int thread) {
    struct crew_thread *t = &a->head->thread[place * a->head->threads + thread];
    struct seen *s = &a->process[place].seen[thread];
    uint64_t turns = atomic_load(&t->turns);
    bool kills;
    if (turns != s->turns) {
        s->turns = turns;
        s->still = 0;
        s->warned = s->stopped = false;
        return;
    }
    s->still += s->passed;
    /* T: by SIGSTOP or the like, not by a debugger: whatever it is at, it does not take time. */
    if (!thread && !s->stopped && s->still > a->launch->stall_timeout && s->state == 'T') {
        s->stopped = s->warned = true;
        stalled(a, place, thread, s->still, true);
        return;
    }
    if (s->warned || s->still <= patience(a, t, &kills)) return;
    s->warned = true;
    stalled(a, place, thread, s->still, kills);
}

/* ---- all of them ---- */

/* Grows with all that anybody does for a step. */
static uint64_t work_done(const struct agent *a) {
    const struct crew_head *h = a->head;
    uint64_t sum = atomic_load(&h->committed) + atomic_load(&h->epoch);
    for (int i = 0; i < h->places * h->threads; i++) {
        const struct crew_thread *thread = &h->thread[i];
        sum += (uint64_t)(atomic_load(&thread->compute) + atomic_load(&thread->reduce) + atomic_load(&thread->data));
    }
    return sum;
}

/* A step is open, somebody is there, and nobody is at anything. *passed: the least that has passed
 * for any of them, as a thread that waits for a processor may go on once it has it. */
static bool all_wait(const struct agent *a, double *passed) {
    const struct crew_head *h = a->head;
    bool anybody = false;
    if (atomic_load(&h->opened) <= atomic_load(&h->committed) || atomic_load(&h->ending)) return false;
    for (int i = 0; i < h->places; i++)
        for (int t = 0; a->process[i].pid && t < h->threads; t++) {
            const struct seen *s = &a->process[i].seen[t];
            int at = atomic_load(&h->thread[i * h->threads + t].at);
            if (at != CREW_AT_WAIT && at != CREW_AT_REST) return false;
            if (s->state && s->passed < *passed) *passed = s->passed;
            anybody = true;
        }
    return anybody;
}

/* Whatever the reason is: who waits counts turns and is no stall, but all of them at once are. */
static void look_at_all(struct agent *a, double passed) {
    uint64_t done = work_done(a);
    if (!all_wait(a, &passed) || done != a->done_seen) {
        a->done_seen = done;
        a->idle = 0;
        return;
    }
    a->idle += passed;
    if (a->idle <= a->launch->stall_timeout || a->stopped) return;
    a->idle = 0;
    char text[160];
    base_format(text, sizeof text, "all workers wait for each other in step %llu, for %g s: nothing of it can go on",
                (unsigned long long)atomic_load(&a->head->opened), a->launch->stall_timeout);
    agent_event(a, "stall", -1, -1, text);
    recovery_log(&a->recovery, &a->log);
    if (a->launch->no_kill)
        agent_tell(a, "%s", text);
    else
        agent_fail(a, text);
}

void agent_watch(struct agent *a) {
    const struct crew_head *h = a->head;
    int64_t now = base_now();
    double interval = a->launch->stall_timeout / LOOKS;
    double passed = a->looked ? (double)(now - a->looked) / 1e9 : interval;
    if (passed < interval) return;
    if (passed > LONGEST * interval) passed = LONGEST * interval;
    a->looked = now;
    for (int i = 0; i < h->places; i++) {
        if (!a->process[i].pid || a->process[i].dead) continue;
        look_at_threads(a, i, passed);
        for (int t = 0; t < h->threads; t++)
            if (a->process[i].seen[t].state) look(a, i, t);
    }
    look_at_all(a, passed);
}
