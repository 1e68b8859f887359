/* SPDX-License-Identifier: Apache-2.0 */
#include "data/pictures.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"

struct pictures_worker {
    struct pictures_worker *next;
    struct augmenter augmenter;
    struct data_file file;
};

tri_status pictures_init(struct pictures *p, const char *spec, const struct augment *a,
                         int64_t size, int64_t max_bad) {
    p->augment = *a;
    p->size = size;
    p->max_bad = max_bad;
    p->spec = strdup(spec);
    if (!p->spec) return base_no_memory(spec);
    CHECK(!pthread_mutex_init(&p->lock, NULL));
    if (max_bad >= 0 && max_bad <= INT32_MAX) return TRI_OK;
    return base_fail(TRI_USAGE, "data '%s': max-bad=%lld; 0 to 2^31 - 1 are possible", spec,
                     (long long)max_bad);
}

static void free_worker(struct pictures_worker *w) {
    augmenter_close(&w->augmenter);
    free(w->file.bytes);
    text_free(&w->file.name);
    free(w);
}

void pictures_close(struct pictures *p) {
    if (!p->spec) return;
    for (struct pictures_worker *next; p->idle; p->idle = next) {
        next = p->idle->next;
        free_worker(p->idle);
    }
    pthread_mutex_destroy(&p->lock);
    free(p->bad);
    free(p->spec);
}

/* ---- workers ---- */

static struct pictures_worker *take_worker(struct pictures *p) {
    pthread_mutex_lock(&p->lock);
    struct pictures_worker *w = p->idle;
    if (w) p->idle = w->next;
    pthread_mutex_unlock(&p->lock);
    if (w) return w;
    if (!(w = calloc(1, sizeof *w)))
        base_no_memory("pictures");
    else if (!augmenter_open(&w->augmenter, &p->augment))
        return w;
    free(w);
    return NULL;
}

static void put_worker(struct pictures *p, struct pictures_worker *w) {
    pthread_mutex_lock(&p->lock);
    w->next = p->idle;
    p->idle = w;
    pthread_mutex_unlock(&p->lock);
}

tri_status pictures_reserve(struct data_file *f, size_t n) {
    if (f->capacity < n + 1) {
        free(f->bytes);
        f->bytes = malloc(n + 1);
        f->capacity = f->bytes ? n + 1 : 0;
        if (!f->bytes) return base_no_memory(f->name.data ? f->name.data : "a picture");
    }
    f->n = n;
    return TRI_OK;
}

tri_status pictures_unreadable(int error) {
    bool of_machine = error == ENOMEM || error == EMFILE || error == ENFILE;
    return base_fail(of_machine ? TRI_FAILED : PICTURE_BAD, "%s", tri_message());
}

static tri_status read_all(int fd, struct data_file *out, size_t bytes) {
    const char *path = out->name.data;
    tri_status status = pictures_reserve(out, bytes);
    for (size_t at = 0; at < out->n && !status;) {
        ssize_t n = read(fd, out->bytes + at, out->n - at);
        if (n < 0 && errno != EINTR) {
            int error = errno;
            base_fail(PICTURE_BAD, "%s: %s", path, strerror(error));
            status = pictures_unreadable(error);
        }
        if (!n)
            status = base_fail(PICTURE_BAD, "%s: read stopped at offset %zu of %zu", path, at,
                               out->n);
        if (n > 0) at += (size_t)n;
    }
    return status;
}

tri_status pictures_read_file(struct data_file *f) {
    struct stat st;
    int fd = base_open(f->name.data, O_RDONLY, &st);
    if (fd < 0) return pictures_unreadable(errno);
    tri_status status = read_all(fd, f, (size_t)st.st_size);
    close(fd);
    return status;
}

/* ---- bad pictures ---- */

static tri_status too_many(struct pictures *p) {
    return base_fail(TRI_FAILED, "data '%s': more than max-bad=%lld bad files; the last: %s",
                     p->spec, (long long)p->max_bad, tri_message());
}

/* With the lock held. */
static tri_status count_bad(struct pictures *p, bool more) {
    int64_t n = (p->together ? tally_count(p->together) : (int64_t)p->n_bad) + p->n_other;
    if (n > p->max_bad) return too_many(p);
    if (more)
        fprintf(stderr, "trireme: skipped bad file %lld of at most %lld: %s\n", (long long)n,
                (long long)p->max_bad, tri_message());
    return TRI_OK;
}

tri_status pictures_other_bad(struct pictures *p) {
    pthread_mutex_lock(&p->lock);
    p->n_other++;
    tri_status status = count_bad(p, true);
    pthread_mutex_unlock(&p->lock);
    return status;
}

void pictures_count_together(const tri_data *d, struct tally *t) {
    if (d->about.pictures && !d->sequential) d->about.pictures->together = t;
}

/* Reports bad sample `index`, once; tri_message() says what is wrong. */
static tri_status leave_out(struct pictures *p, int64_t index) {
    size_t i = 0;
    tri_status status = TRI_OK;
    pthread_mutex_lock(&p->lock);
    while (i < p->n_bad && p->bad[i] != index) i++;
    bool more = i == p->n_bad;
    if (more && !ARRAY_GROW(p->bad, p->n_bad, p->bad_capacity))
        status = base_no_memory(p->spec);
    else if (more)
        p->bad[p->n_bad++] = index;
    if (!status && more && p->together) more = tally_add(p->together, index);
    if (!status) status = count_bad(p, more);
    pthread_mutex_unlock(&p->lock);
    return status;
}

/* ---- samples ---- */

/* The n-th sample to try in place of a bad one. */
static int64_t substitute(const struct pictures *p, int64_t index, int64_t attempt) {
    uint64_t key = random_key((uint64_t)index, base_hash_text("substitute"));
    return (int64_t)(random_uniform(key, 0, (uint64_t)attempt) * (double)p->size);
}

static tri_status draw(struct pictures *p, struct pictures_worker *w, int64_t index, uint64_t key,
                       void *const *out) {
    tri_status status = p->load(p->source, index, &w->file);
    if (!status)
        status = augment_picture(&p->augment, &w->augmenter, (unsigned char *)w->file.bytes,
                                 w->file.n, w->file.name.data, key, out[0]);
    if (!status) *(int64_t *)out[1] = w->file.label;
    return status;
}

int pictures_fill(struct pictures *p, int64_t index, int64_t epoch, uint64_t seed,
                  void *const *out) {
    struct pictures_worker *w = take_worker(p);
    if (!w) return DATA_TOLD;
    uint64_t key = augment_key(seed, epoch, index);
    int64_t from = index;
    tri_status status = draw(p, w, from, key, out);
    /* This ends: each bad sample is counted, and at most max_bad are allowed. */
    for (int64_t attempt = 0; status == PICTURE_BAD && !leave_out(p, from); attempt++) {
        if (attempt == 4 * (p->max_bad + 16)) break; /* nearly all samples are bad */
        from = substitute(p, index, attempt);
        status = draw(p, w, from, key, out);
    }
    put_worker(p, w);
    return status ? DATA_TOLD : 0;
}

tri_status pictures_check(struct pictures *p, int64_t index) {
    struct picture_size size = {0};
    struct picture picture;
    struct pictures_worker *w = take_worker(p);
    if (!w) return TRI_FAILED;
    tri_status status = p->load(p->source, index, &w->file);
    if (!status)
        status = picture_open(w->augmenter.decoder, (unsigned char *)w->file.bytes, w->file.n,
                              w->file.name.data, &size);
    struct picture_part all = {0, 0, size.width, size.height, 1};
    if (!status) status = picture_read(w->augmenter.decoder, &all, &picture);
    put_worker(p, w);
    return status;
}

/* ---- description ---- */

#define SEEN 1000 /* files whose headers are read */

struct seen {
    int32_t width[SEEN], height[SEEN];
    int n, others; /* others: not JPEG */
    size_t bytes;
};

static int by_value(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static void look_at(struct pictures *p, struct pictures_worker *w, struct seen *s) {
    int64_t n = p->size < SEEN ? p->size : SEEN;
    for (int64_t i = 0; i < n; i++) {
        struct picture_size size;
        int64_t index = (int64_t)((double)i / (double)n * (double)p->size);
        if (p->load(p->source, index, &w->file) ||
            picture_open(w->augmenter.decoder, (unsigned char *)w->file.bytes, w->file.n,
                         w->file.name.data, &size))
            continue;
        s->width[s->n] = size.width;
        s->height[s->n++] = size.height;
        s->others += strcmp(picture_format(w->augmenter.decoder), "JPEG") != 0;
        s->bytes += w->file.n;
    }
}

void pictures_describe(struct pictures *p, struct text *out) {
    struct pictures_worker *w = take_worker(p);
    struct seen *s = calloc(1, sizeof *s);
    if (w && s) look_at(p, w, s);
    if (s && s->n) {
        size_t n = (size_t)s->n;
        qsort(s->width, n, sizeof *s->width, by_value);
        qsort(s->height, n, sizeof *s->height, by_value);
        text_add(out, "of %d pictures inspected %d are JPEG, %d PNG; %zu bytes on average\n"
                 "  width  %d to %d, median %d\n  height %d to %d, median %d\n", s->n,
                 s->n - s->others, s->others, s->bytes / n, s->width[0], s->width[n - 1],
                 s->width[n / 2], s->height[0], s->height[n - 1], s->height[n / 2]);
    }
    if (w) put_worker(p, w);
    free(s);
}
