/* SPDX-License-Identifier: Apache-2.0 */
#include "page/heat.h"

#include <math.h>
#include <stdlib.h>

#include "crew/spend.h"
#include "observe/files.h"
#include "observe/json.h"
#include "observe/series.h"

#define CELLS 200000 /* of all workers */
#define LATEST ((int64_t)1 << 53) /* no step is later */

/* What is shown of a worker, and what it is the sum of in a column. */
enum { LANE, WAIT, SAMPLES, NO_CORE, VALUES };
static const char *const names[VALUES] = {"lane", "wait", "samples", "no_core"};

struct cell {
    double compute, covers, lanes, share[VALUES]; /* seconds, but for lanes */
};

/* Columns are ranges of steps, the same for all hosts. */
struct grid {
    int64_t first, last; /* steps of any host */
    int64_t each;        /* steps of a column */
    int columns;         /* 0: no step is known */
    double *end, *slowest; /* [columns]: when it was over, seconds since 1970; of its steps */
};

struct heat {
    struct series s;
    int wait[SPENTS], samples, start, compute, no_core, lanes, memory; /* columns of the series */
    int places;         /* 0: there is no series */
    struct cell *cell;  /* [places][columns] */
    double *most, *all; /* [places]: bytes, lanes */
};

/* part: of the frame. */
static void add_cell(const struct heat *h, double part, int place, struct cell *cell) {
    const struct series *s = &h->s;
    const double covers = part * 1e-9 * (double)s->frame.covers;
    cell->covers += covers * (1 - series_value(s, place, h->start));
    cell->lanes += part * series_value(s, place, h->lanes);
    cell->compute += covers * series_value(s, place, h->compute);
    for (int k = 0; k < SPENTS; k++)
        if (h->wait[k] >= 0) cell->share[WAIT] += covers * series_value(s, place, h->wait[k]);
    cell->share[SAMPLES] += covers * series_value(s, place, h->samples);
    cell->share[NO_CORE] += covers * series_value(s, place, h->no_core);
}

static int64_t within(int64_t step, const struct grid *g) {
    return step < g->first ? g->first : step > g->last ? g->last : step;
}

/* A frame of several steps is in each of their columns with a part of it. One in which no step
 * ended is in that of the step before. */
static void add_frame(const struct heat *h, const struct grid *g) {
    const struct series_frame *f = &h->s.frame;
    const int64_t end = within(f->step, g) + 1;
    const int64_t begin = f->steps ? within(f->step - f->steps + 1, g) : end - 1;
    for (int64_t at = begin; at < end;) {
        const int64_t i = (at - g->first) / g->each, next = g->first + (i + 1) * g->each;
        const double part = (double)((next < end ? next : end) - at) / (double)(end - begin);
        if (f->slowest_step >= at && f->slowest_step < next)
            g->slowest[i] = fmax(g->slowest[i], 1e-9 * (double)f->slowest);
        g->end[i] = fmax(g->end[i], 1e-9 * (double)(h->s.layout.began + f->time));
        for (int p = 0; p < h->places; p++) add_cell(h, part, p, &h->cell[p * g->columns + i]);
        at = next;
    }
}

static void find_columns(struct heat *h) {
    const struct series *s = &h->s;
    for (int k = 0; k < SPENTS; k++)
        h->wait[k] = spent_rows[k].group == SPENT_WAITS ? series_column(s, spent_rows[k].name) : -1;
    h->samples = h->wait[SPENT_WAIT_SAMPLES];
    h->start = series_column(s, spent_rows[SPENT_START].name);
    h->compute = series_column(s, spent_rows[SPENT_COMPUTE].name);
    h->no_core = series_column(s, "no-core");
    h->lanes = series_column(s, "lanes-done");
    h->memory = series_column(s, "memory-kib");
}

static bool fill(struct heat *h, const struct grid *g) {
    const size_t places = (size_t)h->places, columns = (size_t)g->columns;
    h->cell = calloc(columns * places + 1, sizeof *h->cell);
    h->most = calloc(places + 1, sizeof *h->most);
    h->all = calloc(places + 1, sizeof *h->all);
    if (!h->cell || !h->most || !h->all) return false;
    find_columns(h);
    for (int64_t i = 0; i < h->s.n; i++) {
        if (!series_read(&h->s, i) || h->s.frame.step > LATEST) continue;
        if (g->columns) add_frame(h, g);
        for (int p = 0; p < h->places; p++) {
            h->all[p] += series_value(&h->s, p, h->lanes);
            h->most[p] = fmax(h->most[p], 1024 * series_value(&h->s, p, h->memory));
        }
    }
    return true;
}

/* Four digits are more than a pixel shows. */
static json_t *rounded(double x) {
    char text[NUMBER_TEXT];
    base_format(text, sizeof text, "%.4g", x);
    return json_finite(base_number(text, NULL));
}

static double value_of(const struct cell *c, int what) {
    if (what == LANE) return c->lanes > 0 ? 1e9 * c->compute / c->lanes : NAN;
    return c->covers > 0 ? c->share[what] / c->covers : NAN;
}

static json_t *worker(const struct heat *h, const struct grid *g, int place) {
    json_t *all = json_pack("{s:i,s:o,s:o}", "worker", place, "memory", rounded(h->most[place]),
                            "lanes", rounded(h->all[place]));
    for (int v = 0; v < VALUES; v++) {
        json_t *list = json_array();
        for (int i = 0; i < g->columns; i++)
            json_array_append_new(list, rounded(value_of(&h->cell[place * g->columns + i], v)));
        json_object_set_new(all, names[v], list);
    }
    return all;
}

/* name: of its folder. */
static json_t *host(struct heat *h, const struct grid *g, const char *name) {
    json_t *workers = json_array();
    struct text shown = {0};
    text_add_escaped(&shown, name);
    const bool filled = fill(h, g);
    for (int p = 0; filled && p < h->places; p++)
        json_array_append_new(workers, worker(h, g, p));
    json_t *all = json_pack("{s:s,s:o}", "host", shown.data ? shown.data : "", "workers", workers);
    text_free(&shown);
    free(h->cell);
    free(h->most);
    free(h->all);
    return all;
}

static void find_steps(const struct series *s, struct grid *g) {
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t last = s->index[i].step, first = last - s->index[i].steps + 1;
        if (!s->index[i].steps || last < 1 || last > LATEST) continue;
        if (last > g->last) g->last = last;
        if (first < g->first) g->first = first > 1 ? first : 1;
    }
}

static bool divide(struct grid *g, int most) {
    const int64_t steps = g->last - g->first + 1;
    if (g->last) {
        g->each = (steps - 1) / (most > 1 ? most : 1) + 1;
        g->columns = (int)((steps - 1) / g->each + 1);
    }
    g->end = calloc((size_t)g->columns + 1, sizeof *g->end);
    g->slowest = calloc((size_t)g->columns + 1, sizeof *g->slowest);
    return g->end && g->slowest;
}

json_t *heat_make(const char *directory, int columns) {
    struct run_folders f;
    struct grid g = {.first = INT64_MAX};
    json_t *hosts = json_array(), *steps = json_array(), *ends = json_array(),
           *seconds = json_array();
    int places = 1;
    const tri_status status = run_folders(directory, &f);
    struct heat *h = status ? NULL : calloc(f.n + 1, sizeof *h);
    for (size_t i = 0; h && i < f.n; i++) {
        char path[4200];
        base_format(path, sizeof path, "%s/workers.series", f.of[i].path);
        if (series_open(&h[i].s, path)) continue;
        places += h[i].places = h[i].s.layout.places;
        find_steps(&h[i].s, &g);
    }
    const bool divided = divide(&g, columns < CELLS / places ? columns : CELLS / places);
    for (size_t i = 0; h && i < f.n; i++) {
        if (divided && h[i].places)
            json_array_append_new(hosts, host(&h[i], &g, f.of[i].host));
        series_close(&h[i].s);
    }
    for (int i = 0; divided && i < g.columns; i++) {
        json_array_append_new(steps, json_integer(within(g.first + (i + 1) * g.each - 1, &g)));
        json_array_append_new(ends, json_finite(g.end[i] > 0 ? g.end[i] : NAN));
        json_array_append_new(seconds, rounded(g.slowest[i] > 0 ? g.slowest[i] : NAN));
    }
    free(h);
    free(g.end);
    free(g.slowest);
    run_folders_free(&f);
    return json_pack("{s:I,s:o,s:o,s:o,s:o}", "first", (json_int_t)(g.columns ? g.first : 0),
                     "steps", steps, "ends", ends, "seconds", seconds, "hosts", hosts);
}
