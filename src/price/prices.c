/* SPDX-License-Identifier: Apache-2.0 */
#include "price/prices.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host.h"

#define MOST_BUSY 4096
#define MOST_SECONDS 1e6

/* "AMD EPYC" */
static void add_processor(struct text *t) {
    char line[512], name[256] = "unknown processor";
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "model name : %255[^\n]", name) == 1) break;
    if (f) fclose(f);
    text_add(t, "%s", name);
}

tri_status prices_make(struct prices *p, int cores) {
    struct text t = {0};
    *p = (struct prices){0};
    add_processor(&t);
    text_add(&t, ", %d core(s), ", cores ? cores : host_cores());
    host_instructions(&t);
    if (getenv("TRIREME_ISA")) text_add(&t, " TRIREME_ISA=%s", getenv("TRIREME_ISA"));
    text_add(&t, ", version " TRI_VERSION);
    for (size_t i = 0; i < t.size && !t.failed; i++) /* names of processors may be anything */
        if ((unsigned char)t.data[i] < ' ') t.data[i] = ' ';
    if (!t.failed) p->machine = arena_copy(&p->arena, t.data);
    text_free(&t);
    return p->machine ? TRI_OK : base_no_memory("the prices of units");
}

void prices_free(struct prices *p) {
    free(p->price);
    arena_free(&p->arena);
    *p = (struct prices){0};
}

bool prices_file(const struct prices *p, struct text *path) {
    const bool have = base_cache(path);
    text_add(path, "/machine-%016llx", (unsigned long long)base_hash_text(p->machine));
    return have && !path->failed;
}

/* ---- lookup ---- */

static int compare(const void *a, const void *b) {
    const struct price *x = a, *y = b;
    const int units = strcmp(x->unit, y->unit);
    return units ? units : x->busy - y->busy;
}

/* Where it is, or belongs. */
static size_t place(const struct prices *p, const struct price *is, bool *there) {
    size_t low = 0, high = p->n;
    *there = false;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = compare(&p->price[middle], is);
        if (!order) *there = true;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

const struct price *prices_find(const struct prices *p, const char *unit, int busy) {
    bool there;
    const size_t at = place(p, &(struct price){.unit = unit, .busy = busy}, &there);
    return there ? &p->price[at] : NULL;
}

tri_status prices_add(struct prices *p, const struct price *is) {
    bool there;
    const size_t at = place(p, is, &there);
    if (!there) {
        const char *unit = arena_copy(&p->arena, is->unit);
        if (!unit || !ARRAY_GROW(p->price, p->n, p->capacity))
            return base_no_memory("the prices of units");
        memmove(p->price + at + 1, p->price + at, (p->n - at) * sizeof *p->price);
        p->price[at].unit = unit;
        p->n++;
    }
    p->price[at] = (struct price){p->price[at].unit, is->busy, is->seconds, is->calls};
    return TRI_OK;
}

/* ---- the file ---- */

static bool read_number(char **at, double least, double most, double *x) {
    const char *begin = *at;
    *x = base_number(begin, at);
    return *at != begin && *x >= least && *x <= most;
}

/* "BUSY SECONDS CALLS UNIT" */
static bool read_unit(char *at, struct price *is) {
    double busy, calls;
    if (!read_number(&at, 1, MOST_BUSY, &busy) || *at++ != ' ' ||
        !read_number(&at, 0, MOST_SECONDS, &is->seconds) || *at++ != ' ' ||
        !read_number(&at, 1, 1e15, &calls) || *at++ != ' ' || !*at)
        return false;
    is->busy = (int)busy;
    is->calls = (int64_t)calls;
    is->unit = at;
    return is->busy == busy && (double)is->calls == calls;
}

struct taken {
    struct prices *p;
    uint64_t hash; /* of the lines so far */
    bool named, full, whole; /* full: there is no memory for another price */
};

static uint64_t hash_line(const char *line, uint64_t before) {
    return base_hash(line, strlen(line) + 1, before);
}

#define SEAL "hash %016llx"

static bool is_seal(const struct taken *t, const char *line) {
    char own[32];
    base_format(own, sizeof own, SEAL, (unsigned long long)t->hash);
    return !strcmp(line, own);
}

static bool take_line(void *user, char *line) {
    struct taken *t = user;
    struct price is;
    if (t->whole) return false;
    if (!strncmp(line, "hash ", 5)) return t->whole = t->named && is_seal(t, line);
    t->hash = hash_line(line, t->hash);
    if (!t->named) {
        t->named = !strncmp(line, "machine ", 8) && !strcmp(line + 8, t->p->machine);
        return t->named;
    }
    if (strncmp(line, "unit ", 5) || !read_unit(line + 5, &is)) return false;
    t->full |= prices_add(t->p, &is) != TRI_OK;
    return true;
}

#define ANEW "what is measured is kept in a new one"

tri_status prices_read(struct prices *p, const char *path) {
    struct taken t = {.p = p};
    if (access(path, F_OK) && errno == ENOENT) return TRI_OK;
    tri_status status = base_read_lines(path, ANEW, take_line, &t);
    if (!status && !t.whole)
        status = base_fail(TRI_FAILED, "%s: its last line, a hash, is not there; " ANEW, path);
    return !status && t.full ? base_no_memory(path) : status;
}

void prices_seal(struct text *file) {
    struct taken t = {0};
    for (char *line = file->data, *end; line && (end = strchr(line, '\n')); line = end + 1) {
        *end = 0;
        if (*line && *line != '#') t.hash = hash_line(line, t.hash);
        *end = '\n';
    }
    text_add(file, SEAL "\n", (unsigned long long)t.hash);
}

tri_status prices_write(const struct prices *p, const char *path) {
    char day[DATE_TEXT];
    struct text t = {0};
    text_add(&t, "# trireme, %s: threads that computed at the same time, seconds of a call, calls, "
             "unit\nmachine %s\n", base_date_text(day), p->machine);
    for (size_t i = 0; i < p->n; i++)
        text_add(&t, "unit %d %.6g %lld %s\n", p->price[i].busy, p->price[i].seconds,
                 (long long)p->price[i].calls, p->price[i].unit);
    if (!t.failed) prices_seal(&t);
    /* Others may write the file at the same time. */
    struct text own = {0};
    text_add(&own, "%s.%ld", path, (long)getpid());
    if (own.failed) t.failed = true;
    tri_status status = text_write_file(&t, own.failed ? path : own.data, TRI_OK);
    if (!status && rename(own.data, path)) {
        status = base_fail(TRI_FAILED, "%s: %s", path, strerror(errno));
        unlink(own.data);
    }
    text_free(&own);
    return status;
}

tri_status prices_open(struct prices *p, int cores, struct text *path) {
    tri_status status = prices_make(p, cores);
    if (!status && !prices_file(p, path)) text_free(path);
    if (status || !path->size || !prices_read(p, path->data)) return status;
    fprintf(stderr, "trireme: %s\n", tri_message());
    prices_free(p);
    return prices_make(p, cores);
}

void prices_keep(const struct prices *p, const struct text *path) {
    if (!path->size)
        fprintf(stderr, "trireme: the prices are not kept: there is no $HOME, and no "
                "$XDG_CACHE_HOME\n");
    else if (prices_write(p, path->data))
        fprintf(stderr, "trireme: the prices are not kept: %s\n", tri_message());
}
