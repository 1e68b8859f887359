/* SPDX-License-Identifier: Apache-2.0 */
#include "crew/head.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>

#include "base/host.h"
#include "crew/ring.h"

const char *crew_at_name(enum crew_at at) {
    static const char *const names[CREW_ATS] = {"start", "compile", "data", "lane", "sum",
                                                "update", "wait", "callback", "evaluate", "save",
                                                "leave", "rest", "compute"};
    return (unsigned)at < CREW_ATS ? names[at] : "?";
}

_Static_assert(CREW_OWNERS <= CLAIM_MOST_OWNERS, "a claim's word has room for every owner");

static int most_of(const struct crew_size *s) {
    return s->most > s->workers ? s->most : s->workers;
}

tri_status crew_check(const struct crew_size *s) {
    int most = most_of(s);
    if (s->most && s->most < s->workers)
        return base_fail(TRI_USAGE, "--most %d is less than -n %d, the number at the start",
                         s->most, s->workers);
    if (s->workers < 1 || most + s->spares > CREW_MOST_WORKERS)
        return base_fail(TRI_USAGE, "%d worker(s)%s and --spares %d: there can be 1 to %d in all",
                         most, most > s->workers ? " (--most)" : "", s->spares, CREW_MOST_WORKERS);
    if (s->audit > 0 && s->workers + s->spares < 2)
        return base_fail(TRI_USAGE, "an audit needs a second worker to compute lanes again: use "
                         "-n 2 or --spares 1");
    if ((int64_t)(most + s->spares) * s->threads > CREW_MOST_THREADS)
        return base_fail(TRI_USAGE, "%d worker(s), spares included, with %d thread(s) each: there "
                         "must be at most %d threads in all", most + s->spares, s->threads,
                         CREW_MOST_THREADS);
    return TRI_OK;
}

int crew_rings_each(const struct crew_head *h) { return h->size.threads + SPEND_BESIDE; }

size_t crew_ring_at(const struct crew_head *h, int place, int i) {
    const size_t each = (ring_bytes(RING_SPANS) + CREW_PAGE - 1) / CREW_PAGE * CREW_PAGE;
    return ((size_t)place * (size_t)crew_rings_each(h) + (size_t)i) * each;
}

void crew_head_begin(struct crew_head *h, const struct crew_size *s) {
    *h = (struct crew_head){.magic = CREW_MAGIC, .bytes = sizeof *h, .size = *s,
                            .course.set_rate = NAN};
    h->size.most = most_of(s);
    h->size.places = h->size.most + s->spares;
    h->size.place_threads = h->size.places * s->threads;
    h->size.cores = host_cores();
    atomic_store(&h->workers.ranks, s->workers);
    for (int i = 0; i < h->size.places; i++)
        atomic_store(&h->worker[i].rank, i < s->workers ? i : -1);
}

tri_status crew_attach(int fd, struct crew_head **out) {
    const size_t bytes = crew_head_bytes();
    struct crew_head *h = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    *out = NULL;
    if (h == MAP_FAILED)
        return base_fail(TRI_FAILED, "cannot map the agent's store: %s", strerror(errno));
    if (h->magic != CREW_MAGIC || h->bytes != sizeof *h) {
        munmap(h, bytes);
        return base_fail(TRI_USAGE, "this program and the agent that started it were built with "
                         "different versions of Trireme; build it again");
    }
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    fcntl(h->rings, F_SETFD, FD_CLOEXEC);
    *out = h;
    return TRI_OK;
}

bool crew_begun(const struct crew_head *h) {
    return atomic_load(&h->course.opened) > atomic_load(&h->course.base);
}

#define STEP_BITS 24 /* of the step's number, below the time */

void crew_note_slow(struct crew_course *c, uint64_t step, int64_t took) {
    const uint64_t most = (uint64_t)1 << (64 - STEP_BITS);
    const uint64_t us = took < 1000 ? 1 : (uint64_t)took / 1000;
    const uint64_t is = (us < most ? us : most - 1) << STEP_BITS | step % (1 << STEP_BITS);
    uint64_t was = atomic_load_explicit(&c->slowest, memory_order_relaxed);
    while (is > was && !atomic_compare_exchange_weak(&c->slowest, &was, is)) continue;
}

int64_t crew_take_slowest(struct crew_course *c, uint64_t *step) {
    const uint64_t is = atomic_exchange(&c->slowest, 0), opened = atomic_load(&c->opened);
    *step = is ? opened - (opened - is) % (1 << STEP_BITS) : 0; /* the last step with these bits */
    return (int64_t)(is >> STEP_BITS) * 1000;
}

void crew_notify(struct crew_head *h) { wait_wake(&h->event); }

void crew_notify_end(struct crew_head *h) {
    crew_notify(h);
    wait_wake(&h->data);
}

int crew_group_of(const struct crew_head *h, int place) {
    int rank = atomic_load(&h->worker[place].rank), ranks = atomic_load(&h->workers.ranks);
    int seats = h->layout.seats;
    bool any = seats > 0 && h->size.most > 0 && rank >= 0 && rank < ranks;
    return any ? group_of(rank, ranks, seats) : -1;
}

struct group crew_group(struct crew_head *h, char *base, int number) {
    struct crew_group *shared = region_at(h->layout.region, base, REGION_GROUPS, number);
    return (struct group){shared, number, &h->event, h->place, h->size.places};
}

bool crew_seats_of(const struct crew_head *h, int place, struct crew_seats *out) {
    const struct group_plan p = {.ranks = atomic_load(&h->workers.ranks), .most = h->size.most,
                                 .seats = h->layout.seats};
    return group_seats(&p, atomic_load(&h->worker[place].rank), out);
}

const char *crew_name_leg(const struct crew_head *h, const struct crew_thread *t,
                          char text[LEG_TEXT + 1]) {
    int leg = atomic_load(&t->leg);
    *text = 0;
    if (leg < 0 || leg >= h->layout.legs.n || h->layout.legs.stages < 1) return text;
    *text = ' ';
    legs_name(&h->layout.legs, leg, text + 1);
    return text;
}

const char *crew_name_seats(const struct crew_head *h, int place, char text[CREW_SEATS]) {
    struct crew_seats s;
    *text = 0;
    if (!crew_seats_of(h, place, &s)) return text;
    int n = base_format(text, CREW_SEATS, ", replica %d, seat%s %d", s.replica,
                        s.first < s.last ? "s" : "", s.first);
    if (s.first < s.last) base_format(text + n, CREW_SEATS - (size_t)n, "-%d", s.last);
    return text;
}

bool crew_ask_profile(struct crew_head *h, uint64_t first, uint64_t last, int64_t most) {
    struct crew_profile *p = &h->profile;
    int none = PROFILE_NONE;
    if (!atomic_compare_exchange_strong(&p->state, &none, PROFILE_ASKED)) return false;
    *p->directory = 0;
    atomic_store(&p->first, first);
    atomic_store(&p->last, last);
    atomic_store(&p->most, most);
    atomic_store(&p->state, PROFILE_WANTED);
    return true;
}

bool crew_crowded(const struct crew_head *h) {
    int ranks = atomic_load_explicit(&h->workers.ranks, memory_order_relaxed);
    return ranks * h->size.threads > h->size.cores;
}

void crew_wait(struct crew_head *h, bool (*holds)(void *arg), void *arg,
               _Atomic uint64_t *heartbeat) {
    crew_wait_until(h, holds, arg, INT64_MAX, heartbeat);
}

void crew_wait_until(struct crew_head *h, bool (*holds)(void *arg), void *arg, int64_t when,
                   _Atomic uint64_t *heartbeat) {
    wait_until(&h->event, crew_crowded(h) ? WAIT_CROWDED : WAIT_APART, holds, arg, when, heartbeat);
}
