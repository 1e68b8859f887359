/* SPDX-License-Identifier: Apache-2.0
 * -n auto: the first steps run with different numbers of workers, and their speed decides. They are
 * steps like any others, because results do not depend on the number. */
#include "launch/agent_inside.h"

#define ENOUGH_STEPS 3
#define ENOUGH_TIME 0.4 /* seconds */
#define GAIN 1.02       /* least speed-up for which more workers are worth their cores */

/* The first `ranks` workers take part, the others wait. The reporter is in the first place. */
static void set_ranks(struct agent *a, int ranks) {
    struct crew_head *h = a->head;
    for (int i = 0; i < h->size.workers; i++) atomic_store(&h->worker[i].rank, i < ranks ? i : -1);
    atomic_store(&h->workers.ranks, ranks);
    crew_notify(a->head);
}

static void begin(struct agent *a, int ranks) {
    struct choice *c = &a->choice;
    c->ranks = ranks;
    set_ranks(a, ranks);
    /* The open step began with other ranks. */
    c->first = atomic_load(&a->head->course.committed) + 2;
    c->since = 0;
}

static void print_choice(struct agent *a, int best) {
    struct choice *c = &a->choice;
    struct text t = {0};
    int threads = a->head->size.threads;
    for (int n = 1; n <= a->head->size.workers; n++)
        if (c->rate[n] > 0 && n != 1)
            text_add(&t, "%s%d workers at %.2f times the rate of one", t.size ? ", " : "", n,
                     c->rate[n] / c->rate[1]);
    agent_print(a, "-n auto: %d worker(s) with %d thread(s) (measured in the first %llu steps: %s)",
                best, threads,
                (unsigned long long)atomic_load(&a->head->course.committed), t.data ? t.data : "");
    text_free(&t);
}

static void decide(struct agent *a) {
    struct choice *c = &a->choice;
    struct crew_head *h = a->head;
    int best = 1;
    for (int n = 2; n <= h->size.workers; n++)
        if (c->rate[n] > c->rate[best] * GAIN) best = n;
    print_choice(a, best);
    set_ranks(a, best);
    for (int i = best; i < h->size.workers; i++) atomic_store(&h->worker[i].leave, 1);
    a->automatic = false;
    crew_notify(a->head);
}

/* More workers would have nothing to do. */
static int most_useful(const struct crew_head *h) {
    return h->layout.lanes * (h->layout.seats ? h->layout.seats : 1);
}

static int next_fewer(const struct agent *a, int ranks) {
    int next = ranks > 2 ? (ranks + 1) / 2 : ranks - 1, most = most_useful(a->head);
    return next > most ? most : next;
}

void agent_choose_workers(struct agent *a) {
    struct choice *c = &a->choice;
    struct crew_head *h = a->head;
    uint64_t done = atomic_load(&h->course.committed);
    if (!a->automatic || a->stopped || !crew_begun(h)) return;
    if (a->died) { /* ranks and the reporter may have moved */
        int ranks = atomic_load(&h->workers.ranks);
        agent_print(a, "-n auto: a worker has died before the measurement was finished: the number "
                    "of workers stays %d", ranks);
        a->automatic = false;
        return;
    }
    if (!c->ranks) begin(a, h->size.workers > most_useful(h) ? most_useful(h) : h->size.workers);
    if (done < c->first) return;
    if (!c->since) {
        c->first = done;
        c->since = atomic_load(&h->course.committed_at);
    }
    double passed = (double)(atomic_load(&h->course.committed_at) - c->since) / 1e9;
    if (done < c->first + ENOUGH_STEPS || passed < ENOUGH_TIME) return;
    c->rate[c->ranks] = (double)(done - c->first) / passed;
    if (c->ranks > 1)
        begin(a, next_fewer(a, c->ranks));
    else
        decide(a);
}
