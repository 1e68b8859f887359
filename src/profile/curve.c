/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/curve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "observe/files.h"

#define LARGEST 1e300 /* differences must have a number, too */

static bool add_point(struct curve *c, double x, double y) {
    if (!(fabs(x) < LARGEST && fabs(y) < LARGEST)) return true;
    if (!ARRAY_GROW(c->point, c->n, c->capacity)) return false;
    c->point[c->n++] = (struct curve_point){x, y};
    return true;
}

/* The clock of a run that was resumed begins anew: what it showed before is added. */
static tri_status read_file(struct lines *l, const char *path, const char *key, bool by_time,
                            struct curve *both[2]) {
    tri_status status = lines_open(l, path);
    double shown = 0, before = 0;
    size_t k = 0;
    while (!status && lines_next(l)) {
        const double now = l->value[LINES_SECONDS];
        if (now < shown) before += shown;
        if (!isnan(now)) shown = now;
        k = lines_find(l, key, k);
        const double y = k < l->n ? l->value[k] : NAN;
        if (!add_point(both[l->evaluation], by_time ? before + now : l->value[LINES_STEP], y))
            status = base_no_memory("a curve");
    }
    return status;
}

tri_status curve_read(const char *directory, const char *key, bool by_time, struct lines *l,
                      struct curve *training, struct curve *evaluations) {
    glob_t found = {0};
    struct curve *both[] = {training, evaluations};
    evaluations->evaluations = true;
    tri_status status = run_files(directory, "metrics.jsonl", &found);
    if (!status && !found.gl_pathc)
        status = base_fail(TRI_USAGE, "%s has no metrics.jsonl; DIR is the directory that a run "
                           "has as --out", directory);
    for (size_t i = 0; i < found.gl_pathc && !status; i++)
        status = read_file(l, found.gl_pathv[i], key, by_time, both);
    globfree(&found);
    return status;
}

void curve_free(struct curve *c) {
    free(c->point);
    *c = (struct curve){0};
}

void curve_columns(const struct curve *c, double from, double to, int n,
                   struct curve_column column[]) {
    memset(column, 0, (size_t)n * sizeof *column);
    for (size_t i = 0; i < c->n; i++) {
        const double part = to > from ? (c->point[i].x - from) / (to - from) : 0.5;
        if (!(part >= 0 && part <= 1)) continue;
        struct curve_column *b = &column[part < 1 ? (int)(part * n) : n - 1];
        const double y = c->point[i].y;
        b->least = b->n ? fmin(b->least, y) : y;
        b->most = b->n ? fmax(b->most, y) : y;
        b->mean += (y - b->mean) / (double)++b->n;
    }
}

double curve_marks(double from, double to, int most) {
    static const double round[] = {1, 2, 5, 10};
    const double least = (to - from) / most, power = pow(10, floor(log10(least)));
    size_t i = 0;
    while (i + 1 < COUNT(round) && power * round[i] < least) i++;
    return power * round[i];
}
