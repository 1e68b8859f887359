/* SPDX-License-Identifier: Apache-2.0
 * -n auto: the first steps run with different numbers of workers, and their speed decides. They are
 * steps like any others, because results do not depend on the number. If prices of units say how
 * fast each number is, only those are tried that are close to the best, which is first. */
#include "launch/agent_inside.h"

#define ENOUGH_STEPS 3
#define ENOUGH_TIME 0.4 /* seconds */
#define CLOSE 1.1       /* predicted times that are so close are measured */
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

static bool is_predicted(const struct agent *a) { return a->launch->predicted[1] > 0; }

static void print_choice(struct agent *a, int best) {
    struct choice *c = &a->choice;
    struct text t = {0};
    int threads = a->head->size.threads;
    const int one = c->rate[1] > 0 ? 1 : best; /* the others' rates are compared with this one's */
    for (int n = 1; n <= a->head->size.workers; n++)
        if (c->rate[n] > 0 && n != one)
            text_add(&t, "%s%d worker(s) at %.2f times the rate of %d", t.size ? ", " : "", n,
                     c->rate[n] / c->rate[one], one);
    if (is_predicted(a))
        text_add(&t, "%s%d predicted at %.2f times the rate of one", t.size ? "; " : "", best,
                 a->launch->predicted[1] / a->launch->predicted[best]);
    agent_print(a, "-n auto: %d worker(s) with %d thread(s) (measured in the first %llu steps: %s)",
                best, threads,
                (unsigned long long)atomic_load(&a->head->course.committed), t.data ? t.data : "");
    text_free(&t);
}

static void decide(struct agent *a) {
    struct choice *c = &a->choice;
    struct crew_head *h = a->head;
    int best = 0;
    for (int n = 1; n <= h->size.workers; n++)
        if (c->rate[n] > (best ? c->rate[best] * GAIN : 0)) best = n;
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

/* The number with the shortest predicted time of those that are close to the best and have not been
 * tried; 0: there is none. */
static int next_predicted(const struct agent *a, int most) {
    const double *of = a->launch->predicted;
    int best = 1, next = 0;
    for (int n = 2; n <= most; n++)
        if (of[n] > 0 && of[n] < of[best]) best = n;
    for (int n = 1; n <= most; n++)
        if (of[n] > 0 && !(a->choice.rate[n] > 0) && of[n] <= CLOSE * of[best] &&
            (!next || of[n] < of[next]))
            next = n;
    return next;
}

/* What is tried next; 0: nothing. */
static int next_number(const struct agent *a) {
    const struct crew_head *h = a->head;
    const int useful = most_useful(h), ranks = a->choice.ranks;
    const int most = h->size.workers < useful ? h->size.workers : useful;
    if (is_predicted(a) && most < LAUNCH_PREDICTED) return next_predicted(a, most);
    if (!ranks) return most;
    const int next = ranks > 2 ? (ranks + 1) / 2 : ranks - 1;
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
    if (!c->ranks) begin(a, next_number(a));
    if (done < c->first) return;
    if (!c->since) {
        c->first = done;
        c->since = atomic_load(&h->course.committed_at);
    }
    double passed = (double)(atomic_load(&h->course.committed_at) - c->since) / 1e9;
    if (done < c->first + ENOUGH_STEPS || passed < ENOUGH_TIME) return;
    c->rate[c->ranks] = (double)(done - c->first) / passed;
    const int next = next_number(a);
    if (next) begin(a, next);
    else decide(a);
}
