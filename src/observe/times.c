/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/times.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/host.h"
#include "base/runqueue.h"

#define KIB 1024.0

const struct series_column times_columns[TIMES_COLUMNS] = {
    [TIMES_NO_CORE] = {"no-core", SERIES_SHARE, 0},
    [TIMES_LANES] = {"lanes-done", SERIES_SUM, 0},
    [TIMES_LOST] = {"lanes-lost", SERIES_SUM, 0},
    [TIMES_MEMORY] = {"memory-kib", SERIES_MOST, 0},
    [TIMES_SENT] = {"sent-kib", SERIES_SUM, 0},
    [TIMES_RECEIVED] = {"received-kib", SERIES_SUM, 0},
    [TIMES_SENT_WHOLE] = {"sent-whole-kib", SERIES_SUM, 0}};

static tri_status allocate(struct times *s) {
    const size_t places = (size_t)s->places, threads = places * (size_t)s->threads;
    s->before = calloc(places * (size_t)s->n, sizeof *s->before);
    s->value = calloc(places * (size_t)s->n, sizeof *s->value);
    s->no_core = calloc(places, sizeof *s->no_core);
    s->thread = calloc(threads, sizeof *s->thread);
    if (!s->before || !s->value || !s->no_core || !s->thread)
        return base_no_memory("the times of workers");
    for (size_t i = 0; i < threads; i++) s->thread[i].fd = -1;
    return TRI_OK;
}

static tri_status open_file(struct times *s, const char *directory, int64_t began,
                            const char *const *kind) {
    struct series_column column[SERIES_COLUMNS];
    char path[4096];
    for (int i = 0; i < s->kinds; i++) {
        column[i] = (struct series_column){.kind = SERIES_SHARE};
        base_format(column[i].name, SERIES_NAME, "%s", kind[i]);
    }
    for (int i = 0; i < TIMES_COLUMNS; i++) column[s->kinds + i] = times_columns[i];
    base_format(path, sizeof path, "%s/workers.series", directory);
    return (s->step ? series_continue : series_create)(&s->series, path, began, s->places, column,
                                                       s->n);
}

tri_status times_open(struct times *s, const char *directory, int64_t done, int64_t began,
                        int places, int threads, const char *const *kind, int kinds) {
    *s = (struct times){.series.fd = -1, .root = "", .places = places, .threads = threads,
                          .kinds = kinds, .n = kinds + TIMES_COLUMNS, .at = began, .step = done};
    tri_status status = allocate(s);
    if (!status) status = open_file(s, directory, began, kind);
    if (status) times_close(s);
    return status;
}

static void forget(struct times_thread *t) {
    if (t->fd >= 0) close(t->fd);
    *t = (struct times_thread){.fd = -1};
}

void times_close(struct times *s) {
    series_writer_close(&s->series);
    for (int i = 0; s->thread && i < s->places * s->threads; i++) forget(&s->thread[i]);
    free(s->thread);
    free(s->before);
    free(s->value);
    free(s->no_core);
    *s = (struct times){.series.fd = -1};
}

/* ---- the system ---- */

void times_thread(struct times *s, int place, int thread, int pid, int tid) {
    struct times_thread *t = &s->thread[place * s->threads + thread];
    if (t->tid == tid) return;
    forget(t);
    t->tid = tid;
    if (tid) t->fd = runqueue_open(s->root, pid, tid);
    t->waited = runqueue_waited(t->fd);
}

/* What the thread has waited since the last look. */
static int64_t waited(struct times_thread *t) {
    const int64_t before = t->waited, now = runqueue_waited(t->fd);
    if (now >= 0) t->waited = now;
    return now >= 0 && before >= 0 ? now - before : 0;
}

static void look_at_host(struct times *s, double passed, double without_core) {
    struct host h;
    int cores;
    host_read(s->root, &h);
    const double stolen = host_stolen(s->root, &cores), throttled = h.throttled - s->host.throttled;
    const double all = passed * (cores > 0 ? cores : 1);
    if (s->looked) {
        const int64_t periods = h.periods - s->host.periods;
        s->throttled_periods = series_share(
            periods > 0 ? (double)(h.throttled_periods - s->host.stops) / (double)periods : 0);
        s->throttled = series_share(throttled / all);
        s->stolen = series_share((stolen - s->host.stolen) / all);
        s->quota = without_core > 0 ? fmin(fmax(throttled / without_core, 0), 1) : 0;
    }
    s->host.throttled = h.throttled;
    s->host.periods = h.periods;
    s->host.stops = h.throttled_periods;
    s->host.stolen = stolen;
}

void times_look(struct times *s, int64_t now) {
    const double passed = 1e-9 * (double)(now - s->looked);
    double all = 0;
    for (int p = 0; p < s->places; p++) {
        int64_t sum = 0;
        for (int t = 0; t < s->threads; t++) sum += waited(&s->thread[p * s->threads + t]);
        const double share = 1e-9 * (double)sum / passed / s->threads;
        s->no_core[p] = share < 1 ? share : 1;
        all += 1e-9 * (double)sum;
    }
    look_at_host(s, passed, all);
    s->looked = now;
}

/* ---- frames ---- */

/* The part of `passed` that a place has spent on each kind, and what it has counted. */
static void fill(struct times *s, int place, const struct times_place *now, double passed) {
    double *before = s->before + place * s->n, *value = s->value + place * s->n;
    for (int k = 0; k < s->kinds; k++) {
        const double time = (double)now->time[k];
        value[k] = (time - before[k]) / (passed * s->threads);
        before[k] = time;
    }
    const double counts[TIMES_COLUMNS] = {[TIMES_LANES] = (double)now->lanes,
                                           [TIMES_LOST] = (double)now->lost,
                                           [TIMES_SENT] = (double)(now->sent >> 10),
                                           [TIMES_RECEIVED] = (double)(now->received >> 10),
                                           [TIMES_SENT_WHOLE] = (double)(now->sent_whole >> 10)};
    for (int i = 0; i < TIMES_COLUMNS; i++) {
        value[s->kinds + i] = counts[i] - before[s->kinds + i];
        before[s->kinds + i] = counts[i];
    }
    value[s->kinds + TIMES_NO_CORE] = s->no_core[place];
    value[s->kinds + TIMES_MEMORY] = (double)now->memory / KIB;
}

tri_status times_add(struct times *s, int64_t now, int64_t step, int64_t slowest,
                       int64_t slowest_step, const struct times_place *place) {
    if (s->series.fd < 0) return TRI_FAILED; /* it has failed before */
    const int64_t covers = now - s->at, steps = step - s->step;
    const struct series_frame f = {.step = step, .covers = covers, .slowest = slowest,
                                   .slowest_step = slowest_step,
                                   .steps = steps > 0 ? (uint32_t)steps : 0,
                                   .throttled_periods = s->throttled_periods,
                                   .throttled = s->throttled, .stolen = s->stolen};
    if (covers <= 0) return TRI_OK;
    for (int p = 0; p < s->places; p++) fill(s, p, &place[p], (double)covers);
    tri_status status = series_add(&s->series, now, &f, s->value);
    s->at = now;
    s->step = step;
    s->due = status ? INT64_MAX : now + s->series.layout.period;
    return status;
}
