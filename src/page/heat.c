/* SPDX-License-Identifier: Apache-2.0 */
#include "page/heat.h"

#include <math.h>
#include <stdlib.h>

#include "crew/spend.h"
#include "observe/files.h"
#include "observe/json.h"
#include "observe/series.h"

#define CELLS 200000 /* of all workers of a host */

/* What is shown of a worker, and what it is the sum of in a column. */
enum { LANE, WAIT, SAMPLES, NO_CORE, VALUES };
static const char *const names[VALUES] = {"lane", "wait", "samples", "no_core"};

struct cell {
    double compute, covers, lanes, share[VALUES]; /* seconds, but for lanes */
};

struct column {
    double step, slowest;
};

struct heat {
    struct series s;
    int wait[SPENTS], samples, start, compute, no_core, lanes, memory; /* columns of the series */
    int columns, places;
    struct column *column; /* [columns] */
    struct cell *cell;     /* [places][columns] */
    double *most;          /* [places]: memory */
};

static void add_frame(struct heat *h, int at) {
    const struct series *s = &h->s;
    const double covers = 1e-9 * (double)(s->frame.covers > 0 ? s->frame.covers : 0);
    struct column *c = &h->column[at];
    c->step = (double)s->frame.step;
    c->slowest = fmax(c->slowest, 1e-9 * (double)s->frame.slowest);
    for (int p = 0; p < h->places; p++) {
        struct cell *cell = &h->cell[p * h->columns + at];
        cell->covers += covers * (1 - series_value(s, p, h->start));
        cell->lanes += series_value(s, p, h->lanes);
        cell->compute += covers * series_value(s, p, h->compute);
        for (int k = 0; k < SPENTS; k++)
            if (h->wait[k] >= 0) cell->share[WAIT] += covers * series_value(s, p, h->wait[k]);
        cell->share[SAMPLES] += covers * series_value(s, p, h->samples);
        cell->share[NO_CORE] += covers * series_value(s, p, h->no_core);
        h->most[p] = fmax(h->most[p], 1024 * series_value(s, p, h->memory));
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

/* Frames are spread over the columns; there are no more columns than frames. */
static bool fill(struct heat *h, int most) {
    const int64_t n = h->s.n;
    h->places = h->s.layout.places;
    if (most > CELLS / h->places) most = CELLS / h->places;
    h->columns = (int)(n < most ? n : most);
    h->column = calloc((size_t)h->columns + 1, sizeof *h->column);
    h->cell = calloc((size_t)h->columns * (size_t)h->places + 1, sizeof *h->cell);
    h->most = calloc((size_t)h->places + 1, sizeof *h->most);
    if (!h->column || !h->cell || !h->most) return false;
    find_columns(h);
    for (int64_t i = 0; i < n; i++)
        if (series_read(&h->s, i)) add_frame(h, (int)(i * h->columns / n));
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

static json_t *worker(const struct heat *h, int place) {
    const struct cell *cell = &h->cell[place * h->columns];
    json_t *all = json_pack("{s:i,s:o}", "worker", place, "memory", rounded(h->most[place]));
    double lanes = 0;
    for (int v = 0; v < VALUES; v++) {
        json_t *list = json_array();
        for (int i = 0; i < h->columns; i++)
            json_array_append_new(list, rounded(value_of(&cell[i], v)));
        json_object_set_new(all, names[v], list);
    }
    for (int i = 0; i < h->columns; i++) lanes += cell[i].lanes;
    json_object_set_new(all, "lanes", rounded(lanes));
    return all;
}

/* host: the name of its folder; "" if the run has one. */
static json_t *host(const char *path, const char *name, int most) {
    struct heat h = {.columns = 0};
    json_t *all = NULL;
    if (series_open(&h.s, path)) return NULL;
    if (fill(&h, most)) {
        json_t *steps = json_array(), *seconds = json_array(), *workers = json_array();
        for (int i = 0; i < h.columns; i++) {
            json_array_append_new(steps, json_real(h.column[i].step));
            json_array_append_new(seconds, rounded(h.column[i].slowest > 0 ? h.column[i].slowest
                                                                           : NAN));
        }
        for (int p = 0; p < h.places; p++) json_array_append_new(workers, worker(&h, p));
        struct text shown = {0};
        text_add_escaped(&shown, name);
        all = json_pack("{s:s,s:o,s:o,s:o}", "host", shown.data ? shown.data : "", "steps", steps,
                        "seconds", seconds, "workers", workers);
        text_free(&shown);
    }
    free(h.column);
    free(h.cell);
    free(h.most);
    series_close(&h.s);
    return all;
}

json_t *heat_make(const char *directory, int columns) {
    struct run_folders f;
    json_t *hosts = json_array();
    const tri_status status = run_folders(directory, &f);
    for (size_t i = 0; i < f.n && !status; i++) {
        char path[4200];
        base_format(path, sizeof path, "%s/workers.series", f.of[i].path);
        json_t *one = host(path, f.of[i].host, columns);
        if (one) json_array_append_new(hosts, one);
    }
    run_folders_free(&f);
    return json_pack("{s:o}", "hosts", hosts);
}
