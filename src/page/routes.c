/* SPDX-License-Identifier: Apache-2.0 */
#include "page/routes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "observe/json.h"
#include "page/heat.h"
#include "page/kept.h"
#include "page/runs.h"
#include "page/slices.h"
#include "profile/against.h"
#include "profile/logs.h"
#include "profile/report.h"
#include "profile/study.h"
#include "profile/tables.h"

#define PIXELS 4096 /* columns of a curve, at most */
#define LINES 1000  /* of logs: the last ones */
#define LINE 2000   /* bytes of one */

/* ---- values of the query ---- */

static double number(const struct http_request *r, const char *key, double otherwise) {
    const char *text = http_value(r, key);
    char *end;
    const double value = text && *text ? base_number(text, &end) : NAN;
    return isfinite(value) && !*end ? value : otherwise;
}

static int64_t whole(const struct http_request *r, const char *key, int64_t otherwise) {
    return (int64_t)fmin(fmax(number(r, key, (double)otherwise), -1), 0x1p62);
}

static int pixels_of(const struct http_request *r, int otherwise) {
    return (int)fmin(fmax(number(r, "pixels", otherwise), 1), PIXELS);
}

/* -1: none is named. */
static int run_named(const struct http_request *r, const char *key) {
    return (int)fmin(fmax(number(r, key, -1), -1), 1e9);
}

/* The run that is asked for; -1, with the answer, if there is none. */
static int run_of(const struct http_request *r, struct http_answer *a) {
    const char *run = http_value(r, "run");
    if (run && *run && strlen(run) < 9 && strspn(run, "0123456789") == strlen(run) &&
        runs_path(atoi(run)))
        return atoi(run);
    a->code = 404;
    text_add(&a->body, "there is no such run");
    return -1;
}

static void fail(struct http_answer *a) {
    a->code = 500;
    text_add(&a->body, "%s", tri_message());
}

static void give(struct http_answer *a, json_t *answer) {
    char *text = answer ? json_dumps(answer, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
    if (text) text_add_bytes(&a->body, text, strlen(text));
    else a->body.failed = true;
    free(text);
    json_decref(answer);
}

/* ---- answers ---- */

static void runs(const struct http_request *r, struct http_answer *a) {
    json_t *list = json_array();
    (void)r;
    for (int i = 0; runs_path(i); i++) json_array_append_new(list, runs_row(i));
    json_t *answer = json_object();
    json_object_set_new(answer, "version", json_integer(runs_version(-1)));
    json_object_set_new(answer, "runs", list);
    give(a, answer);
}

static void run_file(const struct http_request *r, struct http_answer *a) {
    const int run = run_of(r, a);
    if (run < 0) return;
    json_t *answer = json_object(), *file = runs_file(run);
    json_object_set_new(answer, "row", runs_row(run));
    json_object_set_new(answer, "file", file ? file : json_null());
    give(a, answer);
}

static void report(const struct http_request *r, struct http_answer *a) {
    const int run = run_of(r, a);
    struct figures f = {0};
    struct report found;
    if (run < 0) return;
    tri_status status = figures_read(runs_path(run), &f);
    if (!status) f.profile = slices_profile(runs_path(run));
    if (!status) {
        report_make(&f, &found);
        report_json(&found, &a->body);
        report_free(&found);
    }
    if (status) fail(a);
    figures_free(&f);
}

/* Columns of a curve: [[x, least, most, mean], ...]; x is that of the first value; empty ones are
 * left out. */
static json_t *columns_of(const struct curves *c, const struct curve *of, const char *key,
                          enum curve_axis axis, double from, double to, int n) {
    json_t *all = json_array();
    struct curve_point *column = from <= to ? calloc((size_t)n, sizeof *column) : NULL;
    if (column) curves_part(c, of, key, &(struct curve_view){axis, from, to, n, column});
    for (int i = 0; column && i < n; i++)
        if (column[i].n)
            json_array_append_new(all, json_pack("[f,f,f,f]", column[i].x[axis], column[i].least,
                                                 column[i].most, column[i].mean));
    free(column);
    return all;
}

static void add_names(const struct lines *l, json_t *to) {
    json_t *trained = json_array(), *evaluated = json_array();
    for (size_t i = LINES_FIXED; i < l->n; i++) {
        if (l->seen[i] & LINES_TRAINED) json_array_append_new(trained, json_string(l->name[i]));
        if (l->seen[i] & LINES_EVALUATED) json_array_append_new(evaluated, json_string(l->name[i]));
    }
    json_object_set_new(to, "trained", trained);
    json_object_set_new(to, "evaluated", evaluated);
}

/* A run without results has an empty curve. */
static void curve(const struct http_request *r, struct http_answer *a) {
    const int run = run_of(r, a), pixels = pixels_of(r, 600);
    const char *key = http_value(r, "key"), *by = http_value(r, "by");
    const enum curve_axis axis = by && !strcmp(by, "time") ? CURVE_TIME : CURVE_STEPS;
    const struct curves *c;
    double least = INFINITY, most = -INFINITY;
    if (run < 0) return;
    if (!key) key = "loss";
    if (kept_curves(runs_path(run), key, &c)) {
        fail(a);
        return;
    }
    const struct curve *both[] = {&c->training, &c->evaluations};
    for (int i = 0; i < 2; i++)
        if (both[i]->n) {
            least = fmin(least, both[i]->begin[axis]);
            most = fmax(most, both[i]->end[axis]);
        }
    const double from = number(r, "from", least), to = number(r, "to", most);
    json_t *answer = json_object();
    json_object_set_new(answer, "begin", json_finite(least));
    json_object_set_new(answer, "end", json_finite(most));
    for (int i = 0; i < 2; i++)
        json_object_set_new(answer, i ? "evaluations" : "training",
                            columns_of(c, both[i], key, axis, from, to, pixels));
    json_object_set_new(answer, "last", json_finite(c->training.n ? c->training.last : NAN));
    json_object_set_new(answer, "damaged", json_integer(c->lines.damaged));
    json_object_set_new(answer, "back", json_integer(c->back));
    add_names(&c->lines, answer);
    give(a, answer);
}

/* What a row of the list shows once it is on the screen: a small curve, goodput. */
static void row(const struct http_request *r, struct http_answer *a) {
    const int run = run_of(r, a), pixels = pixels_of(r, 96);
    struct figures f = {0};
    const struct curves *c;
    if (run < 0) return;
    const bool known = !figures_read(runs_path(run), &f) && f.wall > 0;
    if (kept_curves(runs_path(run), "loss", &c)) {
        fail(a);
    } else {
        const struct curve *t = &c->training;
        give(a, json_pack("{s:o,s:o}", "training",
                          columns_of(c, t, "loss", CURVE_STEPS, t->begin[CURVE_STEPS],
                                     t->end[CURVE_STEPS], pixels),
                          "goodput", json_finite(known ? f.useful / f.wall : NAN)));
    }
    figures_free(&f);
}

struct log_tail {
    json_t *lines;
    int64_t all;
};

static void take_line(const struct logs_line *line, void *to) {
    struct log_tail *t = to;
    char text[LINE + 8];
    const bool cut = strlen(line->text) > LINE;
    int n = LINE;
    while (cut && n > LINE - 3 && (line->text[n] & 0xc0) == 0x80) n--; /* within a character */
    base_format(text, sizeof text, "%.*s%s", n, line->text, cut ? "..." : "");
    json_t *one = json_pack("[s,s,s,s,s,I,I]", line->time, line->from, line->level, line->event,
                            text, (json_int_t)line->step, (json_int_t)line->worker);
    if (!one) return;
    t->all++;
    if (json_array_size(t->lines) == LINES) json_array_remove(t->lines, 0);
    json_array_append_new(t->lines, one);
}

static void log_lines(const struct http_request *r, struct http_answer *a) {
    const int run = run_of(r, a);
    const char *level = http_value(r, "level"), *event = http_value(r, "event"),
               *grep = http_value(r, "text");
    struct log_tail t = {json_array(), 0};
    struct logs *l = NULL;
    const struct logs_filter filter = {
        .worker = whole(r, "worker", -1), .since = whole(r, "since", 0),
        .level = level && logs_level(level) > 0 ? level : NULL,
        .event = event && *event ? event : NULL, .grep = grep && *grep ? grep : NULL};
    tri_status status = run < 0 ? TRI_USAGE
                                : logs_open(&l, runs_path(run), &filter, take_line, &t);
    const bool none = run >= 0 && status == TRI_USAGE; /* a run without logs */
    if (!status) status = logs_read(l);
    if (!status) status = logs_rest(l);
    const int64_t back = status ? 0 : logs_back(l);
    logs_close(l);
    if (status && !none && run >= 0) fail(a);
    else if (run >= 0)
        give(a, json_pack("{s:o,s:I,s:I}", "lines", json_incref(t.lines), "all", (json_int_t)t.all,
                          "back", (json_int_t)back));
    json_decref(t.lines);
}

static void heat(const struct http_request *r, struct http_answer *a) {
    const int run = run_of(r, a);
    if (run >= 0) give(a, heat_make(runs_path(run), pixels_of(r, 600)));
}

/* The run's latest profile. The page says how to make one if there is none. */
static const struct profile *profile_of(const struct http_request *r, struct http_answer *a) {
    const int run = run_of(r, a);
    const struct profile *p = run < 0 ? NULL : slices_profile(runs_path(run));
    if (!p && run >= 0 && base_last() == TRI_USAGE) text_add(&a->body, "null");
    else if (!p && run >= 0) fail(a);
    return p;
}

static void slices(const struct http_request *r, struct http_answer *a) {
    const struct profile *p = profile_of(r, a);
    if (p)
        slices_add(p, whole(r, "from", 0), whole(r, "to", 0), pixels_of(r, 1000), &a->body);
}

/* What `trireme report --against` says of the latest profiles of two runs. */
static void against(const struct http_request *r, struct http_answer *a) {
    const int run = run_of(r, a);
    const int other = run_named(r, "against");
    struct profile p = {0}, before = {0};
    struct text text = {0};
    if (run < 0) return;
    tri_status status = runs_path(other) ? TRI_OK : base_fail(TRI_USAGE, "there is no such run");
    if (!status) status = profile_read(runs_path(run), NULL, &p);
    if (!status) status = profile_read(runs_path(other), NULL, &before);
    if (!status) status = study_make(&p);
    if (!status) status = study_make(&before);
    if (!status) status = against_print(&p, &before, &text);
    if (!status || status == TRI_USAGE)
        give(a, json_pack("{s:s}", "text", status ? tri_message() : text.data ? text.data : ""));
    else fail(a);
    text_free(&text);
    profile_free(&p);
    profile_free(&before);
}

static void waits(const struct http_request *r, struct http_answer *a) {
    const struct profile *p = profile_of(r, a);
    if (p) slices_waits(p, &a->body);
}

/* A table of the profile, as `trireme profile` writes it. */
static void table(const struct http_request *r, struct http_answer *a) {
    static const char *const names[] = {"ops", "comm", "buckets"};
    const char *name = http_value(r, "name");
    size_t k = 0;
    while (name && k < COUNT(names) && strcmp(names[k], name)) k++;
    if (!name || k == COUNT(names)) {
        a->code = 404;
        return;
    }
    const struct profile *p = profile_of(r, a);
    if (!p) return;
    a->type = "text/csv; charset=utf-8";
    if (tables_text(p, name, &a->body)) fail(a);
}

static void events(const struct http_request *r, struct http_answer *a) {
    a->type = "text/event-stream";
    a->follows = true;
    a->run = http_value(r, "run") ? run_of(r, a) : -1;
}

void routes_event(struct http_seen *seen, struct text *out) {
    const int64_t version = runs_version(seen->run);
    if (version == seen->version) return;
    seen->version = version;
    text_add(out, "data: {\"run\":%d,\"version\":%lld}\n\n", seen->run, (long long)version);
}

/* ---- the table ---- */

static const struct route {
    const char *path;
    void (*answer)(const struct http_request *r, struct http_answer *a);
    bool keeps; /* for the run's version */
    bool lasts; /* it reads what grows with the run; one thread makes all of these */
} routes[] = {
    {"/api/runs", runs, false, false},      {"/api/run", run_file, true, false},
    {"/api/report", report, true, true},    {"/api/curve", curve, true, true},
    {"/api/row", row, true, true},          {"/api/heat", heat, true, true},
    {"/api/log", log_lines, true, true},    {"/api/slices", slices, true, true},
    {"/api/waits", waits, true, true},      {"/api/table", table, true, true},
    {"/api/against", against, false, true}, {"/api/events", events, false, false},
};

static bool take_route(const struct route *route, const struct http_request *r,
                       struct http_answer *a, bool may_last) {
    struct text address = {0};
    const int run = run_named(r, "run");
    const int64_t version = runs_version(run);
    if (route->keeps) http_add_address(r, &address);
    const bool keeps = route->keeps && !address.failed,
               found = keeps && kept_find(address.data, version, a);
    const bool answers = !found && (may_last || !route->lasts);
    if (answers) {
        const int64_t began = base_now();
        route->answer(r, a);
        runs_cost(run, base_now() - began);
        if (keeps && a->code == 200 && !a->body.failed) kept_add(address.data, version, a);
    }
    text_free(&address);
    return found || answers;
}

bool routes_answer(const struct http_request *r, struct http_answer *a, bool may_last) {
    for (size_t i = 0; i < COUNT(routes); i++)
        if (!strcmp(routes[i].path, r->path)) return take_route(&routes[i], r, a, may_last);
    for (const struct page_file *f = page_files; f->path; f++)
        if (!strcmp(f->path, r->path)) {
            a->type = f->type;
            a->fixed = f->data;
            a->n_fixed = f->bytes;
            return true;
        }
    a->code = 404;
    return true;
}
