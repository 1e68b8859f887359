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
        else c->run->beside[i - c->threads] = ring;
    }
}

void worker_profile_step(struct worker *c, uint64_t step) {
    const struct crew_profile *p = &c->head->profile;
    const bool records = atomic_load(&p->state) == PROFILE_RECORDS &&
                         step >= atomic_load(&p->first) && step <= atomic_load(&p->last);
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

/* Waits for the agent's files, and records. */
static void begin(struct worker *c, const tri_run *run) {
    struct crew_profile *p = &c->head->profile;
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

/* What this program wants. If another profile is recorded, the rest of it is when that is over. */
static void ask_own(struct worker *c, tri_run *run, uint64_t step) {
    const uint64_t first = (uint64_t)run->profile_first, last = (uint64_t)run->profile_last;
    const int64_t most = run->options.profile_most ? run->options.profile_most : PROFILER_MOST;
    struct crew_profile *p = &c->head->profile;
    if (!first || step < first) return;
    /* A reporter before may have had it recorded. */
    if (step > last || atomic_load(&p->own) >= first) {
        if (step > last && atomic_load(&p->own) < first)
            fprintf(stderr, "trireme: steps %lld to %lld are not recorded: another profile was\n",
                    (long long)first, (long long)last);
        run->profile_first = 0;
    } else if (crew_ask_profile(c->head, step, last, most)) {
        atomic_store(&p->own, first);
        run->profile_first = 0;
    }
}

/* What another host's reporter has decided. */
static void follow(struct worker *c, uint64_t step) {
    const struct hosts_opening *o = &c->head->hosts.opening[step % 2];
    if (worker_is_offered(c, step) && o->profile[0] == step)
        crew_ask_profile(c->head, step, o->profile[1], o->profile_most);
}

void worker_profile_end(struct worker *c, uint64_t committed) {
    struct crew_profile *p = &c->head->profile;
    int records = PROFILE_RECORDS;
    if (committed < atomic_load(&p->last)) return;
    atomic_compare_exchange_strong(&p->state, &records, PROFILE_ENDS);
    worker_profile_step(c, committed + 1); /* others end when they see the next step */
}

void worker_profile_open(struct worker *c, tri_run *run, uint64_t step) {
    struct crew_profile *p = &c->head->profile;
    if (worker_has_hosts(c)) follow(c, step);
    ask_own(c, run, step);
    const int state = atomic_load(&p->state);
    if (state == PROFILE_WANTED && !atomic_load(&p->first)) {
        const uint64_t last = atomic_load(&p->last) + step - 1, total = (uint64_t)run->total;
        atomic_store(&p->last, last < total ? last : total);
        atomic_store(&p->first, step);
    }
    if (state == PROFILE_WANTED && atomic_load(&p->first) <= step) {
        atomic_store(&p->listed, 0);
        atomic_store(&p->state, PROFILE_OPENS);
        begin(c, run);
    } else if (state == PROFILE_OPENS || state == PROFILE_READY) {
        begin(c, run); /* the reporter before has died */
    } else if (state == PROFILE_RECORDS && !atomic_load(&p->listed)) {
        list_items(c, run);
    }
}
