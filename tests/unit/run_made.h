/* SPDX-License-Identifier: Apache-2.0
 * Folders of runs that never ran, made from a description; include it after scratch.h. */
#ifndef RUN_MADE_H
#define RUN_MADE_H

#include <sys/stat.h>
#include <time.h>

#include "observe/log.h"
#include "observe/times.h"
#include "profile/report.h"

#define WORLD_WORKERS 4
#define WORLD_COLUMNS (SPENTS + TIMES_COLUMNS)

struct world {
    int workers, threads, cores, lanes, batch;
    double step;     /* seconds */
    int frames;      /* each of as many steps as there are in 50 ms, but at least one */
    int late;        /* the first frame with what `later` says; frames: none */
    bool last_is_well; /* nothing is wrong in the last frame */
    double later;    /* steps take so many times longer from there on */
    double slowest;  /* seconds that a step in the middle takes longer, by this: */
    enum spent slow_kind;
    double start;    /* seconds before the first step */
    /* From `late` on, or if it is `frames`, always: */
    double spent[WORLD_WORKERS][SPENTS]; /* shares; what is missing is computed */
    double no_core[WORLD_WORKERS], done[WORLD_WORKERS]; /* done: lanes in a step */
    double lost[WORLD_WORKERS];
    double memory[WORLD_WORKERS];        /* bytes */
    int planned; /* bytes; 0: not known */
    double throttled_periods, throttled, stolen;
    bool goes_on, damaged;
    const char *title, *options, *command, *hosts, *faults, *entries; /* JSON; entries: after the
                                                                         first */
    const char *log, *metrics; /* files */
};

/* A run in which nothing is wrong. */
static inline struct world world_clean(void) {
    struct world w = {.workers = 2, .threads = 1, .cores = 2, .lanes = 8, .batch = 64,
                      .step = 0.005, .frames = 100, .late = 100, .later = 1,
                      .slow_kind = SPENT_COMPUTE, .title = "lenet5", .options = "", .command = "",
                      .hosts = "", .faults = "", .entries = "", .log = "", .metrics = ""};
    for (int i = 0; i < WORLD_WORKERS; i++) {
        w.spent[i][SPENT_WAIT_LANES] = 0.02;
        w.spent[i][SPENT_SUM] = 0.02;
        w.spent[i][SPENT_UPDATE] = 0.01;
        w.done[i] = 4;
        w.memory[i] = 50e6;
    }
    return w;
}

/* A log in which the agent says so, so many seconds after now. */
static inline const char *world_shared(int after, int pid, const char *text) {
    static char log[512];
    char time_text[LOG_TIME];
    log_time((int64_t)(time(NULL) + after) * 1000000000, time_text);
    snprintf(log, sizeof log, "{\"time\":\"%s\",\"level\":\"warning\",\"event\":"
             "\"shared-core\",\"worker\":1,\"core\":1,\"pid\":%d,\"text\":\"%s\"}\n",
             time_text, pid, text);
    return log;
}

static inline void world_file(const char *folder, const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static inline void world_place(const struct world *w, int place, int frame, double steps,
                               double *value) {
    double all = 0;
    memset(value, 0, WORLD_COLUMNS * sizeof *value);
    const bool last = w->last_is_well && frame == w->frames - 1;
    const bool changed = !last && (frame >= w->late || w->late == w->frames);
    const struct world usual = world_clean();
    for (int k = 0; k < SPENTS; k++)
        all += value[k] = (changed ? w : &usual)->spent[place][k];
    value[SPENT_COMPUTE] += 1 - all;
    const double more_time = frame == w->frames / 2 ? w->slowest : 0;
    const double part = more_time / (more_time + steps * w->step);
    for (int k = 0; k < SPENTS; k++) value[k] *= 1 - part;
    value[w->slow_kind] += part;
    double *more = value + SPENTS;
    more[TIMES_NO_CORE] = changed ? w->no_core[place] : 0;
    more[TIMES_LANES] = (changed ? w->done[place] : w->lanes / (double)w->workers) * steps;
    more[TIMES_LOST] = w->lost[place] * steps;
    more[TIMES_MEMORY] = w->memory[place] / 1024;
}

/* Adds frames from `at` on; returns when the last one ends. */
static inline int64_t world_frames(const struct world *w, struct series_writer *s, int64_t at) {
    double value[WORLD_WORKERS * WORLD_COLUMNS];
    const double each = w->step < 0.05 ? round(0.05 / w->step) : 1;
    int64_t step = 0;
    for (int i = -(w->start > 0); i < w->frames; i++) {
        const double steps = i < 0 ? 0 : each, one = w->step * (i >= w->late ? w->later : 1);
        const double more = i == w->frames / 2 ? w->slowest : 0;
        const double covers = i < 0 ? w->start : steps * one + more;
        at += (int64_t)(1e9 * covers);
        step += (int64_t)steps;
        const struct series_frame f = {
            .step = step, .covers = (int64_t)(1e9 * covers), .steps = (uint32_t)steps,
            .slowest = (int64_t)(1e9 * (one + more)), .slowest_step = step,
            .throttled_periods = series_share(w->throttled_periods),
            .throttled = series_share(w->throttled), .stolen = series_share(w->stolen)};
        for (int p = 0; p < w->workers; p++) {
            world_place(w, p, i, steps, value + p * WORLD_COLUMNS);
            if (i < 0) memset(value + p * WORLD_COLUMNS, 0, SPENTS * sizeof *value);
            if (i < 0) value[p * WORLD_COLUMNS + SPENT_START] = 1;
        }
        s->offset = 0;
        assert_int_equal(series_add(s, at, &f, value), TRI_OK);
    }
    return at;
}

static inline void world_run(const struct world *w, const char *folder, double begin, double end) {
    char text[8192], when[64] = "null,\"exit\":null";
    if (!w->goes_on) snprintf(when, sizeof when, "%.6f,\"exit\":0", end);
    snprintf(text, sizeof text,
             "{\"format\":1,\"version\":\"" TRI_VERSION "\",\"title\":\"%s\",\"command\":[%s],"
             "\"cores\":%d,\"workers\":%d,\"threads\":%d,\"hosts\":[%s],\"options\":{%s},"
             "\"plan\":\"[grain]\\nmesh none\\n\",\"steps\":1000,\"lanes\":%d,\"batch\":%d,"
             "\"memory\":%d,"
             "\"entries\":[{\"begin\":%.6f,\"end\":%s}%s],\"faults\":[%s]}",
             w->title, w->command, w->cores, w->workers, w->threads, w->hosts, w->options, w->lanes,
             w->batch, w->planned, begin, when, w->entries, w->faults);
    world_file(folder, "run.json", text);
}

/* In a folder that is there, and may have such files. */
static inline void world_make(const struct world *w, const char *folder) {
    struct series_column column[WORLD_COLUMNS];
    struct series_writer s;
    char path[512];
    for (int k = 0; k < SPENTS; k++) {
        column[k] = (struct series_column){.kind = SERIES_SHARE};
        snprintf(column[k].name, SERIES_NAME, "%s", spent_rows[k].name);
    }
    for (int k = 0; k < TIMES_COLUMNS; k++) column[SPENTS + k] = times_columns[k];
    snprintf(path, sizeof path, "%s/workers.series", folder);
    assert_int_equal(series_create(&s, path, base_now(), w->workers, column, WORLD_COLUMNS),
                     TRI_OK);
    const double begin = 1e-9 * (double)s.layout.began;
    const int64_t end = world_frames(w, &s, 0);
    if (w->damaged) assert_int_equal(pwrite(s.fd, "damage!!", 8, SERIES_PAGE + 100), 8);
    series_writer_close(&s);
    world_run(w, folder, begin, begin + 1e-9 * (double)end);
    world_file(folder, "agent.log", w->log);
    world_file(folder, "metrics.jsonl", w->metrics);
}

#endif
