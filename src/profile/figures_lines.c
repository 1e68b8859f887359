/* SPDX-License-Identifier: Apache-2.0
 * What metrics.jsonl and logs say of a run. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "observe/files.h"
#include "observe/json.h"
#include "profile/figures.h"
#include "profile/lines.h"

/* ---- times of workers, of the version before ---- */

#define PLACES_MOST 4096

/* Adds "workers":[{"worker":0,"compute":0.04,"wait":0.01,"reduce":0.02,"data":0.007,"lanes":53,
 * "peak":6090752}] of a line, in seconds. Returns how many places there are. */
static int read_workers(const char *line, int places, struct figures_place *place) {
    json_t *j = strstr(line, "\"workers\"") ? json_loads(line, 0, NULL) : NULL, *one;
    size_t i;
    int most = 0;
    json_array_foreach(json_object_get(j, "workers"), i, one) {
        const int64_t k = json_whole_of(one, "worker", 0);
        if (k >= 0 && k < PLACES_MOST && k >= most) most = (int)k + 1;
        if (k < 0 || k >= places) continue;
        struct figures_place *to = &place[k];
        to->lanes += json_number_of(one, "lanes", 0);
        to->memory = fmax(to->memory, json_number_of(one, "peak", 0));
        to->spent[SPENT_COMPUTE] += json_number_of(one, "compute", 0);
        to->spent[SPENT_WAIT_LANES] += json_number_of(one, "wait", 0);
        to->spent[SPENT_SUM] += json_number_of(one, "reduce", 0);
        to->spent[SPENT_READ] += json_number_of(one, "data", 0);
    }
    json_decref(j);
    return most;
}

/* ---- metrics.jsonl ---- */

struct reading {
    struct figures *f;
    struct lines lines;
    size_t loss, skipped; /* fields */
    double last_skipped, steps;
    /* Lines become at most FRAMES_MOST frames: clock: seconds of this entry; before: when it began,
     * since 1970, or if that is not known, seconds of those before; entries: before it. */
    double clock, before;
    size_t entries;
    int64_t each, taken; /* lines: of a frame, in this one */
    struct figures_frame frame;
};

#define FRAMES_MOST 16384

/* How many steps the line is about. */
static double steps_of(const struct lines *l) {
    const double steps = l->value[LINES_STEPS];
    return steps > 0 ? fmin(steps, 0x1p53) : 1;
}

static void read_line(struct reading *r) {
    struct figures *f = r->f;
    const struct lines *l = &r->lines;
    const double step = l->value[LINES_STEP];
    r->loss = lines_find(l, "loss", r->loss);
    r->skipped = lines_find(l, "skipped", r->skipped);
    f->lines++;
    if (step > (double)f->last) f->last = (int64_t)step;
    if (r->loss < l->n && (l->seen[r->loss] & LINES_TRAINED) && isnan(l->value[r->loss]) &&
        !f->bad++)
        f->first_bad = (int64_t)(step - steps_of(l)) + 1;
    if (r->skipped < l->n && l->value[r->skipped] >= 0) {
        r->last_skipped = l->value[r->skipped];
        r->steps += steps_of(l);
    }
}

/* The frame that lines have filled. */
static tri_status end_frame(struct reading *r, struct figures_parts *p,
                            struct figures_place *place) {
    static const double none[3] = {0};
    if (!r->taken) return TRI_OK;
    for (int i = 0; i < p->places; i++) /* seconds become shares */
        for (int k = 0; k < SPENTS; k++)
            place[i].spent[k] = r->frame.covers > 0 ? place[i].spent[k] / r->frame.covers : 0;
    const tri_status status = figures_take(p, &r->frame, none, place);
    memset(place, 0, (size_t)p->places * sizeof *place);
    r->frame = (struct figures_frame){.end = 0};
    r->taken = 0;
    return status;
}

/* When an entry began; if that is not known, when those before it took so long. */
static double begin_of(const struct reading *r, double otherwise) {
    const struct run_read *run = r->f->run;
    const double begin = r->entries < run->n_entries ? run->entry[r->entries].begin : NAN;
    return isfinite(begin) ? begin : otherwise;
}

static tri_status take_line(struct reading *r, struct figures_parts *p,
                            struct figures_place *place) {
    const struct lines *l = &r->lines;
    const double now = l->value[LINES_SECONDS];
    if (!(now >= 0)) return TRI_OK;
    if (now < r->clock) {
        r->entries++;
        r->before = begin_of(r, r->before + r->clock);
        r->clock = 0;
    }
    r->frame.end = r->before + now;
    r->frame.covers += now - r->clock;
    r->frame.steps += steps_of(l);
    r->frame.step = (int64_t)l->value[LINES_STEP];
    r->clock = now;
    read_workers(l->line, p->places, place);
    return ++r->taken < r->each ? TRI_OK : end_frame(r, p, place);
}

static tri_status read_lines(struct reading *r, const char *path, struct figures_parts *p) {
    struct figures_place *place = calloc(p ? (size_t)p->places + 1 : 1, sizeof *place);
    tri_status status = place ? lines_open(&r->lines, path) : base_no_memory(path);
    while (!status && lines_next(&r->lines)) {
        if (r->lines.evaluation) continue;
        if (p) status = take_line(r, p, place);
        else read_line(r);
    }
    if (p && !status) status = end_frame(r, p, place);
    free(place);
    return status;
}

/* How many places the first line has. */
static int count_places(const char *path) {
    struct lines l = {0};
    int places = 0;
    if (!lines_open(&l, path) && lines_next(&l)) places = read_workers(l.line, 0, NULL);
    lines_free(&l);
    return places;
}

tri_status figures_lines(struct figures *f, const char *path, bool times) {
    struct reading r = {.f = f};
    struct figures_parts p = {0};
    tri_status status = read_lines(&r, path, NULL);
    f->damaged_lines += r.lines.damaged;
    if (!status && r.steps > 0) f->skipped = r.last_skipped / fmax(r.steps, (double)f->last);
    if (!status && times && f->lines && !f->n_frames) {
        const int places = count_places(path);
        f->old = places > 0;
        r.each = 1 + (f->lines - 1) / FRAMES_MOST;
        r.before = begin_of(&r, 0);
        status = figures_begin(f, 0, places, (size_t)(1 + (f->lines - 1) / r.each), &p);
        if (!status) status = read_lines(&r, path, &p);
        if (!status) status = figures_end(&p);
        free(p.sum);
    }
    lines_free(&r.lines);
    return status;
}

/* ---- logs ---- */

#define EVENTS_MOST 20000

/* "2026-01-31T12:00:00.123Z" as seconds since 1970. */
static double time_of(const char *text) {
    struct tm t = {0};
    int year, month, milliseconds = 0;
    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d.%3d", &year, &month, &t.tm_mday, &t.tm_hour,
               &t.tm_min, &t.tm_sec, &milliseconds) < 6)
        return 0;
    t.tm_year = year - 1900, t.tm_mon = month - 1;
    return (double)timegm(&t) + 1e-3 * milliseconds;
}

/* What a worker says of memory when it begins. */
static void read_memory(struct figures_host *h, const json_t *j, const char *event) {
    if (!strcmp(event, "join")) h->limit = json_number_of(j, "memory", 0);
    if (!strcmp(event, "compiled")) h->store = json_number_of(j, "store", 0);
}

static tri_status read_event(struct figures *f, int host, const char *line) {
    static const char *const info[] = {"checkpoint", "evaluation", "host-lost", "host-joined",
                                       "takeover"};
    json_t *j = json_loads(line, 0, NULL);
    const char *event = json_text_of(j, "event");
    bool taken = *event && strcmp(json_text_of(j, "level"), "info") != 0;
    double cost = json_number_of(j, "cost", 0), time = time_of(json_text_of(j, "time"));
    read_memory(&f->host[host], j, event);
    for (size_t i = 0; i < COUNT(info); i++) taken |= !strcmp(event, info[i]);
    tri_status status = figures_member_event(f, host, time, j);
    if (!status && taken && f->n_events < EVENTS_MOST) {
        const struct figures_event e = {
            .time = time, .host = host,
            .worker = (int)json_whole_of(j, "worker", -1),
            .pid = (int)fmin(fmax(json_number_of(j, "pid", 0), 0), INT_MAX),
            .name = arena_escaped(&f->arena, event),
            .text = arena_escaped(&f->arena, json_text_of(j, "text")),
            .cost = cost > 0 ? cost : 1e-3 * json_number_of(j, "recovered_ms", 0)};
        if (!e.name || !e.text || !ARRAY_GROW(f->event, f->n_events, f->room_events))
            status = base_no_memory("the logs");
        else
            f->event[f->n_events++] = e;
    }
    json_decref(j);
    return status;
}

/* A log that cannot be read is left out. */
static tri_status read_log(struct figures *f, int host, const char *path) {
    struct line_file file = {0};
    char *line;
    tri_status status = TRI_OK;
    if (line_file_open(&file, path, 0)) return TRI_OK;
    while (!status && (line_file_next(&file, &line) >= 0 || line_file_rest(&file, &line) >= 0))
        status = read_event(f, host, line);
    line_file_close(&file);
    return status;
}

tri_status figures_logs(struct figures *f, int host) {
    tri_status status = TRI_OK;
    for (const char *const *pattern = run_logs; *pattern && !status; pattern++) {
        glob_t found = {0};
        status = files_match(f->host[host].folder, *pattern, &found);
        for (size_t k = 0; k < found.gl_pathc && !status; k++)
            if (!run_has_number(found.gl_pathv[k])) status = read_log(f, host, found.gl_pathv[k]);
        globfree(&found);
    }
    return status;
}
