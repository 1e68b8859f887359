/* SPDX-License-Identifier: Apache-2.0
 * The hosts of a run, and what their workers spent their time on. */
#include "profile/figures.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "observe/files.h"
#include "observe/series.h"
#include "profile/lines.h"
#include "profile/rules.h"

/* ---- what is asked of them ---- */

/* The value in the word after the flag, or after its equals sign. */
static const char *value_of(const char *word, const char *next, const char *name) {
    const size_t n = strlen(name);
    if (strncmp(word, "--", 2) || strncmp(word + 2, name, n)) return NULL;
    return word[n + 2] == '=' ? word + n + 3 : word[n + 2] ? NULL : next;
}

const char *figures_option(const struct figures *f, const char *name) {
    const struct run_read *r = f->run;
    const char *value = NULL;
    name += strspn(name, "-");
    for (size_t i = 0; i < r->n_options && !value; i++)
        value = value_of(r->option[2 * i], r->option[2 * i + 1], name);
    for (size_t i = 0; i < r->n_command && !value; i++)
        value = value_of(r->command[i], i + 1 < r->n_command ? r->command[i + 1] : NULL, name);
    return value;
}

double figures_group(const double spent[SPENTS], enum spent_group group) {
    double sum = 0;
    for (int k = 0; k < SPENTS; k++) sum += spent_rows[k].group == group ? spent[k] : 0;
    return sum;
}

/* ---- sums of frames ---- */

tri_status figures_begin(struct figures *f, int host, int places, size_t frames,
                         struct figures_parts *p) {
    *p = (struct figures_parts){.f = f, .host = host, .places = places, .frames = frames};
    p->sum = calloc((size_t)places * FIGURES_PARTS + 1, sizeof *p->sum);
    return p->sum ? TRI_OK : base_no_memory("the times of workers");
}

static void add_place(struct figures_place *to, const struct figures_place *from, double seconds) {
    for (int k = 0; k < SPENTS; k++) to->spent[k] += from->spent[k] * seconds;
    to->no_core += from->no_core * seconds;
    to->lanes += from->lanes;
    to->lost += from->lost;
    to->memory = fmax(to->memory, from->memory);
}

/* The first host's frames are kept, too. */
static bool keep(struct figures_parts *p, const struct figures_frame *frame,
                 const struct figures_place *place) {
    struct figures *f = p->f;
    if (!ARRAY_GROW(f->frame, f->n_frames, f->room_frames)) return false;
    struct figures_frame *to = &f->frame[f->n_frames++];
    *to = *frame;
    to->before = p->places ? 1 : 0;
    for (int i = 0; i < p->places; i++) {
        to->before = fminf(to->before, (float)place[i].spent[SPENT_START]);
        for (int k = 0; k < SPENTS; k++)
            to->beside[k] = fmaxf(to->beside[k], (float)place[i].spent[k]);
    }
    return true;
}

tri_status figures_take(struct figures_parts *p, const struct figures_frame *frame,
                        const double share[3], const struct figures_place *place) {
    const size_t i = p->taken < p->frames ? p->taken++ * FIGURES_PARTS / p->frames
                                          : FIGURES_PARTS - 1;
    if (p->part[i].covers <= 0) p->part[i].step = frame->step - (int64_t)frame->steps + 1;
    p->part[i].covers += frame->covers;
    p->part[i].throttled_periods += share[0] * frame->covers;
    p->part[i].throttled += share[1] * frame->covers;
    p->part[i].stolen += share[2] * frame->covers;
    for (int k = 0; k < p->places; k++)
        add_place(&p->sum[i * (size_t)p->places + (size_t)k], &place[k], frame->covers);
    return p->host || keep(p, frame, place) ? TRI_OK : base_no_memory("the times of workers");
}

/* ---- workers ---- */

/* Of the parts from `first` up to but not `end`. Returns their seconds. */
static double sum_up(const struct figures_parts *p, int place, int first, int end,
                     struct figures_place *sum) {
    double covers = 0;
    *sum = (struct figures_place){0};
    for (int i = first; i < end; i++) {
        add_place(sum, &p->sum[i * p->places + place], 1);
        covers += p->part[i].covers;
    }
    return covers;
}

static void set_shares(const struct figures_place *sum, double share[SPENTS]) {
    double all = 0;
    for (int k = 0; k < SPENTS; k++) all += k == SPENT_START ? 0 : sum->spent[k];
    for (int k = 0; k < SPENTS && all > 0; k++)
        share[k] = k == SPENT_START ? 0 : sum->spent[k] / all;
}

/* The part that begins the last third of the time, of which something has a step. */
static int find_recent(const struct figures_parts *p) {
    double all = 0, covers = 0;
    int i = FIGURES_PARTS;
    for (int k = 0; k < FIGURES_PARTS; k++) all += p->part[k].covers;
    while (i > 0 && 3 * covers < all) covers += p->part[--i].covers;
    return i < FIGURES_PARTS ? i : 0;
}

static double time_of_lane(const struct figures *f, const struct figures_place *sum) {
    const double lanes = sum->lanes + sum->lost;
    return lanes > 0 ? sum->spent[SPENT_COMPUTE] * f->threads / lanes : 0;
}

/* The part of its time without a core that a quota caused is left out. */
static double without_core(const struct figures_parts *p, int place, int recent) {
    const struct figures_host *h = &p->f->host[p->host];
    struct figures_place sum;
    double all = 0, own = 0;
    for (int i = 0; i < p->places; i++) {
        const double covers = sum_up(p, i, recent, FIGURES_PARTS, &sum);
        const double share = covers > 0 ? sum.no_core / covers : 0;
        all += share * p->f->threads;
        if (i == place) own = share;
    }
    const double quota = all > 0 ? h->throttled * h->cores / all : 0;
    return own * fmax(0, 1 - quota);
}

/* The step from which something holds. Of all spans of parts that end with the last one, the answer
 * is the span in which it held for the most seconds more than it did not; so an exception, even the
 * last part, does not end the search. Call tell_part for the parts from the last to the first. */
struct since {
    double seconds, most;
    int64_t step; /* 0: it does not hold */
};

static void tell_part(struct since *s, const struct figures_parts *p, int i, bool so) {
    s->seconds += so ? p->part[i].covers : -p->part[i].covers;
    if (s->seconds <= s->most) return;
    s->most = s->seconds;
    s->step = p->part[i].step > 1 ? p->part[i].step : 1;
}

static int64_t without_core_since(const struct figures_parts *p, int place) {
    struct figures_place sum;
    struct since since = {0};
    for (int i = FIGURES_PARTS - 1; i >= 0; i--) {
        const double covers = sum_up(p, place, i, i + 1, &sum);
        if (covers > 0) tell_part(&since, p, i, sum.no_core > thresholds.no_core * covers);
    }
    return since.step;
}

static const char *name_of(struct figures *f, int host, int place) {
    const char *h = f->host[host].name;
    return arena_text(&f->arena, "%s%sworker %d", h, *h ? "'s " : "", place);
}

static bool add_worker(const struct figures_parts *p, int place, int recent) {
    struct figures *f = p->f;
    struct figures_place sum, late;
    struct figures_worker w = {.host = p->host, .place = place,
                               .name = name_of(f, p->host, place)};
    sum_up(p, place, 0, FIGURES_PARTS, &sum);
    set_shares(&sum, w.whole);
    w.lanes = sum.lanes, w.lost = sum.lost, w.memory = sum.memory;
    if (sum_up(p, place, recent, FIGURES_PARTS, &late) <= 0) late = sum;
    w.no_core = without_core(p, place, recent);
    /* A spare, or one whose rank another has taken. */
    if (late.lanes + late.spent[SPENT_COMPUTE] <= 0 && w.no_core <= thresholds.no_core)
        return w.name;
    set_shares(&late, w.spent);
    w.lane = time_of_lane(f, &late);
    w.no_core_since = without_core_since(p, place);
    f->worker[f->n++] = w;
    return w.name;
}

/* Of those that are not 0; with an even count, the lower one: so of two, one can be slow. */
static double median(double *x, size_t n) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (x[i] > 0) x[kept++] = x[i];
    qsort(x, kept, sizeof *x, base_by_size);
    return kept ? x[(kept - 1) / 2] : 0;
}

/* Each part is compared with the others in it. Parts without lanes of the worker say nothing. */
static void find_slow(const struct figures_parts *p, struct figures_worker *w, double *lane) {
    struct figures_place sum;
    struct since since = {0};
    for (int i = FIGURES_PARTS - 1; i >= 0; i--) {
        for (int k = 0; k < p->places; k++) {
            sum_up(p, k, i, i + 1, &sum);
            lane[k] = time_of_lane(p->f, &sum);
        }
        const double own = lane[w->place];
        if (own > 0)
            tell_part(&since, p, i,
                      own > thresholds.slow_worker * median(lane, (size_t)p->places));
    }
    w->slow_since = since.step;
}

static tri_status find_all_slow(const struct figures_parts *p, size_t first) {
    struct figures *f = p->f;
    double *lane = calloc((size_t)p->places + 1, sizeof *lane);
    if (!lane) return base_no_memory("the times of workers");
    for (size_t i = first; i < f->n; i++) lane[i - first] = f->worker[i].lane;
    const double usual = median(lane, f->n - first);
    for (size_t i = first; i < f->n; i++)
        if (f->worker[i].lane > thresholds.slow_worker * usual) find_slow(p, &f->worker[i], lane);
    free(lane);
    return TRI_OK;
}

tri_status figures_end(struct figures_parts *p) {
    struct figures *f = p->f;
    struct figures_host *h = &f->host[p->host];
    const int recent = find_recent(p);
    const size_t first = f->n;
    double covers = 0;
    for (int i = recent; i < FIGURES_PARTS; i++) {
        covers += p->part[i].covers;
        h->throttled_periods += p->part[i].throttled_periods;
        h->throttled += p->part[i].throttled;
        h->stolen += p->part[i].stolen;
    }
    covers = covers > 0 ? covers : 1;
    h->throttled_periods /= covers, h->throttled /= covers, h->stolen /= covers;
    if (!p->host) f->recent = p->part[recent].step > 1 ? p->part[recent].step : 1;
    struct figures_worker *more =
        realloc(f->worker, (f->n + (size_t)p->places + 1) * sizeof *more);
    if (!more) return base_no_memory("the times of workers");
    f->worker = more;
    for (int i = 0; i < p->places; i++)
        if (!add_worker(p, i, recent)) return base_no_memory("the times of workers");
    return find_all_slow(p, first);
}

/* ---- a series ---- */

/* By name; columns that are not known are left out. */
struct columns {
    int spent[SPENTS], no_core, lanes, lost, memory;
};

static void find_columns(const struct series *s, struct columns *c) {
    for (int k = 0; k < SPENTS; k++) c->spent[k] = series_column(s, spent_rows[k].name);
    c->no_core = series_column(s, "no-core");
    c->lanes = series_column(s, "lanes-done");
    c->lost = series_column(s, "lanes-lost");
    c->memory = series_column(s, "memory-kib");
}

static void read_place(const struct series *s, const struct columns *c, int place,
                       struct figures_place *to) {
    for (int k = 0; k < SPENTS; k++) to->spent[k] = series_value(s, place, c->spent[k]);
    to->no_core = series_value(s, place, c->no_core);
    to->lanes = series_value(s, place, c->lanes);
    to->lost = series_value(s, place, c->lost);
    to->memory = 1024 * series_value(s, place, c->memory);
}

static tri_status take_series(struct series *s, struct figures_parts *p) {
    struct columns c;
    tri_status status = TRI_OK;
    struct figures_place *place = calloc((size_t)p->places + 1, sizeof *place);
    if (!place) return base_no_memory("the times of workers");
    find_columns(s, &c);
    for (int64_t i = 0; i < s->n && !status; i++) {
        if (!series_read(s, i)) continue;
        const struct series_frame *f = &s->frame;
        const double share[3] = {(double)f->throttled_periods / SERIES_ONE,
                                 (double)f->throttled / SERIES_ONE,
                                 (double)f->stolen / SERIES_ONE};
        const struct figures_frame frame = {
            .end = 1e-9 * ((double)s->layout.began + (double)f->time),
            .covers = 1e-9 * (double)(f->covers > 0 ? f->covers : 0), .steps = f->steps,
            .slowest = 1e-9 * (double)f->slowest, .step = f->step};
        for (int k = 0; k < p->places; k++) read_place(s, &c, k, &place[k]);
        status = figures_take(p, &frame, share, place);
    }
    free(place);
    return status;
}

/* A file that cannot be read is left out, unless it is of a later version. */
static tri_status leave_out(tri_status status, int64_t *bad) {
    if (!status || run_is_later()) return status;
    ++*bad;
    return TRI_OK;
}

static tri_status read_series(struct figures *f, int host, const char *path) {
    struct series s;
    struct figures_parts p = {0};
    tri_status status = series_open(&s, path);
    if (status) return leave_out(status, &f->bad_series);
    f->has_series = true;
    f->damaged_frames += s.damaged;
    if (s.n) status = figures_begin(f, host, s.layout.places, (size_t)s.n, &p);
    if (s.n && !status) status = take_series(&s, &p);
    if (s.n && !status) status = figures_end(&p);
    free(p.sum);
    series_close(&s);
    return status;
}

/* ---- folders ---- */

static bool has_run(const char *folder) {
    char path[4200];
    base_format(path, sizeof path, "%s/run.json", folder);
    return !access(path, F_OK);
}

static tri_status find_hosts(struct figures *f) {
    struct run_folders found;
    tri_status status = run_folders(f->directory, &found);
    f->host = calloc(found.n + 1, sizeof *f->host);
    /* The first one's run.json is that of the run; DIR has none if it is of several hosts. */
    for (int with = 1; with >= 0; with--)
        for (size_t i = 0; f->host && i < found.n; i++)
            if (has_run(found.of[i].path) == with)
                f->host[f->n_hosts++] = (struct figures_host){
                    .folder = arena_copy(&f->arena, found.of[i].path),
                    .name = arena_escaped(&f->arena, found.of[i].host)};
    run_folders_free(&found);
    if (!status && (!f->host || f->arena.failed)) status = base_no_memory("the hosts of the run");
    if (!status && !f->n_hosts)
        status = base_fail(TRI_USAGE, "%s has no files of a run (run.json, metrics.jsonl); DIR is "
                           "the directory that a run has as --out", f->directory);
    return status;
}

/* Null if the host has no such file. */
static const char *file_of(struct figures *f, int host, const char *name) {
    const char *path = arena_text(&f->arena, "%s/%s", f->host[host].folder, name);
    return path && !access(path, F_OK) ? path : NULL;
}

/* What is printed of it. */
static void escape(struct figures *f, struct run_read *r) {
    r->title = arena_escaped(&f->arena, r->title);
    r->version = arena_escaped(&f->arena, r->version);
    for (size_t i = 0; i < 2 * r->n_options; i++)
        r->option[i] = arena_escaped(&f->arena, r->option[i]);
    for (size_t i = 0; i < r->n_command; i++)
        r->command[i] = arena_escaped(&f->arena, r->command[i]);
}

static tri_status read_host(struct figures *f, int host) {
    struct figures_host *h = &f->host[host];
    const char *run = file_of(f, host, "run.json"), *series = file_of(f, host, "workers.series"),
               *lines = file_of(f, host, "metrics.jsonl");
    static const char none[] = "{\"format\":1}";
    tri_status status = run ? leave_out(run_file_read(run, &h->run), &f->bad_runs) : TRI_OK;
    f->has_run |= h->run.root != NULL;
    if (!status && !h->run.root)
        status = run_file_parse("run.json", none, strlen(none), &h->run);
    if (status) return status;
    escape(f, &h->run);
    if (f->arena.failed) return base_no_memory("run.json");
    h->cores = h->run.cores > 0 ? (double)h->run.cores : 0;
    h->workers = h->run.workers > 0 ? (double)h->run.workers : 0;
    if (h->run.threads > 0) f->threads = (double)h->run.threads;
    if (!host) f->divided = figures_option(f, "stages") || figures_option(f, "mesh") ||
                            (*h->run.plan && !strstr(h->run.plan, "\nmesh none\n"));
    status = figures_logs(f, host);
    if (!status) status = figures_members(f, host);
    if (!status && series) status = read_series(f, host, series);
    if (!status && lines) status = figures_lines(f, lines, !series);
    return status;
}

static void find_means(struct figures *f) {
    for (size_t i = 0; i < f->n; i++)
        for (int k = 0; k < SPENTS; k++) {
            f->spent[k] += f->worker[i].spent[k] / (double)f->n;
            f->whole[k] += f->worker[i].whole[k] / (double)f->n;
        }
    f->divided |= f->whole[SPENT_WAIT_LEGS] + f->whole[SPENT_WAIT_SEATS] > 0;
}

tri_status figures_read(const char *directory, struct figures *f) {
    struct stat is;
    *f = (struct figures){.directory = directory, .threads = 1, .skipped = NAN};
    tri_status status = TRI_OK;
    if (stat(directory, &is) || !S_ISDIR(is.st_mode) || access(directory, R_OK | X_OK)) {
        const int error = errno;
        status = base_fail(TRI_USAGE, "%s: %s", directory,
                           strerror(stat(directory, &is) || S_ISDIR(is.st_mode) ? error : ENOTDIR));
    }
    if (!status) status = find_hosts(f);
    for (size_t i = 0; i < f->n_hosts && !status; i++) {
        f->run = &f->host[0].run;
        status = read_host(f, (int)i);
    }
    if (status) return status;
    find_means(f);
    figures_time(f);
    return TRI_OK;
}

void figures_free(struct figures *f) {
    for (size_t i = 0; i < f->n_hosts; i++) run_file_free(&f->host[i].run);
    free(f->host);
    free(f->worker);
    free(f->member);
    free(f->event);
    free(f->frame);
    arena_free(&f->arena);
}
