/* SPDX-License-Identifier: Apache-2.0 */
#include "run/worker_log.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine/budget.h"
#include "run/worker.h"

#define SLOW 10                             /* times the median */
#define KNOWN 16                            /* steps before there is a median */
#define INTERVAL ((int64_t)60 * 1000000000) /* nanoseconds between two warnings */

static double seconds(int64_t nanoseconds) { return 1e-9 * (double)nanoseconds; }

struct worker_spent worker_spent_of(const struct crew_head *h, int place) {
    struct worker_spent s = {0};
    const int64_t now = base_now();
    for (int t = 0; t < h->size.threads; t++) {
        const struct crew_thread *thread = &h->thread[place * h->size.threads + t];
        spending_add(&thread->spending, now, s.time);
        s.lanes += atomic_load_explicit(&thread->lanes_done, memory_order_relaxed);
        s.lost += atomic_load_explicit(&thread->lanes_lost, memory_order_relaxed);
    }
    return s;
}

static struct worker_spent since(const struct worker *c, const struct worker_spent *before) {
    struct worker_spent s = worker_spent_of(c->head, c->place);
    for (int i = 0; i < SPENTS; i++) s.time[i] -= before->time[i];
    s.lanes -= before->lanes;
    s.lost -= before->lost;
    return s;
}

static double spent_seconds(const struct worker_spent *s, enum spent_group group) {
    return seconds(spent_of(s->time, group));
}

static long long step_of(const struct worker *c) {
    return (long long)atomic_load(&c->head->course.committed);
}

void worker_log_join(struct worker *c) {
    struct worker_log *l = &c->log;
    const char *whose;
    char path[sizeof c->head->told.out + 32];
    *l = (struct worker_log){.log.fd = -1,
                             .joined = base_now(),
                             .rank = worker_rank(c),
                             .reports = worker_reports(c),
                             .before = worker_spent_of(c->head, c->place)};
    l->lost = l->before.lost;
    if (!*c->head->told.out) return;
    base_format(path, sizeof path, "%s/worker-%d.log", c->head->told.out, c->place);
    if (log_open(&l->log, path, LOG_BUDGET)) return;
    log_event(&l->log, LOG_INFO, "join",
              "worker=%d step=%lld pid=%d rank=%d threads=%d core=%d memory=%lld", c->place,
              step_of(c), (int)getpid(), l->rank, c->threads, sched_getcpu(),
              (long long)budget_limit(0, 0, &whose));
}

void worker_log_compiled(struct worker *c) {
    log_event(&c->log.log, LOG_INFO, "compiled",
              "worker=%d step=%lld seconds=%g store=%lld peak=%lld", c->place, step_of(c),
              seconds(base_now() - c->log.joined), (long long)c->head->layout.store_bytes,
              (long long)atomic_load(&worker_self(c)->peak));
}

void worker_log_changes(struct worker *c) {
    struct worker_log *l = &c->log;
    int rank = worker_rank(c);
    bool reports = worker_reports(c);
    bool gets = (rank >= 0 && rank != l->rank) || (reports && !l->reports);
    if (rank == l->rank && reports == l->reports) return;
    l->rank = rank;
    l->reports = reports;
    log_event(&l->log, LOG_INFO, gets ? "takeover" : "rests",
              "worker=%d step=%lld rank=%d reporter=%d", c->place, step_of(c), rank, reports);
}

/* ---- warnings ---- */

static bool due(int64_t *logged, int64_t now) {
    if (*logged && now - *logged < INTERVAL) return false;
    *logged = now;
    return true;
}

static int by_length(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void learn(struct worker_log *l, int64_t took) {
    int64_t sorted[WORKER_LOG_STEPS];
    l->took[l->steps % WORKER_LOG_STEPS] = took;
    l->steps++;
    if (l->steps < KNOWN || l->steps % KNOWN) return;
    size_t n = l->steps < WORKER_LOG_STEPS ? (size_t)l->steps : WORKER_LOG_STEPS;
    memcpy(sorted, l->took, sizeof sorted);
    qsort(sorted, n, sizeof *sorted, by_length);
    l->median = sorted[n / 2];
}

static void log_slow(struct worker *c, int64_t took, int64_t now) {
    struct worker_log *l = &c->log;
    if (!l->median || took <= SLOW * l->median || !due(&l->slow_logged, now)) return;
    struct worker_spent s = since(c, &l->step_before);
    log_event(&l->log, LOG_WARNING, "slow-step",
              "worker=%d step=%llu seconds=%g median=%g compute=%g wait=%g reduce=%g data=%g "
              "other=%g",
              c->place, (unsigned long long)c->step, seconds(took), seconds(l->median),
              spent_seconds(&s, SPENT_COMPUTES), spent_seconds(&s, SPENT_WAITS),
              spent_seconds(&s, SPENT_SUMS), spent_seconds(&s, SPENT_READS),
              spent_seconds(&s, SPENT_BESIDE) + spent_seconds(&s, SPENT_NOTHING));
}

static void log_lost(struct worker *c, uint64_t lost, int64_t now) {
    struct worker_log *l = &c->log;
    if (lost == l->lost || !due(&l->lost_logged, now)) return;
    log_event(&l->log, LOG_INFO, "lanes-lost", "worker=%d step=%llu lanes=%llu", c->place,
              (unsigned long long)c->step, (unsigned long long)(lost - l->lost));
    l->lost = lost;
}

void worker_log_step_begins(struct worker *c) {
    if (c->log.log.fd < 0) return;
    c->log.step_before = worker_spent_of(c->head, c->place);
    c->log.step_began = base_now();
}

void worker_log_step_ends(struct worker *c) {
    struct worker_log *l = &c->log;
    if (l->log.fd < 0) return;
    int64_t now = base_now(), took = now - l->step_began;
    log_slow(c, took, now);
    log_lost(c, worker_spent_of(c->head, c->place).lost, now);
    learn(l, took);
    if (l->steps == 1)
        log_event(&l->log, LOG_INFO, "first-step", "worker=%d step=%llu seconds=%g", c->place,
                  (unsigned long long)c->step, seconds(now - l->joined));
}

/* ---- the end ---- */

void worker_log_checkpoint(struct worker *c, int64_t step, size_t bytes, double seconds,
                           const char *error) {
    log_event(&c->log.log, error ? LOG_ERROR : LOG_INFO, "checkpoint",
              "worker=%d step=%lld bytes=%zu seconds=%g text=%s", c->place, (long long)step, bytes,
              seconds, error ? error : "");
}

void worker_log_failure(struct worker *c, const char *text) {
    struct crew_worker *self = worker_self(c);
    base_format(self->failure, sizeof self->failure, "%s", text);
    log_event(&c->log.log, LOG_ERROR, "failure", "worker=%d step=%lld text=%s", c->place,
              step_of(c), text);
}

void worker_log_leave(struct worker *c) {
    struct worker_spent s = since(c, &c->log.before);
    log_event(&c->log.log, LOG_INFO, "leave",
              "worker=%d step=%lld steps=%llu lanes=%llu lost=%llu compute=%g wait=%g reduce=%g "
              "data=%g",
              c->place, step_of(c), (unsigned long long)c->log.steps, (unsigned long long)s.lanes,
              (unsigned long long)s.lost, spent_seconds(&s, SPENT_COMPUTES),
              spent_seconds(&s, SPENT_WAITS), spent_seconds(&s, SPENT_SUMS),
              spent_seconds(&s, SPENT_READS));
}

void worker_log_close(struct worker *c) { log_close(&c->log.log); }
