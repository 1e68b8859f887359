/* SPDX-License-Identifier: Apache-2.0 */
#include "crew/group.h"

#include "crew/claim.h"
#include "plan/pipeline.h"

/* ---- layout ---- */

static size_t words_at(int roles) {
    size_t end = sizeof(struct crew_group) + sizeof(atomic_int) * (size_t)roles;
    return (end + 63) / 64 * 64;
}

static size_t slots_at(int roles, int executors) {
    return words_at(roles) + sizeof(uint64_t) * (size_t)executors;
}

size_t group_bytes(int roles, int executors, int buckets) {
    size_t end = slots_at(roles, executors) + sizeof(atomic_int) * (size_t)buckets;
    return (end + 63) / 64 * 64;
}

_Atomic uint64_t *group_words(struct crew_group *g) {
    return (_Atomic uint64_t *)((char *)g + words_at(g->roles));
}

atomic_int *group_slots(struct crew_group *g) {
    return (atomic_int *)((char *)g + slots_at(g->roles, g->executors));
}

int group_count(int n, int seats) { return (n + seats - 1) / seats; }

int group_of(int rank, int n, int seats) { return rank * group_count(n, seats) / n; }

static int share_begin(int i, int of, int n) { return (i * n + of - 1) / of; }

bool group_seats(const struct group_plan *p, int rank, struct crew_seats *out) {
    if (p->seats < 1 || p->most < 1 || rank < 0 || rank >= p->ranks) return false;
    int group = group_of(rank, p->ranks, p->seats), groups = group_count(p->ranks, p->seats);
    int roles = p->seats < p->most ? p->seats : p->most;
    int begin = share_begin(group, groups, p->ranks);
    int members = share_begin(group + 1, groups, p->ranks) - begin, member = rank - begin;
    *out = (struct crew_seats){
        group, share_begin(share_begin(member, members, roles), roles, p->seats),
        share_begin(share_begin(member + 1, members, roles), roles, p->seats) - 1};
    return true;
}

void group_stages(const struct group_plan *p, int rank, char text[GROUP_STAGES]) {
    const struct pipeline tracks = {.tracks = p->tracks};
    const int each = p->seats ? 1 : p->claimers;
    const int all = p->seats ? group_count(p->ranks, p->seats) : p->ranks * each;
    struct crew_seats seats = {.replica = rank};
    int n = 0;
    *text = 0;
    if (rank < 0 || (p->seats && !group_seats(p, rank, &seats))) return;
    for (int s = 0; s < p->stages; s++) {
        bool serves = false;
        for (int k = 0; k < each; k++)
            serves |= pipeline_serves(&tracks, seats.replica * each + k, all, s % p->tracks);
        if (serves && n < GROUP_STAGES)
            n += base_format(text + n, GROUP_STAGES - (size_t)n, n ? ",%d" : "%d", s);
    }
}

/* ---- workers ---- */

static void changed(struct group *g, const char *where) {
    wait_wake(g->event);
    CLAIM_POINT(where);
    (void)where;
}

bool group_lead(struct group *g, int me) {
    int none = 0;
    if (!atomic_compare_exchange_strong(&g->shared->captain, &none, me + 1)) return false;
    changed(g, "lead");
    return true;
}

void group_resign(struct group *g, int me) {
    int mine = me + 1;
    atomic_compare_exchange_strong(&g->shared->captain, &mine, 0);
    changed(g, "resign");
}

bool group_quiet(const struct group *g, int me) {
    for (int i = 0; i < g->places; i++)
        if (i != me && atomic_load(&g->place[i].busy) == g->number + 1) return false;
    return true;
}

/* Nobody works on an order now, so the words do not change. */
static uint64_t largest_word(struct crew_group *s) {
    _Atomic uint64_t *word = group_words(s);
    uint64_t largest = 0;
    for (int i = 0; i < s->executors; i++)
        if (atomic_load(&word[i]) > largest) largest = atomic_load(&word[i]);
    return largest;
}

/* A worker that has died before the order was given is missed here, one that dies later by the
 * agent. */
uint64_t group_order(struct group *g, int me, const int *who, int n, struct group_task *task) {
    struct crew_group *s = g->shared;
    uint64_t order = atomic_load(&s->given) + 1;
    task->base = largest_word(s);
    atomic_store(&g->place[me].busy, g->number + 1);
    CLAIM_POINT("busy");
    atomic_store(&s->given, order);
    atomic_store(&s->stage, task->stage);
    atomic_store(&s->base, task->base);
    atomic_store(&s->lane, task->lane);
    atomic_store(&s->leg, task->leg);
    atomic_store(&s->slot, task->slot);
    CLAIM_POINT("task");
    for (int r = 0; r < s->roles; r++) atomic_store(&s->role[r], who[r * n / s->roles]);
    CLAIM_POINT("roles");
    atomic_store(&s->order, order);
    changed(g, "order");
    for (int i = 0; i < n; i++)
        if (atomic_load(&g->place[who[i]].there) != task->stage) group_give_up(g, order);
    return order;
}

void group_close(struct group *g, int me) {
    atomic_store(&g->shared->order, 0);
    CLAIM_POINT("close");
    group_end(g, me);
}

bool group_stands(const struct group *g, uint64_t order) {
    return atomic_load(&g->shared->given_up) < order;
}

void group_give_up(struct group *g, uint64_t order) {
    uint64_t before = atomic_load(&g->shared->given_up);
    while (before < order &&
           !atomic_compare_exchange_weak(&g->shared->given_up, &before, order)) {}
    wait_wake(&g->shared->queue);
    changed(g, "give up");
}

uint64_t group_find(const struct group *g, int me, uint64_t stage) {
    const struct crew_group *s = g->shared;
    uint64_t order = atomic_load(&s->order);
    if (!order || !group_stands(g, order) || atomic_load(&s->stage) != stage) return 0;
    for (int r = 0; r < s->roles; r++)
        if (atomic_load(&s->role[r]) == me) return order;
    return 0;
}

bool group_begin(struct group *g, int me, uint64_t order, struct group_task *task) {
    const struct crew_group *s = g->shared;
    atomic_store(&g->place[me].busy, g->number + 1);
    CLAIM_POINT("busy");
    if (atomic_load(&s->order) != order || !group_stands(g, order)) {
        group_end(g, me);
        return false;
    }
    *task = (struct group_task){atomic_load(&s->stage), atomic_load(&s->lane), atomic_load(&s->leg),
                                atomic_load(&s->slot), atomic_load(&s->base)};
    return true;
}

void group_end(struct group *g, int me) {
    atomic_store(&g->place[me].busy, 0);
    changed(g, "end");
}

/* ---- deaths ---- */

void group_clear(struct group_place *dead) {
    atomic_store(&dead->there, 0);
    atomic_store(&dead->busy, 0);
}

bool group_died(struct group *g, int dead) {
    struct crew_group *s = g->shared;
    uint64_t order = atomic_load(&s->order);
    bool captain = atomic_load(&s->captain) == dead + 1, has_role = false;
    for (int r = 0; r < s->roles; r++) has_role |= atomic_load(&s->role[r]) == dead;
    if (captain || has_role) group_give_up(g, order);
    else wait_wake(g->event);
    return captain;
}

void group_forget(struct group *g, int dead) {
    int captain = dead + 1;
    if (atomic_load(&g->shared->captain) == captain) atomic_store(&g->shared->order, 0);
    atomic_compare_exchange_strong(&g->shared->captain, &captain, 0);
    wait_wake(g->event);
}
