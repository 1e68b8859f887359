/* SPDX-License-Identifier: Apache-2.0
 * A worker's part in a profile (struct crew_profile): the reporter says which steps are recorded;
 * then the threads of all workers put spans into the rings that the agent drains. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "crew/ring.h"
#include "run/items.h"
#include "run/profiler.h"
#include "run/worker_inside.h"

/* ---- the rings ---- */

static void map_rings(struct worker *c) {
    const struct crew_head *h = c->head;
    const size_t from = crew_ring_at(h, c->place, 0), to = crew_ring_at(h, c->place + 1, 0);
    c->rings_tried = true;
    items_number(c->run);
    char *at = mmap(NULL, to - from, PROT_READ | PROT_WRITE, MAP_SHARED, h->rings, (off_t)from);
    if (at == MAP_FAILED) {
        fprintf(stderr, "trireme: worker %d records nothing: %s\n", c->place, strerror(errno));
        return;
    }
    for (int i = 0; i < crew_rings_each(h); i++) {
        struct ring *ring = (struct ring *)(void *)(at + crew_ring_at(h, c->place, i) - from);
        if (i < c->threads) c->context[i].spender.ring = ring;
        else spend_extra[i - c->threads] = ring;
    }
}

void worker_profile_step(struct worker *c) {
    const struct crew_profile *p = &c->head->profile;
    const bool records = atomic_load(&p->state) == PROFILE_RECORDS &&
                         c->step >= atomic_load(&p->first) && c->step <= atomic_load(&p->last);
    if (records && !c->rings_tried) map_rings(c);
    if (records == spend_is_recorded()) return;
    if (!records) {
        profiler_stop(c->run->team);
        return;
    }
    const struct thread_context *me = &c->context[0];
    c->stepped = base_now(); /* the first step counts from here on, */
    atomic_store(&spend_records, true);
    if (me->noted.at == CREW_AT_WAIT) /* of other workers from where the reporter has opened it */
        spend_around(SPENT_WAIT_OPENING, me->began, atomic_load(&me->shared->spending.since));
}

/* ---- the reporter ---- */

static bool opened(void *arg) {
    const struct worker *c = arg;
    return atomic_load(&c->head->profile.state) != PROFILE_OPENS ||
           atomic_load(&c->head->course.ending);
}

static void list_items(struct worker *c, const tri_run *run) {
    struct crew_profile *p = &c->head->profile;
    atomic_store(&p->transfers, items_number(run));
    if (items_write(run, p->directory, (int64_t)atomic_load(&p->first),
                    (int64_t)atomic_load(&p->last)))
        fprintf(stderr, "trireme: the profile does not say what is computed: %s\n", tri_message());
    atomic_store(&p->listed, 1);
}

static void open_profile(struct worker *c, const tri_run *run) {
    struct crew_profile *p = &c->head->profile;
    atomic_store(&p->listed, 0);
    atomic_store(&p->state, PROFILE_OPENS);
    crew_wait(c->head, opened, c, &c->context[0].shared->heartbeat);
    if (atomic_load(&p->state) != PROFILE_READY) return;
    if (!*p->directory) {
        fprintf(stderr, "trireme: no profile is recorded: %s\n", p->error);
        atomic_store(&p->state, PROFILE_ENDS);
        return;
    }
    list_items(c, run);
    profiler_expect(run, p->directory, (int64_t)atomic_load(&p->first),
                    (int64_t)atomic_load(&p->last));
    atomic_store(&p->state, PROFILE_RECORDS);
}

/* What this program wants, once. */
static void ask(struct worker *c, tri_run *run, uint64_t step) {
    struct crew_profile *p = &c->head->profile;
    const uint64_t first = (uint64_t)run->profile_first;
    int none = PROFILE_NONE;
    if (!first || step < first) return;
    run->profile_first = 0;
    if (step > first && step > (uint64_t)run->profile_last) return; /* a reporter before had it */
    if (atomic_load(&p->first) == first || atomic_load(&p->state) != PROFILE_NONE) return;
    atomic_store(&p->first, step);
    atomic_store(&p->last, (uint64_t)run->profile_last);
    atomic_store(&p->most, run->options.profile_most ? run->options.profile_most : PROFILER_MOST);
    atomic_compare_exchange_strong(&p->state, &none, PROFILE_WANTED);
}

/* What another host's reporter has decided. */
static void follow(struct worker *c, uint64_t step) {
    const struct hosts_opening *o = &c->head->hosts.opening[step % 2];
    struct crew_profile *p = &c->head->profile;
    if (!worker_is_offered(c, step) || o->profile[0] != step) return;
    if (atomic_load(&p->state) != PROFILE_NONE) return;
    atomic_store(&p->first, step);
    atomic_store(&p->last, o->profile[1]);
    atomic_store(&p->most, o->profile_most);
    atomic_store(&p->state, PROFILE_WANTED);
}

void worker_profile_open(struct worker *c, tri_run *run, uint64_t step) {
    struct crew_profile *p = &c->head->profile;
    if (atomic_load(&p->state) == PROFILE_RECORDS && step > atomic_load(&p->last))
        atomic_store(&p->state, PROFILE_ENDS);
    if (worker_has_hosts(c)) follow(c, step);
    ask(c, run, step);
    switch (atomic_load(&p->state)) {
    case PROFILE_WANTED:
        if (!atomic_load(&p->first)) {
            atomic_store(&p->first, step);
            atomic_fetch_add(&p->last, step - 1);
        }
        if (atomic_load(&p->first) <= step) open_profile(c, run);
        break;
    case PROFILE_READY: /* the reporter before has died */
        if (*p->directory) list_items(c, run);
        atomic_store(&p->state, *p->directory ? PROFILE_RECORDS : PROFILE_ENDS);
        break;
    case PROFILE_RECORDS:
        if (!atomic_load(&p->listed)) list_items(c, run);
        break;
    default:
        break;
    }
}
