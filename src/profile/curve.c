/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/curve.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "observe/files.h"

#define LARGEST 1e300 /* differences must have a number, too */

/* ---- points ---- */

static void add_to_point(struct curve_point *to, const struct curve_point *p) {
    if (!to->n) {
        *to = *p;
        return;
    }
    to->least = fmin(to->least, p->least);
    to->most = fmax(to->most, p->most);
    to->n += p->n;
    to->mean += (p->mean - to->mean) * ((double)p->n / (double)to->n);
}

static void halve(struct curve *c) {
    c->n /= 2;
    c->each *= 2;
    for (size_t i = 0; i < c->n; i++) {
        const struct curve_point second = c->point[2 * i + 1];
        c->point[i] = c->point[2 * i];
        add_to_point(&c->point[i], &second);
    }
}

static bool add_point(struct curve *c, const struct curve_point *p) {
    if (!c->n) c->each = 1;
    for (int k = 0; k < CURVE_AXES; k++) {
        c->begin[k] = c->n ? fmin(c->begin[k], p->x[k]) : p->x[k];
        c->end[k] = c->n ? fmax(c->end[k], p->x[k]) : p->x[k];
    }
    c->last = p->mean;
    if (c->n == CURVE_POINTS && c->point[c->n - 1].n == c->each) halve(c);
    if (c->n && c->point[c->n - 1].n < c->each) {
        add_to_point(&c->point[c->n - 1], p);
        return true;
    }
    if (!ARRAY_GROW(c->point, c->n, c->capacity)) return false;
    c->point[c->n++] = *p;
    return true;
}

static void add_to_column(const struct curve_view *v, const struct curve_point *p) {
    const double x = p->x[v->axis];
    const double part = v->to > v->from ? (x - v->from) / (v->to - v->from) : 0.5;
    if (part >= 0 && part <= 1)
        add_to_point(&v->column[part < 1 ? (int)(part * v->n) : v->n - 1], p);
}

void curve_columns(const struct curve *c, const struct curve_view *v) {
    memset(v->column, 0, (size_t)v->n * sizeof *v->column);
    for (size_t i = 0; i < c->n; i++) add_to_column(v, &c->point[i]);
}

/* ---- lines ---- */

/* The clock of a run that was resumed begins anew: what it showed before is added. */
static double tell_time(struct curve_clock *k, double now, int64_t *back) {
    if (fabs(now) < LARGEST) {
        if (now < k->shown) k->before += k->shown, ++*back;
        k->shown = now;
    }
    return k->before + k->shown;
}

/* Of the current line; false: it has no number of that name. */
static bool point_of(struct lines *l, const char *key, size_t *guess, struct curve_clock *clock,
                     int64_t *back, struct curve_point *p) {
    const double time = tell_time(clock, l->value[LINES_SECONDS], back);
    *guess = lines_find(l, key, *guess);
    const double y = *guess < l->n ? l->value[*guess] : NAN;
    *p = (struct curve_point){{l->value[LINES_STEP], time}, y, y, y, 1, 0, 0};
    return fabs(time) < LARGEST && fabs(y) < LARGEST;
}

static tri_status read_file(struct curves *c, int number, const char *key) {
    struct curve_file *f = &c->file[number];
    struct lines *l = &c->lines;
    struct curve_point p;
    tri_status status = lines_open_at(l, f->path, f->at);
    while (!status && lines_next(l)) {
        if (point_of(l, key, &c->guess, &f->clock, &c->back, &p)) {
            p.at = f->at;
            p.file = number;
            if (!add_point(l->evaluation ? &c->evaluations : &c->training, &p))
                status = base_no_memory("a curve");
        }
        f->at = l->file.at;
    }
    line_file_close(&l->file);
    return status;
}

/* ---- files ---- */

/* Whether lines may have been added to it, and nothing else has changed. */
static bool is_longer(const struct curve_file *f, const char *path, bool grows) {
    struct stat is;
    char before = '\n';
    const int fd = base_open(path, O_RDONLY, &is);
    if (fd < 0) return false;
    const bool whole = !f->at || (pread(fd, &before, 1, f->at - 1) == 1 && before == '\n');
    close(fd);
    return whole && is.st_ino == f->inode && (grows ? is.st_size >= f->at : is.st_size == f->size);
}

/* Only the last file grows, as a run has one host that writes at a time. */
static bool goes_on(const struct curves *c, const glob_t *found) {
    bool same = found->gl_pathc >= c->n;
    for (size_t i = 0; i < c->n && same; i++)
        same = !strcmp(c->file[i].path, found->gl_pathv[i]) &&
               is_longer(&c->file[i], c->file[i].path, i + 1 == c->n);
    return same;
}

static tri_status add_file(struct curves *c, const char *path) {
    struct curve_file f = {.path = strdup(path)};
    if (f.path && ARRAY_GROW(c->file, c->n, c->capacity)) {
        c->file[c->n++] = f;
        return TRI_OK;
    }
    free(f.path);
    return base_no_memory("a curve");
}

tri_status curves_read(struct curves *c, const char *directory, const char *key) {
    glob_t found = {0};
    struct stat is;
    tri_status status = run_files(directory, "metrics.jsonl", &found);
    if (!status && !goes_on(c, &found)) curves_free(c);
    if (!status && !found.gl_pathc)
        status = base_fail(TRI_USAGE, "%s has no metrics.jsonl; DIR is the directory that a run "
                           "has as --out", directory);
    for (size_t i = c->n ? c->n - 1 : 0; i < found.gl_pathc && !status; i++) {
        if (i == c->n) status = add_file(c, found.gl_pathv[i]);
        if (!status && !stat(c->file[i].path, &is))
            c->file[i].inode = is.st_ino, c->file[i].size = is.st_size;
        if (!status) status = read_file(c, (int)i, key);
    }
    globfree(&found);
    return status;
}

void curves_free(struct curves *c) {
    free(c->training.point);
    free(c->evaluations.point);
    for (size_t i = 0; i < c->n; i++) free(c->file[i].path);
    free(c->file);
    lines_free(&c->lines);
    *c = (struct curves){0};
}

/* ---- a part ---- */

/* Reads the lines again of the points from `first` to `last`. A file that has been replaced since
 * gives what it has. */
static void read_again(const struct curves *c, const struct curve *of, const char *key,
                       size_t first, size_t last, const struct curve_view *v) {
    const struct curve_point *begin = &of->point[first],
                             *end = last + 1 < of->n ? &of->point[last + 1] : NULL;
    const int last_file = end ? end->file : (int)c->n - 1;
    size_t guess = c->guess;
    int64_t back = 0;
    for (int i = begin->file; i <= last_file; i++) {
        const int64_t from = i == begin->file ? begin->at : 0;
        const int64_t until = end && end->file == i ? end->at : c->file[i].at;
        struct curve_clock clock = {0};
        struct curve_point p;
        struct lines l = {0};
        if (lines_open_at(&l, c->file[i].path, from)) continue;
        for (int64_t at = from; at < until && lines_next(&l); at = l.file.at) {
            const double now = l.value[LINES_SECONDS];
            if (i == begin->file && at == from) /* it goes on from the time of that point */
                clock.before = begin->x[CURVE_TIME] - (isnan(now) ? 0 : now);
            if (point_of(&l, key, &guess, &clock, &back, &p) &&
                l.evaluation == (of == &c->evaluations))
                add_to_column(v, &p);
        }
        lines_free(&l);
    }
}

void curves_part(const struct curves *c, const struct curve *of, const char *key,
                 const struct curve_view *v) {
    size_t first = of->n, last = 0, n = 0;
    for (size_t i = 0; i < of->n; i++) {
        const double x = of->point[i].x[v->axis];
        const double next = i + 1 < of->n ? of->point[i + 1].x[v->axis] : of->end[v->axis];
        if (x > v->to || next < v->from) continue;
        if (!n++) first = i;
        last = i;
    }
    curve_columns(of, v);
    if (!n || of->each == 1 || 2 * n >= (size_t)v->n) return;
    memset(v->column, 0, (size_t)v->n * sizeof *v->column);
    read_again(c, of, key, first, last, v);
}

double curve_marks(double from, double to, int most) {
    static const double round[] = {1, 2, 5, 10};
    const double least = (to - from) / most, power = pow(10, floor(log10(least)));
    size_t i = 0;
    while (i + 1 < COUNT(round) && power * round[i] < least) i++;
    return power * round[i];
}
