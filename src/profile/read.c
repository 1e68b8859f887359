/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "observe/files.h"
#include "profile/items.h"

#define LATEST (INT64_C(1) << 61) /* no time is later, nor earlier than its negative */
#define LOOK_BACK 64 /* spans, for what ended a wait */

/* ---- one file ---- */

static bool is_sound(const struct span *s) {
    return s->begin >= 0 && s->begin <= s->end && s->end < LATEST &&
           (s->kind < SPENTS || (s->kind >= SPAN_OPERATOR && s->kind <= SPAN_TRANSFER));
}

static int by_end(const void *a, const void *b) {
    const struct span *x = a, *y = b;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return (x->begin < y->begin) - (x->begin > y->begin);
}

/* Adds n spans from `from`, which is not before the end of the thread's. */
static void take_spans(struct profile *p, struct profile_thread *t, const char *from, size_t n) {
    const struct profile_host *h = &p->host[t->host];
    for (size_t i = 0; i < n; i++) {
        struct span s;
        memcpy(&s, from + i * sizeof s, sizeof s);
        if (!is_sound(&s)) {
            p->damaged++;
            continue;
        }
        s.begin += h->offset;
        s.end += h->offset;
        if (s.item < 0 || s.item >= h->n_items) s.item = -1;
        if (!p->spans || s.begin < p->begin) p->begin = s.begin;
        if (!p->spans || s.end > p->end) p->end = s.end;
        p->spans++;
        t->span[t->n++] = s;
    }
}

/* data: the file's, of which the thread's spans take the place. */
static void take_chunks(struct profile *p, struct profile_thread *t, const char *data, size_t at,
                        size_t bytes) {
    uint64_t dropped = 0;
    while (at < bytes) {
        struct span_chunk c;
        if (bytes - at < sizeof c) break;
        memcpy(&c, data + at, sizeof c);
        const struct span *span = (const struct span *)(const void *)(data + at + sizeof c);
        if (c.spans > (bytes - at - sizeof c) / sizeof *span) break;
        if (span_check(span, c.spans) != c.check) break;
        take_spans(p, t, data + at + sizeof c, c.spans);
        at += sizeof c + c.spans * sizeof *span;
        dropped = c.dropped;
    }
    p->cut += at < bytes;
    p->lost += (int64_t)(dropped < (uint64_t)LATEST ? dropped : 0);
    for (size_t i = 1; i < t->n; i++) {
        if (by_end(&t->span[i - 1], &t->span[i]) <= 0) continue;
        qsort(t->span, t->n, sizeof *t->span, by_end);
        break;
    }
}

static tri_status take_header(struct profile *p, struct profile_thread *t, const char *path,
                              const struct span_header *h) {
    if (h->magic != SPAN_MAGIC) return base_fail(TRI_FAILED, "%s: it has no spans", path);
    if (h->version != SPAN_VERSION || h->bytes != sizeof(struct span))
        return base_fail(TRI_FAILED, "%s: its format is version %u; this program reads version %d",
                         path, h->version, SPAN_VERSION);
    t->pid = h->pid;
    t->tid = h->tid;
    t->what = h->what <= SPAN_FERRIES ? (enum span_thread)h->what : SPAN_COMPUTES;
    if (h->threads) p->host[t->host].threads = h->threads;
    if (h->first < 1 || h->last < h->first || h->last > UINT32_MAX) return TRI_OK;
    if (!p->first || h->first < p->first) p->first = h->first;
    if (h->last > p->last) p->last = h->last;
    return TRI_OK;
}

/* Without clocks.json, which has been read before, a host's clock is taken as right. */
static void place_host(struct profile *p, int host, int64_t realtime) {
    struct profile_host *h = &p->host[host];
    const struct profile_host *first = &p->host[0];
    if (h->realtime || realtime < 0 || realtime >= LATEST) return;
    h->realtime = realtime;
    if (!h->clock && host && first->realtime)
        h->offset = realtime - first->realtime + first->offset;
}

/* A file that is cut within its header, as by a full disk, has no spans. */
static tri_status read_spans(struct profile *p, struct profile_thread *t, const char *path) {
    struct span_header h;
    char *data;
    size_t bytes;
    tri_status status = base_read_file(path, &data, &bytes);
    if (status) return status;
    t->span = (struct span *)(void *)data;
    if (bytes < sizeof h) {
        p->cut++;
        return TRI_OK;
    }
    memcpy(&h, data, sizeof h);
    status = take_header(p, t, path, &h);
    if (status) return status;
    place_host(p, t->host, h.realtime);
    take_chunks(p, t, data, sizeof h, bytes);
    return TRI_OK;
}

/* ---- the steps of a host ---- */

static int by_begin(const void *a, const void *b) {
    const struct profile_step *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static void add_step(struct profile_step *s, const struct span *is) {
    if (!s->step || is->begin < s->begin) s->begin = is->begin;
    if (!s->step || is->end > s->end) s->end = is->end;
    s->step = is->step;
}

/* From the spans of steps, or, if there are none, from all others that have a step. */
static tri_status find_steps(struct profile *p, int host) {
    struct profile_host *h = &p->host[host];
    const int64_t n = p->last - p->first + 1;
    if (p->first < 0 || n < 1 || n > PROFILE_STEPS) return TRI_OK;
    h->step = calloc((size_t)n, sizeof *h->step);
    if (!h->step) return base_no_memory("the steps of the profile");
    for (int all = 0; all < 2 && !h->n_steps; all++) {
        for (int i = 0; i < p->n_threads; i++)
            for (size_t k = 0; p->thread[i].host == host && k < p->thread[i].n; k++) {
                const struct span *s = &p->thread[i].span[k];
                if (s->step && s->step >= p->first && s->step <= p->last &&
                    (s->kind == SPAN_STEP || (all && p->thread[i].what == SPAN_COMPUTES)))
                    add_step(&h->step[s->step - p->first], s);
            }
        for (int64_t i = 0; i < n; i++)
            if (h->step[i].step) h->step[h->n_steps++] = h->step[i];
    }
    qsort(h->step, (size_t)h->n_steps, sizeof *h->step, by_begin);
    for (int i = 0; i < h->n_steps; i++)
        h->step[i].next = i + 1 < h->n_steps ? h->step[i + 1].begin : h->step[i].end;
    return TRI_OK;
}

/* ---- folders ---- */

/* "10" or "10.1" */
static bool is_name(const char *name) {
    static const char digits[] = "0123456789";
    const size_t n = strspn(name, digits), more = name[n] == '.' ? strspn(name + n + 1, digits) : 0;
    return n && !name[n + (more ? more + 1 : 0)];
}

static bool is_directory(const char *path) {
    struct stat is;
    return !stat(path, &is) && S_ISDIR(is.st_mode);
}

/* Folders DIR/profile/, or those of hosts: then DIR/profile has what was derived of these. */
static tri_status find_hosts(const char *directory, glob_t *found) {
    tri_status status = files_match(directory, "hosts/*/profile/", found);
    if (!status && !found->gl_pathc) status = files_match(directory, "profile/", found);
    if (status || found->gl_pathc) return status;
    return base_fail(TRI_USAGE, "%s: it has no profile; train with --profile steps=10..20",
                     directory);
}

/* The last of the profiles of all hosts. */
static tri_status find_last(struct profile *p, const glob_t *hosts) {
    tri_status status = TRI_OK;
    for (size_t i = 0; i < hosts->gl_pathc && !status; i++) {
        glob_t found = {0};
        status = files_match(hosts->gl_pathv[i], "[0-9]*", &found);
        for (size_t k = 0; k < found.gl_pathc; k++) {
            const char *name = strrchr(found.gl_pathv[k], '/') + 1;
            if (is_name(name) && (!p->name || strverscmp(name, p->name) > 0))
                p->name = arena_copy(&p->arena, name);
        }
        globfree(&found);
    }
    return status;
}

static int by_place(const void *a, const void *b) {
    const struct profile_thread *x = a, *y = b;
    if (x->host != y->host) return x->host < y->host ? -1 : 1;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    return (x->thread > y->thread) - (x->thread < y->thread);
}

/* path: of a file "spans-PLACE-THREAD.bin". */
static tri_status read_thread(struct profile *p, int host, const char *path, size_t *capacity) {
    struct profile_thread t = {.host = host};
    const char *name = strrchr(path, '/') + 1;
    int n = 0;
    if (sscanf(name, "spans-%5[0-9]-%5[0-9].bin%n", (char[8]){0}, (char[8]){0}, &n) != 2 || name[n])
        return TRI_OK;
    sscanf(name, "spans-%d-%d", &t.place, &t.thread);
    if (!ARRAY_GROW(p->thread, p->n_threads, *capacity)) return base_no_memory("the profile");
    p->thread[p->n_threads] = t;
    return read_spans(p, &p->thread[p->n_threads++], path);
}

static tri_status read_host(struct profile *p, int host, const char *folder, size_t *capacity) {
    glob_t found = {0};
    tri_status status = items_read(p, host, folder);
    if (!status) status = files_match(folder, "spans-*.bin", &found);
    for (size_t i = 0; i < found.gl_pathc && !status; i++)
        status = read_thread(p, host, found.gl_pathv[i], capacity);
    globfree(&found);
    return status;
}

static tri_status read_hosts(struct profile *p, const char *directory, const glob_t *hosts) {
    size_t capacity = 0;
    tri_status status = TRI_OK;
    p->host = calloc(hosts->gl_pathc, sizeof *p->host);
    if (!p->host) return base_no_memory("the profile");
    for (size_t i = 0; i < hosts->gl_pathc && !status; i++) {
        struct profile_host *h = &p->host[p->n_hosts];
        const char *at = hosts->gl_pathv[i], *folder = arena_text(&p->arena, "%s%s", at, p->name);
        char *path = arena_text(&p->arena, "%.*s", (int)(strlen(at) - strlen("/profile/")), at);
        if (!path || !folder) return base_no_memory("the profile");
        if (!is_directory(folder)) continue; /* the host came later, or its profile has gone */
        h->path = path;
        h->name = strcmp(path, directory) ? arena_escaped(&p->arena, strrchr(path, '/') + 1) : "";
        status = read_host(p, p->n_hosts++, folder, &capacity);
    }
    if (p->n_threads)
        qsort(p->thread, (size_t)p->n_threads, sizeof *p->thread, by_place);
    for (int i = 0; i < p->n_hosts && !status; i++) status = find_steps(p, i);
    return status;
}

tri_status profile_read(const char *directory, const char *name, struct profile *p) {
    glob_t hosts = {0};
    *p = (struct profile){0};
    if (name && !is_name(name))
        return base_fail(TRI_USAGE, "\"%s\" is no name of a profile; that is the number of its "
                                    "first step, as 10, or 10.1", name);
    tri_status status = find_hosts(directory, &hosts);
    if (status == TRI_USAGE && name)
        status = base_fail(TRI_USAGE, "%s: it has no profile %s", directory, name);
    if (!status && name) p->name = arena_copy(&p->arena, name);
    if (!status && !name) status = find_last(p, &hosts);
    if (!status && p->name) {
        p->folder = arena_text(&p->arena, "%s/profile/%s", directory, p->name);
        status = p->folder ? read_hosts(p, directory, &hosts) : base_no_memory("the profile");
    }
    if (!status && !p->n_hosts)
        status = base_fail(TRI_USAGE, "%s: it has no profile%s%s", directory, name ? " " : "",
                           name ? name : "");
    globfree(&hosts);
    return status;
}

void profile_free(struct profile *p) {
    for (int i = 0; i < p->n_threads; i++) free(p->thread[i].span);
    for (int i = 0; i < p->n_hosts; i++) {
        free(p->host[i].item);
        free(p->host[i].step);
        free(p->host[i].rate);
    }
    free(p->thread);
    free(p->host);
    arena_free(&p->arena);
    *p = (struct profile){0};
}

/* ---- looking ---- */

const struct profile_thread *profile_thread_at(const struct profile *p, int host, int place,
                                               int thread) {
    const struct profile_thread key = {.host = host, .place = place, .thread = thread};
    return p->n_threads
               ? bsearch(&key, p->thread, (size_t)p->n_threads, sizeof *p->thread, by_place)
               : NULL;
}

const struct profile_item *profile_item_of(const struct profile *p, const struct profile_thread *t,
                                           const struct span *s) {
    return s->item >= 0 ? &p->host[t->host].item[s->item] : NULL;
}

size_t profile_until(const struct profile_thread *t, int64_t end) {
    size_t low = 0, high = t->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (t->span[middle].end <= end) low = middle + 1;
        else high = middle;
    }
    return low;
}

const struct span *profile_last(const struct profile_thread *t, int64_t begin, int64_t end) {
    size_t n = profile_until(t, end);
    for (int k = 0; k < LOOK_BACK && n && t->span[n - 1].end >= begin; k++) {
        const struct span *s = &t->span[--n];
        if (!profile_is_wait(s) && s->kind != SPAN_STEP) return s;
    }
    return NULL;
}

int profile_ended_by(const struct profile *p, int i, const struct span *wait,
                     const struct span **last) {
    const struct profile_thread *to = &p->thread[i];
    const int threads = p->host[to->host].threads;
    if (wait->whom == SPAN_NOBODY || !threads) return -1;
    const struct profile_thread *from =
        profile_thread_at(p, to->host, wait->whom / threads, wait->whom % threads);
    *last = from && from != to ? profile_last(from, wait->begin, wait->end) : NULL;
    return *last ? (int)(from - p->thread) : -1;
}

bool profile_is_wait(const struct span *s) {
    return s->kind < SPENTS && spent_rows[s->kind].group == SPENT_WAITS;
}
