/* SPDX-License-Identifier: Apache-2.0
 * Measures the speed of a run and stops it when the speed is known. */
#include "launch/agent_inside.h"

#define WARM_STEPS 2
#define WARM_SECONDS 0.3

static double since(const struct crew_head *h, int64_t then) {
    return (double)(atomic_load(&h->course.committed_at) - then) / 1e9;
}

static void read_loss_time(const struct agent *a, struct launch_timing *t) {
    const struct crew_course *r = &a->head->course;
    const int64_t steps = (int64_t)atomic_load(&r->reached);
    if (!steps) return;
    t->loss_steps = steps;
    t->loss_seconds = (double)(atomic_load(&r->reached_at) - atomic_load(&r->began)) / 1e9;
}

/* The time that all threads have waited for others in their steps, in seconds. */
static double waited(const struct crew_head *h) {
    int64_t all[SPENTS] = {0};
    for (int i = 0; i < h->size.place_threads; i++)
        spending_add(&h->thread[i].spending, base_now(), all);
    return (double)(spent_of(all, SPENT_WAITS) - all[SPENT_WAIT_THREADS]) / 1e9;
}

void agent_time(struct agent *a) {
    struct launch_timing *t = a->launch->timing;
    const struct crew_head *h = a->head;
    int64_t done = (int64_t)atomic_load(&h->course.committed);
    if (!t || a->timed || done < WARM_STEPS) return;
    read_loss_time(a, t);
    if (!a->timing_since) {
        if (since(h, atomic_load(&h->course.began)) < WARM_SECONDS) return;
        a->timing_since = atomic_load(&h->course.committed_at);
        a->timing_first = done;
        a->timing_waited = waited(h);
    }
    double passed = since(h, a->timing_since);
    int64_t steps = done - a->timing_first;
    if (passed > 0 && steps > 0) {
        t->rate = (double)steps / passed;
        t->stages = h->layout.legs.stages;
        int threads = h->size.workers * h->size.threads;
        t->waiting = (waited(h) - a->timing_waited) / (passed * threads);
    }
    bool enough = t->steps ? steps >= t->steps : passed >= t->seconds && steps >= 3;
    if (!enough || (t->until_loss > 0 && t->loss_seconds <= 0 && !t->steps)) return;
    a->timed = t->known = true;
    atomic_store(&a->head->asked.stop, CREW_STOP_ASKED);
}
