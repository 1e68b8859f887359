/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/sql_tables.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "observe/files.h"
#include "observe/log.h"
#include "observe/run_file.h"
#include "observe/series.h"

/* A file of a run. */
struct place {
    struct sql_runs *runs;
    const char *run, *path;
    const char *host; /* "": it has none */
};
typedef tri_status walk_file(struct sql_table *t, const struct place *at);

/* Calls the function for each file of all runs that matches the pattern. */
static tri_status walk_files(struct sql_table *t, struct sql_runs *r, const char *pattern,
                             walk_file *walk) {
    tri_status status = TRI_OK;
    for (int i = 0; i < r->n && !status; i++) {
        struct run_folders f;
        status = run_folders(r->directory[i], &f);
        for (size_t h = 0; h < f.n && !status; h++) {
            glob_t found = {0};
            status = files_match(f.of[h].path, pattern, &found);
            for (size_t k = 0; k < found.gl_pathc && !status; k++)
                status = walk(t, &(struct place){r, r->directory[i], found.gl_pathv[k],
                                                 f.of[h].host});
            globfree(&found);
        }
        run_folders_free(&f);
    }
    return status;
}

static void declare(struct sql_table *t, const char *const *name) {
    for (; t->declares && *name; name++) sql_integer(t, *name, 0);
}

/* ---- results and evaluations ---- */

/* The fields of a kind of lines that have a column. */
static const enum lines_field fixed[2][LINES_FIXED] = {
    {LINES_STEP, LINES_STEPS, LINES_EPOCH, LINES_SAMPLES, LINES_LR, LINES_SECONDS},
    {LINES_STEP, LINES_EPOCH, LINES_SECONDS}};
static const int fixed_count[2] = {6, 3};

static void put_field(struct sql_table *t, const struct lines *l, enum lines_field field) {
    const double value = l->value[field];
    const bool real = field == LINES_LR || field == LINES_SECONDS;
    if (real) sql_real(t, l->name[field], value);
    else if (field == LINES_STEPS && isnan(value)) sql_integer(t, l->name[field], 1);
    else if (t->declares || fabs(value) < 0x1p53)
        sql_integer(t, l->name[field], t->declares ? 0 : (int64_t)value);
}

static void put_line(struct sql_table *t, const struct lines *l, bool evaluation) {
    const unsigned kind = evaluation ? LINES_EVALUATED : LINES_TRAINED;
    for (int i = 0; i < fixed_count[evaluation]; i++) put_field(t, l, fixed[evaluation][i]);
    for (size_t i = LINES_FIXED; i < l->n; i++)
        if (l->seen[i] & kind) sql_real(t, l->name[i], l->value[i]);
}

static tri_status walk_lines(struct sql_table *t, const struct place *at, bool evaluation) {
    struct lines *l = &at->runs->lines;
    tri_status status = lines_open(l, at->path);
    while (!status && lines_next(l)) {
        if (t->declares || l->evaluation != evaluation) continue;
        sql_text(t, "run", at->run);
        put_line(t, l, evaluation);
        status = sql_row(t);
    }
    return status;
}

static tri_status walk_training(struct sql_table *t, const struct place *at) {
    return walk_lines(t, at, false);
}

static tri_status walk_evaluation(struct sql_table *t, const struct place *at) {
    return walk_lines(t, at, true);
}

/* All lines are scanned once, here, for the names of results. */
static tri_status metrics(struct sql_table *t, void *user) {
    struct sql_runs *r = user;
    tri_status status = walk_files(t, r, "metrics.jsonl", walk_training);
    sql_text(t, "run", "");
    if (t->declares && r->lines.n) put_line(t, &r->lines, false);
    if (t->declares) r->damaged = r->lines.damaged;
    return status;
}

static tri_status evaluations(struct sql_table *t, void *user) {
    struct sql_runs *r = user;
    sql_text(t, "run", "");
    if (t->declares && r->lines.n) put_line(t, &r->lines, true);
    return t->declares ? TRI_OK : walk_files(t, r, "metrics.jsonl", walk_evaluation);
}

/* ---- runs ---- */

static void put_json(struct sql_table *t, const char *key, const json_t *value) {
    if (json_is_integer(value)) sql_integer(t, key, json_integer_value(value));
    else if (json_is_real(value)) sql_real(t, key, json_real_value(value));
    else if (json_is_boolean(value)) sql_integer(t, key, json_is_true(value));
    else if (json_is_string(value)) sql_text(t, key, json_string_value(value));
    if (!json_is_object(value) && !json_is_array(value)) return;
    char *text = json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(9));
    sql_text(t, key, text);
    free(text);
}

static void put_time(struct sql_table *t, const char *key, const json_t *seconds) {
    char text[LOG_TIME];
    log_time((int64_t)(fmax(0, fmin(json_number_value(seconds), 8e9)) * 1e9), text);
    sql_text(t, key, json_is_number(seconds) ? text : NULL);
}

/* When it was started first and ended last, and how. */
static void put_entries(struct sql_table *t, const json_t *entries) {
    static const char *const states[] = {[TRI_OK] = "finished", [TRI_STOPPED] = "stopped"};
    const json_t *last = json_array_get(entries, json_array_size(entries) - 1);
    const json_t *code = json_object_get(last, "exit");
    const size_t how = (size_t)json_integer_value(code);
    const char *state = how < COUNT(states) && states[how] ? states[how] : "failed";
    put_time(t, "began", json_object_get(json_array_get(entries, 0), "begin"));
    put_time(t, "ended", json_object_get(last, "end"));
    sql_text(t, "state", json_is_integer(code) ? state : "not ended");
}

static void leave_out(bool tells) {
    if (tells) fprintf(stderr, "trireme: %s; it is left out\n", tri_message());
}

/* The fields of run.json but the long ones; a list or an object is text, for SQL's json_extract. */
static tri_status put_file(struct sql_table *t, const char *path) {
    static const char *const taken[] = {"entries", "totals", "faults"};
    struct run_read run;
    const char *key;
    json_t *value;
    const tri_status status = run_file_read(path, &run);
    if (status && run_is_later()) return status;
    if (status) leave_out(t->declares);
    put_entries(t, json_object_get(run.root, "entries"));
    for (size_t i = 0; i < COUNT(taken); i++) json_object_del(run.root, taken[i]);
    json_object_foreach(run.root, key, value) put_json(t, key, value);
    run_file_free(&run);
    return TRI_OK;
}

static tri_status put_last(struct sql_table *t, struct lines *l, const char *path) {
    double step = NAN, loss = NAN, seconds = NAN;
    tri_status status = lines_open(l, path);
    size_t k = 0;
    while (!status && lines_next(l)) {
        k = lines_find(l, "loss", k);
        step = l->value[LINES_STEP];
        seconds = l->value[LINES_SECONDS];
        if (k < l->n && !l->evaluation) loss = l->value[k];
    }
    if (step >= 0) sql_integer(t, "step", (int64_t)step);
    sql_real(t, "loss", loss);
    sql_real(t, "seconds", seconds);
    return status;
}

static tri_status put_run(struct sql_table *t, struct sql_runs *r, const char *run) {
    glob_t results = {0}, file = {0};
    tri_status status = run_files(run, "metrics.jsonl", &results);
    if (!status) status = run_files(run, "run.json", &file);
    sql_text(t, "run", run);
    if (!status && file.gl_pathc) status = put_file(t, file.gl_pathv[0]);
    for (size_t i = 0; i < results.gl_pathc && !status && !t->declares; i++)
        status = put_last(t, &r->lines, results.gl_pathv[i]);
    globfree(&results);
    globfree(&file);
    return status ? status : sql_row(t);
}

static tri_status runs(struct sql_table *t, void *user) {
    static const char *const columns[] = {"run",   "title", "state", "began",
                                          "ended", "step",  "loss",  "seconds", NULL};
    struct sql_runs *r = user;
    tri_status status = TRI_OK;
    declare(t, columns);
    for (int i = 0; i < r->n && !status; i++) status = put_run(t, r, r->directory[i]);
    return status;
}

/* ---- workers ---- */

/* The frame's values of a place. Shares become seconds. False: it took no part. */
static bool put_times(struct sql_table *t, const struct series *s, int place) {
    bool any = t->declares;
    for (int k = 0; k < s->layout.n; k++) {
        const struct series_column *c = &s->layout.column[k];
        const double value = t->declares ? 0 : series_value(s, place, k);
        char key[SERIES_NAME];
        for (size_t i = 0; i < sizeof key; i++) key[i] = c->name[i] == '-' ? '_' : c->name[i];
        if (c->kind != SERIES_SHARE) sql_integer(t, key, (int64_t)value);
        else sql_real(t, key, value * (double)s->frame.covers / 1e9);
        any |= value > 0;
    }
    return any;
}

static tri_status put_frame(struct sql_table *t, const struct place *at, const struct series *s) {
    const struct series_frame *f = &s->frame;
    char time[LOG_TIME];
    log_time(s->layout.began + f->time, time);
    tri_status status = TRI_OK;
    for (int i = 0; i < s->layout.places && !status; i++) {
        sql_text(t, "run", at->run);
        sql_text(t, "host", *at->host ? at->host : NULL);
        sql_text(t, "time", time);
        sql_integer(t, "step", f->step);
        sql_integer(t, "steps", f->steps);
        sql_real(t, "seconds", (double)f->time / 1e9);
        sql_real(t, "covers", (double)f->covers / 1e9);
        sql_integer(t, "worker", i);
        if (put_times(t, s, i)) status = sql_row(t);
    }
    return status;
}

static tri_status walk_series(struct sql_table *t, const struct place *at) {
    struct series s;
    if (series_open(&s, at->path)) {
        leave_out(t->declares);
        return TRI_OK;
    }
    tri_status status = TRI_OK;
    if (t->declares) put_times(t, &s, 0);
    for (int64_t i = 0; i < s.n && !status && !t->declares; i++)
        if (series_read(&s, i)) status = put_frame(t, at, &s);
    series_close(&s);
    return status;
}

static tri_status workers(struct sql_table *t, void *user) {
    static const char *const columns[] = {"run",     "host",   "time",   "step", "steps",
                                          "seconds", "covers", "worker", NULL};
    declare(t, columns);
    return walk_files(t, user, "workers.series", walk_series);
}

/* ---- events ---- */

static const char *const event_columns[] = {"run",   "time", "worker", "host", "level",
                                            "event", "step", "text",   NULL};

/* A line that is no event is text; of an event, text has the other fields. */
static void put_event(struct sql_table *t, const char *line) {
    static const char *const own[] = {"time", "worker", "level", "event", "step"};
    json_t *event = json_loads(line, 0, NULL);
    if (!json_is_object(event)) {
        sql_text(t, "text", line);
        json_decref(event);
        return;
    }
    for (size_t i = 0; i < COUNT(own); i++) {
        put_json(t, own[i], json_object_get(event, own[i]));
        json_object_del(event, own[i]);
    }
    put_json(t, "text", event);
    json_decref(event);
}

static tri_status walk_log(struct sql_table *t, const struct place *at) {
    const char *name = strrchr(at->path, '/') + 1;
    char *line = NULL;
    size_t room = 0;
    int worker;
    if (run_has_number(at->path)) return TRI_OK;
    const int fd = base_open(at->path, O_RDONLY, NULL);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
    tri_status status = TRI_OK;
    if (!f) {
        leave_out(true);
        return TRI_OK;
    }
    for (ssize_t n; !status && (n = getline(&line, &room, f)) > 0 && line[n - 1] == '\n';) {
        line[n - 1] = 0;
        sql_text(t, "run", at->run);
        if (*at->host) sql_text(t, "host", at->host);
        if (sscanf(name, "worker-%d.", &worker) == 1) sql_integer(t, "worker", worker);
        put_event(t, line);
        status = sql_row(t);
    }
    free(line);
    fclose(f);
    return status;
}

static tri_status events(struct sql_table *t, void *user) {
    tri_status status = TRI_OK;
    declare(t, event_columns);
    for (const char *const *pattern = run_logs; *pattern && !status && !t->declares; pattern++)
        status = walk_files(t, user, *pattern, walk_log);
    return status;
}

/* ---- tables of a profile ---- */

/* Cuts the first cell off and returns it; null: there is none. */
static char *next_cell(char **at) {
    char *cell = *at, *to = cell;
    if (!cell) return NULL;
    bool quoted = false;
    for (char *p = cell;; p++) {
        if (!*p || (!quoted && *p == ',')) {
            *at = *p ? p + 1 : NULL;
            *to = 0;
            return cell;
        }
        if (*p == '"' && quoted && p[1] == '"') *to++ = *p++;
        else if (*p == '"') quoted = !quoted;
        else *to++ = *p;
    }
}

static void put_cell(struct sql_table *t, const char *key, const char *cell) {
    char *end = NULL;
    errno = 0;
    const long long integer = strtoll(cell, &end, 10);
    if (!*cell) return;
    if (!*end && !errno) {
        sql_integer(t, key, integer);
        return;
    }
    const double real = base_number(cell, &end);
    if (*end) sql_text(t, key, cell);
    else sql_real(t, key, real);
}

static tri_status put_rows(struct sql_table *t, const struct place *at, char *head, char *rest) {
    const char *folder = memrchr(at->path, '/', (size_t)(strrchr(at->path, '/') - at->path));
    char profile[64], *key[256];
    size_t n = 0;
    base_format(profile, sizeof profile, "%.*s", (int)strcspn(folder + 1, "/"), folder + 1);
    while (n < COUNT(key) && (key[n] = next_cell(&head))) n++;
    for (size_t i = 0; i < n && t->declares; i++) sql_integer(t, key[i], 0);
    tri_status status = TRI_OK;
    for (char *end; !t->declares && !status && (end = strchr(rest, '\n')); rest = end + 1) {
        char *cell, *line = rest;
        *end = 0;
        sql_text(t, "run", at->run);
        put_cell(t, "profile", profile);
        if (*at->host) sql_text(t, "host", at->host);
        for (size_t i = 0; i < n && (cell = next_cell(&line)); i++) put_cell(t, key[i], cell);
        status = sql_row(t);
    }
    return status;
}

static tri_status walk_csv(struct sql_table *t, const struct place *at) {
    char *text;
    size_t bytes;
    tri_status status = base_read_file(at->path, &text, &bytes);
    if (status) return status;
    char *end = strchr(text, '\n');
    if (end) *end = 0;
    if (end) status = put_rows(t, at, text, end + 1);
    free(text);
    return status;
}

static tri_status walk_profiles(struct sql_table *t, void *user, const char *pattern) {
    static const char *const columns[] = {"run", "profile", "host", NULL};
    declare(t, columns);
    return walk_files(t, user, pattern, walk_csv);
}

static tri_status operators(struct sql_table *t, void *user) {
    return walk_profiles(t, user, "profile/*/ops.csv");
}

static tri_status moves(struct sql_table *t, void *user) {
    return walk_profiles(t, user, "profile/*/comm.csv");
}

static tri_status buckets(struct sql_table *t, void *user) {
    return walk_profiles(t, user, "profile/*/buckets.csv");
}

/* ---- all ---- */

static const struct {
    const char *name;
    tri_status (*walk)(struct sql_table *t, void *user);
} tables[] = {{"runs", runs},     {"metrics", metrics},     {"evaluations", evaluations},
              {"workers", workers}, {"events", events},       {"operators", operators},
              {"moves", moves},   {"buckets", buckets}};

static tri_status check(const char *directory) {
    struct run_folders f;
    tri_status status = run_folders(directory, &f);
    if (!status && !f.n)
        status = base_fail(TRI_USAGE, "%s has no files of a run, as metrics.jsonl; DIR is the "
                           "directory that a run has as --out", directory);
    run_folders_free(&f);
    return status;
}

tri_status sql_runs_open(struct sql_runs *r, char **directory, int n) {
    *r = (struct sql_runs){.directory = directory, .n = n};
    tri_status status = TRI_OK;
    _Static_assert(COUNT(tables) < COUNT(r->tables), "a table without a name ends them");
    for (size_t i = 0; i < COUNT(tables); i++)
        r->tables[i] = (struct sql_table){tables[i].name, .walk = tables[i].walk, .user = r};
    for (int i = 0; i < n && !status; i++) status = check(directory[i]);
    return status;
}

void sql_runs_close(struct sql_runs *r) { lines_free(&r->lines); }
