/* SPDX-License-Identifier: Apache-2.0
 * Why a worker died, and whether the run can go on after it. A fault would strike again, and so
 * would a lack of memory; a kill says nothing about the program. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/host.h"
#include "launch/agent_inside.h"

/* ---- the cause ---- */

#define LOOK 1000000000         /* nanoseconds between two looks at the count of kills */
#define DIES_WITHIN 30000000000 /* of such a kill: it is counted first, and much memory takes long to free */

/* Counts the kills for lack of memory in our control group that no death has been put down to yet.
 * Other processes of the group may have been killed: what is old is forgotten. */
static void count_oom_kills(struct agent *a, int64_t now) {
    struct host h;
    host_read("", &h);
    if (now - a->oom.rose > DIES_WITHIN) a->oom.open = 0;
    if (a->oom.looked && h.oom_kills > a->oom.seen) {
        a->oom.open += (int)(h.oom_kills - a->oom.seen);
        a->oom.rose = now;
    }
    a->oom.seen = h.oom_kills;
    a->oom.looked = now;
}

void agent_watch_memory(struct agent *a) {
    int64_t now = base_now();
    if (!a->oom.looked || now - a->oom.looked > LOOK) count_oom_kills(a, now);
}

static bool lacked_memory(struct agent *a) {
    count_oom_kills(a, base_now());
    if (!a->oom.open) return false;
    a->oom.open--;
    return true;
}

static bool is_fault_signal(int sig) {
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS, SIGTRAP};
    bool is = false;
    for (size_t i = 0; i < COUNT(signals); i++) is |= sig == signals[i];
    return is;
}

enum cause agent_cause(struct agent *a, int place, int status) {
    const struct process *p = &a->process[place];
    if (p->stalled) return p->stopped ? CAUSE_KILL : CAUSE_FAULT;
    if (WIFEXITED(status)) return CAUSE_FAULT;
    /* A worker that cannot report, as at start-up, has no sender. */
    if (is_fault_signal(WTERMSIG(status)))
        return atomic_load(&a->head->worker[place].sender) ? CAUSE_KILL : CAUSE_FAULT;
    return WTERMSIG(status) == SIGKILL && lacked_memory(a) ? CAUSE_MEMORY : CAUSE_KILL;
}

/* ---- what follows ---- */

#define MOST_KILLS 1000 /* without a step that is done */

/* Whether this is the third fault at one place of one step. A worker that joins a run under way
 * and dies before it can take part is not counted: the others may go on without it (deaths.c). */
static bool same_grave(struct agent *a, int place) {
    const struct crew_thread *thread = &a->head->thread[agent_thread_to_tell_of(a, place)];
    const struct crew_worker *w = &a->head->worker[place];
    struct grave here = {atomic_load(&a->head->opened), atomic_load(&thread->at),
                         atomic_load(&thread->lane), atomic_load(&thread->item), 1};
    if (crew_begun(a->head) && agent_is_starting(a, place)) return false;
    if (atomic_load(&w->reads_lane)) /* ahead: a worker that reads it when it is wanted dies, too */
        here = (struct grave){atomic_load(&w->reads_step), CREW_AT_DATA,
                              atomic_load(&w->reads_lane) - 1, -1, 1};
    for (size_t i = 0; i < COUNT(a->grave); i++) {
        struct grave *g = &a->grave[i];
        bool same = g->step == here.step && g->at == here.at && g->lane == here.lane &&
                    g->item == here.item;
        if (g->times && same) return ++g->times >= TOO_MANY;
    }
    a->grave[a->next_grave] = here;
    a->next_grave = (a->next_grave + 1) % (int)COUNT(a->grave);
    return false;
}

/* If the worker that saves then dies there too, nothing is left to be done. */
static void end_hopeless(struct agent *a, int place, const char *why) {
    int at = atomic_load(&a->head->thread[agent_thread_to_tell_of(a, place)].at);
    if (!a->hopeless)
        agent_fail(a, why);
    else if (at == CREW_AT_SAVE)
        agent_give_up(a, 1);
}

static double mib(int64_t bytes) { return (double)bytes / (1 << 20); }

static void weigh_fault(struct agent *a, int place, int n) {
    (void)n;
    if (same_grave(a, place)) end_hopeless(a, place, "three workers have died there");
}

static void weigh_memory(struct agent *a, int place, int n) {
    char why[512], plan[64] = "";
    struct host h;
    int64_t planned = atomic_load(&a->head->planned);
    if (n < TOO_MANY) return;
    host_read("", &h);
    if (planned) base_format(plan, sizeof plan, ", the plan is %.1f MiB", mib(planned));
    base_format(why, sizeof why,
                "three workers were killed for lack of memory: %s %.1f MiB%s; fewer workers, "
                CREW_LESS_MEMORY,
                h.limit ? "the limit of the cgroup is" : "the machine has",
                mib(h.limit ? h.limit : h.memory), plan);
    end_hopeless(a, place, why);
}

static void weigh_kill(struct agent *a, int place, int n) {
    char why[96];
    unsigned long long step = atomic_load(&a->head->opened);
    if (n == TOO_MANY)
        agent_tell(a, "three workers were killed in step %llu, none by a fault of its own: the run "
                   "goes on", step);
    base_format(why, sizeof why, "%d workers were killed in step %llu", MOST_KILLS, step);
    if (n >= MOST_KILLS) end_hopeless(a, place, why);
}

void agent_weigh(struct agent *a, int place, enum cause cause) {
    static void (*const weigh[CAUSES])(struct agent *, int, int) = {
        [CAUSE_FAULT] = weigh_fault, [CAUSE_MEMORY] = weigh_memory, [CAUSE_KILL] = weigh_kill};
    uint64_t committed = atomic_load(&a->head->committed);
    if (committed > a->deaths_since.step) { /* not less, as in a run that begins anew */
        memset(&a->deaths_since, 0, sizeof a->deaths_since);
        a->deaths_since.step = committed;
    }
    weigh[cause](a, place, ++a->deaths_since.times[cause]);
}
