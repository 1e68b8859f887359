/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/replica.h"

#include <stdlib.h>

#define LOOKS 20000000 /* nanoseconds between two looks at whether to go on */

tri_status replica_make(struct program *p, int member, const struct replica_range *range,
                        struct replica *r) {
    size_t executors = (size_t)(p->threads * p->members), n = range->end - range->begin;
    *r = (struct replica){.p = p, .member = member, .executors = (int)executors,
                          .begin = range->begin, .end = range->end};
    r->rank = calloc(n + 1, sizeof *r->rank);
    r->stop = calloc((size_t)range->n_stops + 1, sizeof *r->stop);
    r->thread = calloc((size_t)p->threads, sizeof *r->thread);
    bool ok = r->rank && r->stop && r->thread;
    for (int t = 0; t < p->threads && ok; t++)
        ok = (r->thread[t].seen = calloc(executors, sizeof *r->thread[t].seen)) != NULL;
    for (int i = 0; i <= range->n_stops && ok; i++)
        r->stop[r->n_stops++] = i < range->n_stops ? range->stop[i] : r->end;
    for (size_t i = 0; i < n && ok; i++) r->rank[i] = program_rank(p, r->begin + i, member);
    const struct replica_range all = {r->begin, r->end, r->stop, r->n_stops};
    if (ok && replica_find_needs(p, &all, &r->needs)) return TRI_OK;
    replica_free(r);
    return base_no_memory("a replica");
}

void replica_free(struct replica *r) {
    for (int t = 0; r->thread && t < r->p->threads; t++) free(r->thread[t].seen);
    free(r->thread);
    free(r->rank);
    free(r->stop);
    free(r->needs.need);
    free(r->needs.first);
    *r = (struct replica){0};
}

uint64_t replica_span(const struct replica *r) { return replica_round_of(r->end, 1); }

/* ---- rounds ---- */

/* The number of the first stop before item i; -1: there is none. */
static int first_stop(const struct replica *r, size_t i) {
    int low = 0, high = r->n_stops;
    while (low < high) {
        int middle = (low + high) / 2;
        if (r->stop[middle] < i) low = middle + 1;
        else high = middle;
    }
    return low < r->n_stops && r->stop[low] == i ? low : -1;
}

static bool pass_stops(const struct replica *r, size_t i, const struct replica_run *run) {
    int k = first_stop(r, i);
    bool go = true;
    for (; k < r->n_stops && r->stop[k] == i && go; k++)
        go = !run->at_stop || run->at_stop(run->user, r->member, k);
    return go;
}

/* The thread's parts of a round of an item. */
static bool parts_of(const struct replica *r, int thread, size_t round, int64_t *begin,
                     int64_t *end) {
    size_t i = round / 3;
    const struct program_item *item = &r->p->item[i];
    int rank = r->rank[i - r->begin];
    if (rank < 0 || replica_skips(r->p, i)) return false;
    replica_parts(item, (int)(round % 3), (int64_t)rank * r->p->threads + thread,
                  (int64_t)item->members * r->p->threads, begin, end);
    return *begin < *end;
}

/* Goes to the next round from this one on in which the thread takes part. */
static void find_round(const struct replica *r, int thread, size_t round) {
    int64_t begin, end;
    while (round < replica_span(r) && !(round % 3 ? parts_of(r, thread, round, &begin, &end)
                                                  : first_stop(r, round / 3) >= 0))
        round++;
    r->thread[thread].round = round;
}

void replica_begin(struct replica *r, int thread) {
    for (int e = 0; e < r->executors; e++) r->thread[thread].seen[e] = 0;
    find_round(r, thread, replica_round_of(r->begin, 0));
}

bool replica_ended(const struct replica *r, int thread) {
    return r->thread[thread].round >= replica_span(r);
}

static bool has(const struct replica_thread *t, const struct replica_run *run, uint32_t executor,
                uint64_t value) {
    if (t->seen[executor] >= value) return true;
    uint64_t word = atomic_load(&run->word[executor]);
    if (word > run->base) t->seen[executor] = word - run->base;
    return t->seen[executor] >= value;
}

/* An executor that its next round waits for; -1: none. */
static int lacks(const struct replica *r, int thread, const struct replica_run *run) {
    const struct replica_thread *t = &r->thread[thread];
    const size_t round = t->round;
    uint32_t me = (uint32_t)(r->member * r->p->threads + thread);
    const uint32_t before = thread ? me - (uint32_t)thread : 0;
    if (round % 3 == 0 && me) return has(t, run, before, round + 1) ? -1 : (int)before;
    const size_t *first = r->needs.first + (round - replica_round_of(r->begin, 0));
    for (size_t i = first[0]; i < first[1]; i++) {
        const struct replica_need *n = &r->needs.need[i];
        if (n->executor != me && !has(t, run, n->executor, n->value)) return (int)n->executor;
    }
    return -1;
}

bool replica_ready(struct replica *r, int thread, const struct replica_run *run) {
    return lacks(r, thread, run) < 0;
}

static void publish(const struct replica *r, int thread, const struct replica_run *run) {
    uint64_t done = run->base + r->thread[thread].round + 1;
    atomic_store(&run->word[r->member * r->p->threads + thread], done);
    wait_wake(run->queue);
}

bool replica_advance(struct replica *r, int thread, const struct replica_run *run,
                     const struct program_step *step) {
    size_t round = r->thread[thread].round, item = round / 3;
    int64_t begin, end;
    if (round % 3 == 0) {
        if (!thread && !pass_stops(r, item, run)) return false;
    } else if (parts_of(r, thread, round, &begin, &end) &&
               !program_run_parts(r->p, item, thread, begin, end, step)) {
        return false;
    }
    publish(r, thread, run);
    find_round(r, thread, round + 1);
    return true;
}

/* ---- running ---- */

struct waiter {
    const struct replica_part *part;
    int n;
    const struct replica_run *run;
    const struct replica_part *next; /* with the earliest round that is ready; null: none is */
    const struct replica_part *waits; /* with the earliest of all rounds: */
    size_t earliest;
    bool left;
};

static bool find_part(void *arg) {
    struct waiter *w = arg;
    size_t best = SIZE_MAX;
    w->next = NULL;
    w->earliest = SIZE_MAX;
    w->left = w->run->go_on && !w->run->go_on(w->run->user);
    for (int i = 0; i < w->n && !w->left; i++) {
        const struct replica_part *p = &w->part[i];
        size_t round = p->replica->thread[p->thread].round;
        if (replica_ended(p->replica, p->thread)) continue;
        if (round < w->earliest) w->earliest = round, w->waits = p;
        if (round >= best || !replica_ready(p->replica, p->thread, w->run)) continue;
        best = round;
        w->next = p;
    }
    return w->left || w->next || w->earliest == SIZE_MAX;
}

static void wait_for_part(struct waiter *w) {
    const struct replica_run *run = w->run;
    if (find_part(w)) return;
    if (run->note && !w->left)
        run->note(run->user, w->earliest / 3, lacks(w->waits->replica, w->waits->thread, run));
    wait_until(run->queue, run->kind, find_part, w, base_now() + LOOKS, run->heartbeat);
}

bool replica_run(const struct replica_part *part, int n, const struct replica_run *run,
                 const struct program_step *step) {
    struct waiter w = {.part = part, .n = n, .run = run};
    for (int i = 0; i < n; i++) replica_begin(part[i].replica, part[i].thread);
    for (;;) {
        wait_for_part(&w);
        if (w.left || !w.next) return !w.left;
        struct replica *r = w.next->replica;
        size_t round = r->thread[w.next->thread].round;
        if (run->note && round % 3) run->note(run->user, round / 3, REPLICA_RUNS);
        if (!replica_advance(r, w.next->thread, run, step)) return false;
    }
}
