/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/meter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/runqueue.h"

#define TICK 50000000 /* nanoseconds */
#define LOOKS 3       /* a core is shared if that many looks in a row found so */
#define FINDINGS 8

struct meter {
    struct crew_head *head;
    char *directory;
    const char *root;
    int64_t (*clock)(void);
    int64_t began; /* the counters of the head, and this thread */
    bool tried;    /* to open the file */
    struct times times;
    struct times_place *place; /* [places]; a buffer */
    int64_t (*time)[SPENTS];   /* [places]; the same */
    int *shared; /* [places]: looks in a row in which it had no core for long */
    struct rivals rivals;

    pthread_t thread;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t changed;
    bool ends;
    int n;
    struct finding {
        int place, core, pid; /* place -1: the file has failed */
        char text[512];
    } finding[FINDINGS];
};

/* ---- what it finds ---- */

/* More than the agent has room for are dropped. */
static void found(struct meter *m, const struct finding *f) {
    pthread_mutex_lock(&m->lock);
    if (m->n < FINDINGS) m->finding[m->n++] = *f;
    pthread_mutex_unlock(&m->lock);
}

static void failed(struct meter *m) {
    struct finding f = {.place = -1};
    base_format(f.text, sizeof f.text, "%s", tri_message());
    found(m, &f);
}

static bool take(struct meter *m, struct finding *f) {
    pthread_mutex_lock(&m->lock);
    const bool any = m->n > 0;
    if (any) *f = m->finding[--m->n];
    pthread_mutex_unlock(&m->lock);
    return any;
}

void meter_tell(struct meter *m, struct log *log) {
    for (struct finding f; m && take(m, &f);)
        if (f.place < 0)
            log_event(log, LOG_WARNING, "series", "text=%s", f.text);
        else
            log_event(log, LOG_WARNING, "shared-core", "worker=%d core=%d pid=%d text=%s", f.place,
                      f.core, f.pid, f.text);
}

/* ---- who has the core ---- */

static void tell_shared(struct meter *m, int place, double part) {
    const struct crew_head *h = m->head;
    const int core = rivals_core(&m->rivals, atomic_load(&h->thread[place * h->size.threads].tid));
    struct rival r;
    struct text t = {0};
    rivals_on(&m->rivals, m->root, core, atomic_load(&h->worker[place].pid), &r);
    text_add(&t, "worker %d was ready to run and had no core for %.0f %% of the time; ", place,
             100 * part);
    if (r.pid)
        text_add(&t, "%s, pid %d, ran for %.1f s of the last second on its core, %d",
                 *r.name ? r.name : "a process that has ended", r.pid, r.seconds, core);
    else
        text_add(&t, "/proc shows %s that ran on its core, %d",
                 m->rivals.hidden ? "no processes of other users, and none of this one"
                                  : "no other process", core);
    struct finding f = {.place = place, .core = core, .pid = r.pid};
    base_format(f.text, sizeof f.text, "%s", t.data ? t.data : "");
    text_free(&t);
    found(m, &f);
}

/* After a look at the system. Processes are looked at twice, to see who has run in between: when a
 * place has had no core for some looks, for reasons other than a quota, and at the next one. */
static void watch_cores(struct meter *m) {
    const int places = m->head->size.places;
    bool looks = false;
    for (int p = 0; p < places; p++) {
        const double part = m->times.no_core[p] * (1 - m->times.quota);
        m->shared[p] = part > METER_SHARED ? m->shared[p] + 1 : 0;
        looks |= m->shared[p] == LOOKS - 1 || m->shared[p] == LOOKS;
    }
    if (!looks) {
        rivals_free(&m->rivals);
        return;
    }
    rivals_look(&m->rivals, m->root);
    for (int p = 0; p < places; p++)
        if (m->shared[p] == LOOKS) tell_shared(m, p, m->times.no_core[p]);
}

/* ---- frames ---- */

static void look(struct meter *m, int64_t now) {
    const struct crew_head *h = m->head;
    const int threads = h->size.threads;
    for (int p = 0; p < h->size.places; p++)
        for (int t = 0; t < threads; t++)
            times_thread(&m->times, p, t, atomic_load(&h->worker[p].pid),
                           atomic_load(&h->thread[p * threads + t].tid));
    times_look(&m->times, now);
    watch_cores(m);
}

static void read_place(struct meter *m, int place, int64_t now) {
    const struct crew_head *h = m->head;
    struct times_place *to = &m->place[place];
    int64_t *sum = m->time[place];
    *to = (struct times_place){.time = sum, .memory = atomic_load(&h->worker[place].peak)};
    if (!place) {
        to->sent = atomic_load(&h->hosts.sent);
        to->received = atomic_load(&h->hosts.received);
        to->sent_whole = atomic_load(&h->hosts.sent_whole);
    }
    memset(sum, 0, sizeof m->time[place]);
    for (int t = 0; t < h->size.threads; t++) {
        const struct crew_thread *thread = &h->thread[place * h->size.threads + t];
        spending_add(&thread->spending, now, sum);
        to->lanes += atomic_load(&thread->lanes_done);
        to->lost += atomic_load(&thread->lanes_lost);
    }
}

#define TRIES 3
#define QUICK 1000000 /* nanoseconds */

/* Reads all places as of one time, which it returns. If the thread was interrupted meanwhile, it
 * reads them again. */
static int64_t read_places(struct meter *m) {
    int64_t now = 0;
    for (int i = 0; i < TRIES && (!i || m->clock() - now > QUICK); i++) {
        now = m->clock();
        for (int p = 0; p < m->head->size.places; p++) read_place(m, p, now);
    }
    return now;
}

static void add_frame(struct meter *m) {
    uint64_t which;
    const int64_t slowest = crew_take_slowest(&m->head->course, &which);
    const int64_t step = (int64_t)atomic_load(&m->head->course.committed), now = read_places(m);
    if (times_add(&m->times, now, step, slowest, (int64_t)which, m->place)) failed(m);
}

/* By the first step, the reporter has put away the files of an earlier run. */
static bool open_file(struct meter *m) {
    const struct crew_head *h = m->head;
    const char *kind[SPENTS];
    if (m->tried || !crew_begun(h)) return m->times.series.fd >= 0;
    m->tried = true;
    for (int k = 0; k < SPENTS; k++) kind[k] = spent_rows[k].name;
    if (times_open(&m->times, m->directory, (int64_t)atomic_load(&h->course.base), m->began,
                     h->size.places, h->size.threads, kind, SPENTS)) {
        failed(m);
        return false;
    }
    m->times.root = m->root;
    return true;
}

void meter_turn(struct meter *m) {
    if (!open_file(m)) return;
    const int64_t step = (int64_t)atomic_load(&m->head->course.committed), now = m->clock();
    if (times_due(&m->times, now, step)) add_frame(m);
    if (times_look_due(&m->times, now)) look(m, now);
}

/* ---- the thread ---- */

static void *run(void *arg) {
    struct meter *m = arg;
    struct timespec when;
    pthread_mutex_lock(&m->lock);
    clock_gettime(CLOCK_MONOTONIC, &when);
    while (!m->ends) {
        when.tv_nsec += TICK;
        when.tv_sec += when.tv_nsec / 1000000000;
        when.tv_nsec %= 1000000000;
        while (!m->ends && pthread_cond_timedwait(&m->changed, &m->lock, &when) != ETIMEDOUT)
            continue;
        pthread_mutex_unlock(&m->lock);
        meter_turn(m);
        clock_gettime(CLOCK_MONOTONIC, &when);
        pthread_mutex_lock(&m->lock);
    }
    pthread_mutex_unlock(&m->lock);
    return NULL;
}

struct meter *meter_make(const char *directory, struct crew_head *h, const char *root,
                         int64_t (*clock)(void)) {
    const size_t places = (size_t)h->size.places;
    struct meter *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    *m = (struct meter){.head = h, .root = root, .clock = clock, .began = clock(),
                          .times.series.fd = -1};
    pthread_condattr_t attribute;
    pthread_condattr_init(&attribute);
    pthread_condattr_setclock(&attribute, CLOCK_MONOTONIC);
    pthread_cond_init(&m->changed, &attribute);
    pthread_condattr_destroy(&attribute);
    pthread_mutex_init(&m->lock, NULL);
    m->directory = strdup(directory);
    m->place = calloc(places, sizeof *m->place);
    m->time = calloc(places, sizeof *m->time);
    m->shared = calloc(places, sizeof *m->shared);
    if (m->directory && m->place && m->time && m->shared) return m;
    meter_end(m);
    return NULL;
}

void meter_last(struct meter *m) {
    if (m->times.series.fd >= 0) add_frame(m);
}

void meter_end(struct meter *m) {
    times_close(&m->times);
    rivals_free(&m->rivals);
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
    free(m->directory);
    free(m->place);
    free(m->time);
    free(m->shared);
    free(m);
}

tri_status meter_open(const char *directory, struct crew_head *h, struct meter **out) {
    *out = NULL;
    if (!directory) return TRI_OK;
    struct meter *m = meter_make(directory, h, "", base_now);
    if (!m) return base_no_memory("the times of workers");
    const int error = pthread_create(&m->thread, NULL, run, m);
    if (!error) *out = m;
    else meter_end(m);
    return error ? base_fail(TRI_FAILED, "cannot start a thread: %s", strerror(error)) : TRI_OK;
}

void meter_close(struct meter *m, struct log *log) {
    if (!m) return;
    pthread_mutex_lock(&m->lock);
    m->ends = true;
    pthread_cond_signal(&m->changed);
    pthread_mutex_unlock(&m->lock);
    pthread_join(m->thread, NULL);
    meter_last(m);
    meter_tell(m, log);
    meter_end(m);
}
