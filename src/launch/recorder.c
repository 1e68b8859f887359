/* SPDX-License-Identifier: Apache-2.0
 * The agent's part in a profile: it makes the rings' file, and drains it into files of the run's
 * directory, so that no death of a worker loses what has been recorded. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "crew/drain.h"
#include "launch/agent_inside.h"

#define LAST_WAITS 20000000 /* nanoseconds: workers wait for the next step, and then put that in */

struct recorder {
    char *rings; /* mapped */
    size_t bytes;
    struct drain *drain;
    int64_t ends; /* when the last step was over; 0: it is not known to be */
    bool ending;  /* the drainer has been told to end */
    bool clock;   /* clocks.json is there */
    struct drain_from from[]; /* by place, then ring */
};

static size_t bytes_of(const struct crew_head *h) { return crew_ring_at(h, h->size.places, 1); }

tri_status agent_make_rings(struct agent *a) {
    a->rings = a->head->rings = memfd_create("trireme spans", 0);
    return a->rings >= 0 ? TRI_OK : base_fail(TRI_FAILED, "cannot make rings for spans: %s",
                                              strerror(errno));
}

static struct ring *ring_of(const struct agent *a, int place, int i) {
    return (struct ring *)(void *)(a->recorder->rings + crew_ring_at(a->head, place, i));
}

static void free_recorder(struct agent *a) {
    struct recorder *r = a->recorder;
    if (!r) return;
    drain_close(r->drain);
    if (r->rings) munmap(r->rings, r->bytes);
    free(r);
    a->recorder = NULL;
}

/* The rings of dead processes may have spans, which the drainer drops. */
static void list_rings(struct agent *a) {
    const struct crew_head *h = a->head;
    const int each = crew_rings_each(h), threads = h->size.threads, n = h->size.places * each;
    for (int k = 0; k <= n; k++) { /* the last is the ferry's */
        const int place = k / each, i = k % each;
        struct ring *ring = ring_of(a, place, i);
        if (ring->capacity != RING_SPANS) ring_make(ring, RING_SPANS);
        a->recorder->from[k] = (struct drain_from){
            .ring = ring, .capacity = RING_SPANS, .place = place, .thread = i,
            .what = k == n ? SPAN_FERRIES : span_thread_at(i, threads),
            .pid = k < n ? atomic_load(&h->worker[place].pid) : 0,
            .tid = k < n && i < threads ? atomic_load(&h->thread[place * threads + i].tid) : 0};
    }
}

static tri_status open_recorder(struct agent *a) {
    struct crew_profile *p = &a->head->profile;
    const int n = a->head->size.places * crew_rings_each(a->head) + 1;
    char folder[4096];
    if (!*a->head->told.out)
        return base_fail(TRI_USAGE, "a profile needs a directory: --out");
    struct recorder *r = a->recorder = calloc(1, sizeof *r + (size_t)n * sizeof r->from[0]);
    if (!r) return base_no_memory("a profile");
    r->bytes = bytes_of(a->head);
    if (ftruncate(a->rings, (off_t)r->bytes))
        return base_fail(TRI_FAILED, "cannot make rings for spans: %s", strerror(errno));
    r->rings = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, a->rings, 0);
    if (r->rings == MAP_FAILED) {
        r->rings = NULL;
        return base_fail(TRI_FAILED, "cannot map the rings for spans: %s", strerror(errno));
    }
    list_rings(a);
    const int64_t first = (int64_t)atomic_load(&p->first);
    tri_status status = drain_directory(a->head->told.out, first, folder);
    const struct drain_plan plan = {.directory = p->directory, .first = first,
                                    .last = (int64_t)atomic_load(&p->last),
                                    .threads = a->head->size.threads,
                                    .most = atomic_load(&p->most), .from = r->from, .n = n};
    if (!status) base_format(p->directory, sizeof p->directory, "%s", folder);
    if (!status) status = drain_open(&plan, &r->drain);
    if (!status) status = drain_start(r->drain);
    if (status && *p->directory) rmdir(p->directory);
    return status;
}

static void open_profile(struct agent *a) {
    struct crew_profile *p = &a->head->profile;
    *p->directory = *p->error = 0;
    if (open_recorder(a)) {
        base_format(p->error, sizeof p->error, "%s", tri_message());
        *p->directory = 0;
        free_recorder(a);
    }
    atomic_store(&p->state, PROFILE_READY);
    crew_notify(a->head);
}

/* What to add to the times of this host's spans for those of all. It is written as soon as it is
 * known, as the host may die, and again at the end, when it is known better. */
static void write_clock(struct agent *a) {
    const struct crew_hosts *h = &a->head->hosts;
    struct text t = {0};
    const int64_t unsure = hosts_unsure(h, base_now());
    if (!h->n || !unsure) return;
    text_add(&t, "{\"host\":\"%s\",\"number\":%d,\"offset_ns\":%lld,\"uncertainty_ns\":%lld}\n",
             h->name[h->self], h->self, (long long)atomic_load(&h->clock), (long long)unsure);
    if (text_write(&t, a->head->profile.directory, "clocks.json", TRI_OK))
        agent_print(a, "the profile lacks this host's clock: %s", tri_message());
    a->recorder->clock = true;
}

static void tell(struct agent *a, const struct drain_seen *seen) {
    struct crew_profile *p = &a->head->profile;
    const long long first = (long long)atomic_load(&p->first);
    const long long last = (long long)atomic_load(&p->last);
    const char *why = seen->error ? seen->error
                      : seen->full ? "--profile-most has been reached" : "";
    log_event(&a->log, seen->lost ? LOG_WARNING : LOG_INFO, "profile",
              "step=%lld last=%lld spans=%lld lost=%lld bytes=%lld text=%s", first, last,
              (long long)seen->spans, (long long)seen->lost, (long long)seen->bytes, why);
    if (*why) agent_print(a, "the profile of steps %lld to %lld lacks %lld spans: %s", first, last,
                          (long long)seen->lost, why);
    base_format(p->error, sizeof p->error, "%s", why);
    atomic_store(&p->spans, seen->spans);
    atomic_store(&p->lost, seen->lost);
    atomic_store(&p->bytes, seen->bytes);
}

static void close_profile(struct agent *a) {
    struct crew_profile *p = &a->head->profile;
    struct drain_seen seen;
    if (a->recorder) {
        drain_stop(a->recorder->drain);
        drain_look(a->recorder->drain, &seen);
        write_clock(a);
        tell(a, &seen);
        free_recorder(a);
    }
    atomic_fetch_add(&p->over, 1);
    atomic_store(&p->state, PROFILE_NONE);
    crew_notify(a->head);
}

/* The disk may be slow, and must not keep the agent. Other hosts may still get sums of the last
 * step. */
static bool may_close(const struct agent *a) {
    const struct crew_head *h = a->head;
    struct recorder *r = a->recorder;
    if (!r) return true;
    if (h->hosts.n && atomic_load(&h->hosts.over) < atomic_load(&h->profile.last)) return false;
    if (!r->ends) r->ends = base_now();
    if (base_now() - r->ends < LAST_WAITS) return false;
    if (!r->ending) drain_end(r->drain);
    r->ending = true;
    return drain_has_ended(r->drain);
}

void agent_profile(struct agent *a) {
    const int state = atomic_load(&a->head->profile.state);
    if (state == PROFILE_OPENS) open_profile(a);
    if (a->recorder && !a->recorder->clock) write_clock(a);
    if (state == PROFILE_ENDS && may_close(a)) close_profile(a);
}

/* A dead process may have damaged its ring. */
static void end_span(const struct agent *a, int place, int thread, int64_t when) {
    const struct crew_thread *t = &a->head->thread[place * a->head->size.threads + thread];
    const int64_t since = atomic_load(&t->spending.since);
    struct ring *ring = ring_of(a, place, thread);
    if (!since || when < since || ring->capacity != RING_SPANS) return;
    ring_put(ring, &(struct span){.begin = since, .end = when, .item = -1,
                                  .step = atomic_load(&t->step),
                                  .lane = (int16_t)atomic_load(&t->lane),
                                  .leg = (int8_t)atomic_load(&t->leg), .whom = SPAN_NOBODY,
                                  .kind = (uint8_t)atomic_load(&t->spending.on)});
}

void agent_end_times(struct agent *a, int place, int64_t when) {
    const bool records = a->recorder && atomic_load(&a->head->profile.state) == PROFILE_RECORDS;
    for (int t = 0; t < a->head->size.threads; t++) {
        struct spending *s = &a->head->thread[place * a->head->size.threads + t].spending;
        if (records) end_span(a, place, t, when);
        spending_end(s, when < atomic_load(&s->since) ? atomic_load(&s->since) : when);
    }
}

void agent_end_profile(struct agent *a) {
    if (a->recorder) close_profile(a);
    if (a->rings > 0) close(a->rings);
}
