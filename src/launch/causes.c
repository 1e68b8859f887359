/* SPDX-License-Identifier: Apache-2.0
 * Why a worker died, and whether the run can go on. A fault would happen again, and so would a lack
 * of memory. A kill from outside says nothing about the program. */
#include <string.h>
#include <sys/wait.h>

#include "base/host.h"
#include "crew/messages.h"
#include "launch/agent_inside.h"

/* ---- the cause ---- */

#define LOOK 1000000000         /* nanoseconds between two readings of the count of kills */
#define DIES_WITHIN 30000000000 /* nanoseconds from the count to the death: freeing takes long */

/* Counts the kills for lack of memory in our control group that no death explains yet. Old ones are
 * discarded, because other processes of the group may have been killed. */
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

void agent_check_memory(struct agent *a) {
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
    /* A worker that could not record a sender, as during start-up, has none. */
    if (is_fault_signal(WTERMSIG(status)))
        return atomic_load(&a->head->worker[place].sender) ? CAUSE_KILL : CAUSE_FAULT;
    return WTERMSIG(status) == SIGKILL && lacked_memory(a) ? CAUSE_MEMORY : CAUSE_KILL;
}

/* ---- the consequence ---- */

#define MOST_KILLS 1000 /* before a step is done */

/* Whether this is the third fault at one place of one step. A worker that joins a run and dies
 * before it can take part does not count: the others continue without it (deaths.c). */
static bool is_third_fault(struct agent *a, int place) {
    const struct crew_thread *thread = &a->head->thread[agent_thread_at_fault(a, place)];
    const struct crew_worker *w = &a->head->worker[place];
    struct fault_place here = {atomic_load(&a->head->course.opened), atomic_load(&thread->at),
                         atomic_load(&thread->lane), atomic_load(&thread->item), 1};
    if (crew_begun(a->head) && agent_is_starting(a, place)) return false;
    /* It died reading ahead: a worker that reads the same sample later would die, too. */
    if (atomic_load(&w->reads_lane))
        here = (struct fault_place){atomic_load(&w->reads_step), CREW_AT_DATA,
                              atomic_load(&w->reads_lane) - 1, -1, 1};
    for (size_t i = 0; i < COUNT(a->fault_place); i++) {
        struct fault_place *g = &a->fault_place[i];
        bool same = g->step == here.step && g->at == here.at && g->lane == here.lane &&
                    g->item == here.item;
        if (g->times && same) return ++g->times >= MOST_FAULTS;
    }
    a->fault_place[a->next_fault_place] = here;
    a->next_fault_place = (a->next_fault_place + 1) % (int)COUNT(a->fault_place);
    return false;
}

/* Lets a worker save and then ends the run. If that worker dies while saving, ends it now. */
static void end_after_save(struct agent *a, int place, const char *why) {
    int at = atomic_load(&a->head->thread[agent_thread_at_fault(a, place)].at);
    if (!a->forced_code)
        agent_fail(a, why);
    else if (at == CREW_AT_SAVE)
        agent_end_now(a, 1);
}

static double mib(int64_t bytes) { return (double)bytes / (1 << 20); }

static void count_fault(struct agent *a, int place, int n) {
    (void)n;
    if (is_third_fault(a, place)) end_after_save(a, place, "three workers have died there");
}

static void count_oom_death(struct agent *a, int place, int n) {
    char why[512], plan[64] = "";
    struct host h;
    int64_t planned = atomic_load(&a->head->layout.planned);
    if (n < MOST_FAULTS) return;
    host_read("", &h);
    if (planned) base_format(plan, sizeof plan, ", the plan is %.1f MiB", mib(planned));
    base_format(why, sizeof why,
                "three workers were killed for lack of memory: %s %.1f MiB%s; fewer workers, "
                CREW_LESS_MEMORY,
                h.limit ? "the limit of the cgroup is" : "the machine has",
                mib(h.limit ? h.limit : h.memory), plan);
    end_after_save(a, place, why);
}

static void count_kill(struct agent *a, int place, int n) {
    char why[96];
    unsigned long long step = atomic_load(&a->head->course.opened);
    if (n == MOST_FAULTS)
        agent_print(a, "three workers were killed in step %llu, from outside: the run goes on",
                    step);
    base_format(why, sizeof why, "%d workers were killed in step %llu", MOST_KILLS, step);
    if (n >= MOST_KILLS) end_after_save(a, place, why);
}

void agent_count_death(struct agent *a, int place, enum cause cause) {
    static void (*const count[CAUSES])(struct agent *, int, int) = {
        [CAUSE_FAULT] = count_fault, [CAUSE_MEMORY] = count_oom_death, [CAUSE_KILL] = count_kill};
    uint64_t committed = atomic_load(&a->head->course.committed);
    if (committed > a->deaths_since.step) { /* it is less after a restart of the run */
        memset(&a->deaths_since, 0, sizeof a->deaths_since);
        a->deaths_since.step = committed;
    }
    count[cause](a, place, ++a->deaths_since.times[cause]);
}
