/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/series.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_RECORD 1024 /* bytes */
#define LONGEST ((int64_t)1 << 50) /* nanoseconds: a frame covers no more, */
#define LATEST ((int64_t)1 << 61)  /* and no time is later: sums of two fit */

static const struct kind {
    const char *name;
    int bytes;
    double one, most; /* what 1 is written as; the largest */
} kinds[SERIES_KINDS] = {{"share", 2, SERIES_ONE, SERIES_ONE},
                         {"sum", 4, 1, UINT32_MAX},
                         {"most", 4, 1, UINT32_MAX}};

/* ---- numbers ---- */

static uint32_t encode(enum series_kind kind, double value) {
    const double x = value * kinds[kind].one + 0.5;
    return !(x >= 1) ? 0 : x >= kinds[kind].most ? (uint32_t)kinds[kind].most : (uint32_t)x;
}

static void put(char *record, const struct series_column *c, double value) {
    const uint32_t whole = encode(c->kind, value);
    const uint16_t half = (uint16_t)whole;
    if (c->kind == SERIES_SHARE) memcpy(record + c->at, &half, sizeof half);
    else memcpy(record + c->at, &whole, sizeof whole);
}

static double get(const char *record, const struct series_column *c) {
    uint16_t half;
    uint32_t whole;
    memcpy(&half, record + c->at, sizeof half);
    if (c->kind == SERIES_SHARE) return half / (double)SERIES_ONE;
    memcpy(&whole, record + c->at, sizeof whole);
    return whole;
}

uint16_t series_share(double part) { return (uint16_t)encode(SERIES_SHARE, part); }

static char *record_of(const struct series_layout *l, char *frame, int place) {
    return frame + sizeof(struct series_frame) + (size_t)place * l->record;
}

/* The right check of a frame or page, whose own is at `at`. */
static uint32_t check_of(char *data, size_t bytes, size_t at) {
    uint32_t is, none = 0;
    memcpy(&is, data + at, sizeof is);
    memcpy(data + at, &none, sizeof none);
    const uint32_t right = base_check(data, bytes);
    memcpy(data + at, &is, sizeof is);
    return right;
}

static uint32_t frame_check(const struct series_layout *l, char *frame) {
    return check_of(frame, l->frame, offsetof(struct series_frame, check));
}

static uint32_t page_check(struct series_page *p) {
    return check_of((char *)p, sizeof *p, offsetof(struct series_page, check));
}

/* ---- layout ---- */

static size_t frame_bytes(int places, size_t record) {
    return (sizeof(struct series_frame) + (size_t)places * record + 7) / 8 * 8;
}

static void lay_out(struct series_layout *l, int places, const struct series_column *column,
                    int n) {
    CHECK(n > 0 && n <= SERIES_COLUMNS && places > 0 && places <= SERIES_PLACES);
    *l = (struct series_layout){.period = SERIES_PERIOD, .places = places, .n = n};
    for (int i = 0; i < n; i++) {
        l->column[i] = column[i];
        l->column[i].at = (int)l->record;
        l->record += (size_t)kinds[column[i].kind].bytes;
    }
    l->frame = frame_bytes(places, l->record);
    const int64_t fit = SERIES_BYTES / (int64_t)l->frame;
    l->capacity = fit < SERIES_FRAMES ? fit : SERIES_FRAMES;
}

/* Whether a frame of one is a frame of the other, too. */
static bool same_frames(const struct series_layout *a, const struct series_layout *b) {
    bool same = a->n == b->n && a->places >= b->places && a->record == b->record;
    for (int i = 0; i < a->n && same; i++)
        same = a->column[i].at == b->column[i].at && a->column[i].kind == b->column[i].kind &&
               !strcmp(a->column[i].name, b->column[i].name);
    return same;
}

static bool read_column(const char *line, size_t record, struct series_column *c) {
    char kind[8];
    if (sscanf(line, "%23s %7s %d", c->name, kind, &c->at) != 3 || c->at < 0) return false;
    for (int i = 0; i < SERIES_KINDS; i++)
        if (!strcmp(kind, kinds[i].name) && (size_t)c->at + (size_t)kinds[i].bytes <= record) {
            c->kind = (enum series_kind)i;
            return true;
        }
    return false; /* of a later program */
}

static tri_status read_page(struct series_page *p, const char *path, struct series_layout *l) {
    if (p->magic == SERIES_MAGIC && p->version > SERIES_VERSION)
        return base_fail(TRI_FAILED, "%s was written by a later version of Trireme (format %u, "
                         "this program reads %d): use that program", path, p->version,
                         SERIES_VERSION);
    if (p->magic != SERIES_MAGIC || p->check != page_check(p) ||
        p->columns[sizeof p->columns - 1] || !p->places || p->places > SERIES_PLACES ||
        p->record > MOST_RECORD || p->frame != frame_bytes((int)p->places, p->record) ||
        p->capacity < 2 || p->capacity > SERIES_FRAMES || p->period < SERIES_PERIOD ||
        p->period > LONGEST || p->began < 0 || p->began >= LATEST)
        return base_fail(TRI_FAILED, "%s is damaged: it does not begin as the times of workers do",
                         path);
    *l = (struct series_layout){.began = p->began,
                                .period = p->period,
                                .places = (int)p->places,
                                .record = p->record,
                                .frame = p->frame,
                                .capacity = p->capacity};
    for (const char *line = p->columns; *line && l->n < SERIES_COLUMNS;) {
        l->n += read_column(line, l->record, &l->column[l->n]);
        const char *end = strchr(line, '\n');
        line = end ? end + 1 : "";
    }
    return TRI_OK;
}

/* ---- reading ---- */

/* False at the end of the file, or if it cannot be read. */
static bool read_at(int fd, void *to, size_t bytes, int64_t at) {
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = pread(fd, (char *)to + done, bytes - done, (off_t)at + (off_t)done);
        if (n <= 0 && !(n < 0 && errno == EINTR)) return false;
        if (n > 0) done += (size_t)n;
    }
    return true;
}

/* Into s->frame and s->bytes. */
static bool read_frame(struct series *s, int64_t number) {
    const struct series_layout *l = &s->layout;
    struct series_frame *f = &s->frame;
    if (!read_at(s->fd, s->bytes, l->frame, SERIES_PAGE + number * (int64_t)l->frame)) return false;
    memcpy(f, s->bytes, sizeof *f);
    return f->check == frame_check(l, s->bytes) && f->step >= 0 && f->time >= 0 &&
           f->time < LATEST && f->covers >= 0 && f->covers <= LONGEST;
}

static tri_status read_index(struct series *s, int64_t bytes) {
    const struct series_layout *l = &s->layout;
    int64_t n = (bytes - SERIES_PAGE) / (int64_t)l->frame;
    if (n > l->capacity) n = l->capacity;
    s->index = calloc((size_t)n + 1, sizeof *s->index);
    s->bytes = calloc(1, l->frame);
    if (!s->index || !s->bytes) return base_no_memory("the times of workers");
    for (int64_t i = 0; i < n; i++)
        if (read_frame(s, i))
            s->index[s->n++] = (struct series_index){s->frame.step, s->frame.time, s->frame.steps,
                                                     (uint32_t)i};
    s->damaged = n - s->n;
    return TRI_OK;
}

tri_status series_open(struct series *s, const char *path) {
    struct series_page page;
    struct stat st;
    *s = (struct series){.fd = base_open(path, O_RDONLY, &st)};
    if (s->fd < 0) return TRI_FAILED; /* see errno */
    tri_status status = TRI_OK;
    if (!read_at(s->fd, &page, sizeof page, 0))
        status = base_fail(TRI_FAILED, "%s is damaged: it ends in its first page", path);
    if (!status) status = read_page(&page, path, &s->layout);
    if (!status) status = read_index(s, st.st_size);
    if (status) series_close(s);
    return status;
}

void series_close(struct series *s) {
    if (s->fd >= 0) close(s->fd);
    free(s->index);
    free(s->bytes);
    *s = (struct series){.fd = -1};
}

static int find_column(const struct series_layout *l, const char *name) {
    for (int i = 0; i < l->n; i++)
        if (!strcmp(l->column[i].name, name)) return i;
    return -1;
}

int series_column(const struct series *s, const char *name) {
    return find_column(&s->layout, name);
}

bool series_read(struct series *s, int64_t i) {
    return i >= 0 && i < s->n && read_frame(s, s->index[i].at);
}

double series_value(const struct series *s, int place, int column) {
    const struct series_layout *l = &s->layout;
    if (column < 0 || column >= l->n || place < 0 || place >= l->places) return 0;
    return get(record_of(l, s->bytes, place), &l->column[column]);
}

int64_t series_find_step(const struct series *s, int64_t step) {
    for (int64_t i = s->n - 1; i >= 0; i--) {
        const struct series_index *f = &s->index[i];
        if (step <= f->step && step > f->step - f->steps) return i;
    }
    return -1;
}

int64_t series_find_time(const struct series *s, int64_t time) {
    int64_t low = 0, high = s->n;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (s->index[middle].time < time) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* ---- writing ---- */

static tri_status write_page(int fd, const struct series_layout *l) {
    struct series_page p = {.magic = SERIES_MAGIC,
                            .version = SERIES_VERSION,
                            .began = l->began,
                            .period = l->period,
                            .frame = (uint32_t)l->frame,
                            .record = (uint32_t)l->record,
                            .places = (uint32_t)l->places,
                            .capacity = (uint32_t)l->capacity};
    struct text columns = {0};
    for (int i = 0; i < l->n; i++)
        text_add(&columns, "%s %s %d\n", l->column[i].name, kinds[l->column[i].kind].name,
                 l->column[i].at);
    CHECK(columns.failed || columns.size < sizeof p.columns);
    if (!columns.failed) memcpy(p.columns, columns.data, columns.size);
    p.check = page_check(&p);
    errno = columns.failed ? ENOMEM : 0;
    text_free(&columns);
    return !errno && pwrite(fd, &p, sizeof p, 0) == (ssize_t)sizeof p ? TRI_OK : TRI_FAILED;
}

static bool write_frame(struct series_writer *w, const struct series_frame *f) {
    const struct series_layout *l = &w->layout;
    memcpy(w->frame, f, sizeof *f);
    const uint32_t check = frame_check(l, w->frame);
    memcpy(w->frame + offsetof(struct series_frame, check), &check, sizeof check);
    const off_t at = SERIES_PAGE + (off_t)w->frames * (off_t)l->frame;
    errno = 0;
    if (pwrite(w->fd, w->frame, l->frame, at) != (ssize_t)l->frame) {
        const int error = errno ? errno : ENOSPC;
        if (ftruncate(w->fd, at)) errno = 0; /* readers skip what is left */
        errno = error;
        return false;
    }
    w->frames++;
    return true;
}

void series_writer_close(struct series_writer *w) {
    if (w->fd >= 0) close(w->fd);
    free(w->path);
    free(w->frame);
    *w = (struct series_writer){.fd = -1};
}

/* For a failure of the system, with its reason in errno. */
static tri_status fail(struct series_writer *w) {
    const tri_status status = base_fail(TRI_FAILED, "cannot write %s: %s", w->path,
                                        strerror(errno ? errno : ENOSPC));
    series_writer_close(w);
    return status;
}

/* Makes a file with the page of w->layout. */
static tri_status begin_new(struct series_writer *w, char part[PART_PATH]) {
    *part = 0;
    free(w->frame);
    w->frame = calloc(1, w->layout.frame);
    if (!w->frame) return base_no_memory(w->path);
    w->frames = 0;
    w->fd = part_open(w->path, 0666, part);
    return w->fd < 0 || write_page(w->fd, &w->layout) ? TRI_FAILED : TRI_OK;
}

/* It takes the place of PATH. A process that reads that one keeps it. */
static tri_status end_new(struct series_writer *w, const char *part, tri_status status) {
    return part_end(w->path, part, status) ? fail(w) : TRI_OK;
}

static tri_status open_writer(struct series_writer *w, const char *path, int places) {
    *w = (struct series_writer){.fd = -1, .path = strdup(path), .places = places};
    return w->path ? TRI_OK : base_no_memory(path);
}

tri_status series_create(struct series_writer *w, const char *path, int64_t began, int places,
                         const struct series_column *column, int n) {
    char part[PART_PATH];
    tri_status status = open_writer(w, path, places);
    if (status) return status;
    lay_out(&w->layout, places, column, n);
    w->layout.began = base_realtime() - (base_now() - began);
    w->offset = -began;
    return end_new(w, part, begin_new(w, part));
}

/* ---- merging ---- */

/* Sums of several frames. */
struct sums {
    struct series_frame f;
    double weight, part[3], *value; /* [places][n] */
};

static void add_value(enum series_kind kind, double value, double weight, double *sum) {
    if (kind == SERIES_MOST) *sum = value > *sum ? value : *sum;
    else *sum += kind == SERIES_SHARE ? value * weight : value;
}

/* from: by column of l, that of s; -1: none. */
static void add_frame(struct sums *to, const struct series_layout *l, const struct series *s,
                      const int *from) {
    const struct series_frame *f = &s->frame;
    const double weight = (double)f->covers + 1;
    const uint16_t part[] = {f->throttled_periods, f->throttled, f->stolen};
    const uint64_t steps = (uint64_t)to->f.steps + f->steps;
    const int64_t covers = to->f.covers + f->covers;
    struct series_frame slower = to->f;
    if (f->slowest > slower.slowest) slower = *f;
    to->f = *f;
    to->f.slowest = slower.slowest;
    to->f.slowest_step = slower.slowest_step;
    to->f.covers = covers;
    to->f.steps = steps > UINT32_MAX ? UINT32_MAX : (uint32_t)steps;
    to->weight += weight;
    for (int i = 0; i < 3; i++) to->part[i] += part[i] * weight / SERIES_ONE;
    for (int p = 0; p < l->places && p < s->layout.places; p++) {
        const char *record = record_of(&s->layout, s->bytes, p);
        for (int c = 0; c < l->n; c++)
            if (from[c] >= 0)
                add_value(l->column[c].kind, get(record, &s->layout.column[from[c]]), weight,
                          &to->value[p * l->n + c]);
    }
}

/* Writes values into the next frame; shares are divided by the weight. */
static void set_values(struct series_writer *w, int places, const double *value, double weight) {
    const struct series_layout *l = &w->layout;
    for (int p = 0; p < places; p++)
        for (int c = 0; c < l->n; c++) {
            const double v = value[p * l->n + c];
            put(record_of(l, w->frame, p), &l->column[c],
                l->column[c].kind == SERIES_SHARE ? v / weight : v);
        }
}

/* Writes the sums, and clears them. */
static bool write_sums(struct series_writer *w, struct sums *s) {
    const struct series_layout *l = &w->layout;
    s->f.throttled_periods = series_share(s->part[0] / s->weight);
    s->f.throttled = series_share(s->part[1] / s->weight);
    s->f.stolen = series_share(s->part[2] / s->weight);
    s->f.check = 0;
    set_values(w, l->places, s->value, s->weight);
    double *value = s->value;
    const bool written = write_frame(w, &s->f);
    memset(value, 0, (size_t)(l->places * l->n) * sizeof *value);
    *s = (struct sums){.value = value};
    return written;
}

static tri_status copy_frames(struct series_writer *w, struct series *s, int64_t each) {
    const struct series_layout *l = &w->layout;
    int from[SERIES_COLUMNS];
    struct sums sums = {.value = calloc((size_t)(l->places * l->n), sizeof(double))};
    tri_status status = sums.value ? TRI_OK : base_no_memory(w->path);
    for (int c = 0; c < l->n; c++) {
        from[c] = find_column(&s->layout, l->column[c].name);
        if (from[c] >= 0 && s->layout.column[from[c]].kind != l->column[c].kind) from[c] = -1;
    }
    for (int64_t i = 0; i < s->n && !status; i++) {
        if (series_read(s, i)) add_frame(&sums, l, s, from);
        const bool last = (i + 1) % each == 0 || i + 1 == s->n;
        if (last && sums.weight > 0 && !write_sums(w, &sums)) status = TRI_FAILED;
    }
    free(sums.value);
    return status;
}

/* Writes the file anew, in w->layout, `each` frames as one. */
static tri_status rewrite(struct series_writer *w, struct series *s, int64_t each) {
    struct series_layout *l = &w->layout;
    char part[PART_PATH];
    l->began = s->layout.began;
    l->period = s->layout.period < LONGEST / each ? s->layout.period * each : LONGEST;
    if (w->fd >= 0) close(w->fd);
    tri_status status = begin_new(w, part);
    if (!status) status = copy_frames(w, s, each);
    return end_new(w, part, status);
}

static tri_status halve(struct series_writer *w) {
    struct series s;
    tri_status status = series_open(&s, w->path);
    if (status) {
        series_writer_close(w);
        return status;
    }
    status = rewrite(w, &s, 2);
    series_close(&s);
    return status;
}

/* ---- going on ---- */

static tri_status append(struct series_writer *w, const struct series *s) {
    w->layout = s->layout;
    w->frames = s->n ? s->index[s->n - 1].at + 1 : 0;
    w->frame = calloc(1, w->layout.frame);
    if (!w->frame) return base_no_memory(w->path);
    w->fd = base_open(w->path, O_RDWR, NULL);
    if (w->fd < 0 || ftruncate(w->fd, SERIES_PAGE + (off_t)w->frames * (off_t)w->layout.frame))
        return fail(w);
    return TRI_OK;
}

static tri_status go_on(struct series_writer *w, struct series *s,
                        const struct series_column *column, int n) {
    const int64_t last = s->n ? s->index[s->n - 1].time : 0;
    const int64_t now = base_realtime() - s->layout.began;
    int64_t each = 1;
    lay_out(&w->layout, w->places > s->layout.places ? w->places : s->layout.places, column, n);
    while (s->n / each >= w->layout.capacity) each *= 2;
    const bool same = same_frames(&s->layout, &w->layout) && each == 1;
    const tri_status status = same ? append(w, s) : rewrite(w, s, each);
    w->offset = (now > last ? now : last) - base_now();
    return status;
}

tri_status series_continue(struct series_writer *w, const char *path, int64_t began, int places,
                           const struct series_column *column, int n) {
    struct series s;
    struct stat st;
    if (stat(path, &st) && errno == ENOENT)
        return series_create(w, path, began, places, column, n);
    tri_status status = open_writer(w, path, places);
    if (status) return status;
    status = series_open(&s, path);
    if (!status) status = go_on(w, &s, column, n);
    else series_writer_close(w);
    series_close(&s);
    return status;
}

tri_status series_add(struct series_writer *w, int64_t now, const struct series_frame *f,
                      const double *value) {
    if (w->frames >= w->layout.capacity && halve(w)) return TRI_FAILED;
    struct series_frame frame = *f;
    frame.time = now + w->offset;
    frame.check = 0;
    set_values(w, w->places, value, 1);
    return write_frame(w, &frame) ? TRI_OK : fail(w);
}
