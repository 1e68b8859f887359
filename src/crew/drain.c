/* SPDX-License-Identifier: Apache-2.0 */
#include "crew/drain.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define EVERY 20000000 /* nanoseconds */

struct file {
    int fd; /* -1: nothing has been written */
    off_t size;
    uint64_t dropped; /* by the ring, when the drainer was opened */
    uint64_t lost;    /* that could not be written */
    uint64_t told;    /* how many are missing, according to the last chunk */
};

struct drain {
    struct drain_plan plan;
    struct file *file; /* [plan.n] */
    _Atomic int64_t spans, lost, bytes;
    atomic_bool full, failed;
    char error[512]; /* set before `failed` */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t quits;
    bool started, quit;
    atomic_bool ended;
};

/* ---- files ---- */

tri_status drain_directory(const char *out, int64_t first, char path[4096]) {
    int n = snprintf(path, 4096, "%s/profile", out);
    if (n < 0 || n > 4000) return base_fail(TRI_USAGE, "%.80s...: the path is too long", out);
    if (mkdir(path, 0777) && errno != EEXIST)
        return base_fail(TRI_FAILED, "%s: %s", path, strerror(errno));
    n += snprintf(path + n, 40, "/%lld", (long long)first);
    for (int i = 1; mkdir(path, 0777); i++) {
        if (errno != EEXIST) return base_fail(TRI_FAILED, "%s: %s", path, strerror(errno));
        snprintf(path + n, 40, ".%d", i);
    }
    return TRI_OK;
}

static void note_failure(struct drain *d, const char *path) {
    if (atomic_load(&d->failed)) return;
    snprintf(d->error, sizeof d->error, "%s: %s", path, strerror(errno));
    atomic_store(&d->failed, true);
}

static void path_of(const struct drain *d, int i, char path[4200]) {
    const struct drain_from *from = &d->plan.from[i];
    snprintf(path, 4200, "%s/spans-%d-%d.bin", d->plan.directory, from->place, from->thread);
}

/* Writes all or nothing, and counts. */
static bool put(struct drain *d, int i, struct iovec *part, int n) {
    struct file *f = &d->file[i];
    ssize_t bytes = 0, written;
    for (int k = 0; k < n; k++) bytes += (ssize_t)part[k].iov_len;
    do written = pwritev(f->fd, part, n, f->size);
    while (written < 0 && errno == EINTR);
    if (written == bytes) {
        f->size += bytes;
        atomic_fetch_add(&d->bytes, bytes);
        return true;
    }
    if (written >= 0) errno = ENOSPC;
    char path[4200];
    path_of(d, i, path);
    note_failure(d, path);
    while (ftruncate(f->fd, f->size) && errno == EINTR) continue;
    return false;
}

static bool is_open(struct drain *d, int i) {
    const struct drain_from *from = &d->plan.from[i];
    struct file *f = &d->file[i];
    char path[4200];
    if (f->size) return true;
    path_of(d, i, path);
    if (f->fd < 0) f->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (f->fd < 0) {
        note_failure(d, path);
        return false;
    }
    struct span_header h = {
        .magic = SPAN_MAGIC, .version = SPAN_VERSION, .bytes = sizeof(struct span),
        .pid = from->pid, .tid = from->tid, .place = (uint16_t)from->place,
        .thread = (uint16_t)from->thread, .what = (uint16_t)from->what,
        .threads = (uint16_t)d->plan.threads, .first = d->plan.first, .last = d->plan.last,
        .realtime = base_realtime() - base_now()};
    return put(d, i, &(struct iovec){&h, sizeof h}, 1);
}

/* How many spans of the thread are missing. */
static uint64_t missing(const struct drain *d, int i) {
    return atomic_load_explicit(&d->plan.from[i].ring->dropped, memory_order_relaxed) -
           d->file[i].dropped + d->file[i].lost;
}

static bool is_full(struct drain *d, size_t more) {
    if (d->plan.most && atomic_load(&d->bytes) + (int64_t)more > d->plan.most)
        atomic_store(&d->full, true);
    return atomic_load(&d->full);
}

/* A chunk of n spans. If there are none, it says how many are missing, whatever the limit. */
static bool put_chunk(struct drain *d, int i, struct span *span, size_t n) {
    struct file *f = &d->file[i];
    const uint64_t dropped = missing(d, i);
    const size_t header = f->size ? 0 : sizeof(struct span_header);
    struct span_chunk c = {(uint32_t)n, span_check(span, n), dropped};
    struct iovec part[] = {{&c, sizeof c}, {span, n * sizeof *span}};
    if (n && is_full(d, header + sizeof c + part[1].iov_len)) return false;
    if (!is_open(d, i) || !put(d, i, part, 2)) return false;
    f->told = dropped;
    return true;
}

/* ---- rings ---- */

static void drain_ring(struct drain *d, int i) {
    struct ring *r = d->plan.from[i].ring;
    const uint64_t capacity = d->plan.from[i].capacity;
    const uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);
    uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
    if (head - tail > capacity) tail = head; /* it is damaged */
    while (tail != head) {
        uint64_t n = capacity - (tail & (capacity - 1));
        if (n > head - tail) n = head - tail;
        if (put_chunk(d, i, &r->span[tail & (capacity - 1)], n)) atomic_fetch_add(&d->spans, n);
        else d->file[i].lost += n;
        tail += n;
    }
    atomic_store_explicit(&r->tail, tail, memory_order_release);
}

void drain_once(struct drain *d) {
    uint64_t lost = 0;
    for (int i = 0; i < d->plan.n; i++) {
        drain_ring(d, i);
        lost += missing(d, i);
    }
    atomic_store(&d->lost, (int64_t)lost);
}

static void write_rest(struct drain *d) {
    drain_once(d);
    for (int i = 0; i < d->plan.n; i++) {
        struct file *f = &d->file[i];
        struct span none;
        if (missing(d, i) != f->told) put_chunk(d, i, &none, 0);
        if (f->fd >= 0) close(f->fd);
        f->fd = -1;
    }
}

static void *drain_on(void *arg) {
    struct drain *d = arg;
    struct timespec until;
    pthread_mutex_lock(&d->mutex);
    while (!d->quit) {
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += EVERY;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        while (!d->quit && !pthread_cond_timedwait(&d->quits, &d->mutex, &until)) continue;
        pthread_mutex_unlock(&d->mutex);
        drain_once(d);
        pthread_mutex_lock(&d->mutex);
    }
    pthread_mutex_unlock(&d->mutex);
    write_rest(d);
    atomic_store(&d->ended, true);
    return NULL;
}

/* ---- its life ---- */

tri_status drain_open(const struct drain_plan *plan, struct drain **out) {
    struct drain *d = calloc(1, sizeof *d);
    pthread_condattr_t monotonic;
    if (d) d->file = calloc((size_t)plan->n + 1, sizeof *d->file);
    if (!d || !d->file) {
        free(d);
        return base_no_memory("the drainer");
    }
    d->plan = *plan;
    for (int i = 0; i < plan->n; i++) {
        struct ring *r = plan->from[i].ring;
        d->file[i] = (struct file){.fd = -1, .dropped = atomic_load(&r->dropped)};
        atomic_store(&r->tail, atomic_load(&r->head));
    }
    pthread_mutex_init(&d->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&d->quits, &monotonic);
    pthread_condattr_destroy(&monotonic);
    *out = d;
    return TRI_OK;
}

tri_status drain_start(struct drain *d) {
    sigset_t all, before;
    sigfillset(&all); /* signals are for other threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = pthread_create(&d->thread, NULL, drain_on, d);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    d->started = !failed;
    return failed ? base_fail(TRI_FAILED, "the drainer cannot be started: %s", strerror(failed))
                  : TRI_OK;
}

void drain_end(struct drain *d) {
    pthread_mutex_lock(&d->mutex);
    d->quit = true;
    pthread_cond_signal(&d->quits);
    pthread_mutex_unlock(&d->mutex);
}

bool drain_has_ended(const struct drain *d) { return !d->started || atomic_load(&d->ended); }

void drain_stop(struct drain *d) {
    if (!d->started) {
        write_rest(d);
        return;
    }
    drain_end(d);
    pthread_join(d->thread, NULL);
    d->started = false;
}

void drain_look(const struct drain *d, struct drain_seen *seen) {
    *seen = (struct drain_seen){
        atomic_load(&d->spans), atomic_load(&d->lost), atomic_load(&d->bytes),
        atomic_load(&d->full), atomic_load(&d->failed) ? d->error : NULL};
}

void drain_close(struct drain *d) {
    if (!d) return;
    for (int i = 0; i < d->plan.n; i++)
        if (d->file[i].fd >= 0) close(d->file[i].fd);
    pthread_mutex_destroy(&d->mutex);
    pthread_cond_destroy(&d->quits);
    free(d->file);
    free(d);
}
