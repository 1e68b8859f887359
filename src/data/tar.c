/* SPDX-License-Identifier: Apache-2.0
 * The headers of the archives are read once; then each sample is read by its offset. */
#include "data/source.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/pictures.h"
#include "data/tar_pipe.h"
#include "data/tar_sample.h"

struct tar_sample {
    uint64_t offset;
    uint32_t size, shard;
    int64_t label;
};

struct tar {
    struct pictures pictures;
    glob_t shards;
    struct tar_sample *sample;
    size_t n, capacity;
    int64_t classes;
};

static void free_tar(void *user) {
    struct tar *x = user;
    pictures_close(&x->pictures);
    globfree(&x->shards);
    free(x->sample);
    free(x);
}

/* ---- a sample ---- */

/* Reads n bytes at an offset, or as many as there are; -1 with a message. */
static int64_t read_at(int fd, const char *path, uint64_t offset, void *to, size_t n) {
    for (size_t at = 0; at < n;) {
        ssize_t got = pread(fd, (char *)to + at, n - at, (off_t)(offset + at));
        if (!got) return (int64_t)at;
        if (got > 0) at += (size_t)got;
        else if (errno != EINTR) {
            base_fail(PICTURE_BAD, "%s: %s", path, strerror(errno));
            return -1;
        }
    }
    return (int64_t)n;
}

static tri_status load(void *source, int64_t index, struct data_file *out) {
    const struct tar *x = source;
    const struct tar_sample *s = &x->sample[index];
    const char *path = x->shards.gl_pathv[s->shard];
    out->name.size = 0;
    text_add(&out->name, "%s, offset %llu", path, (unsigned long long)s->offset);
    if (out->name.failed) return base_no_memory(path);
    out->label = s->label;
    tri_status status = pictures_reserve(out, s->size);
    if (status) return status;
    int fd = base_open(path, O_RDONLY, NULL);
    if (fd < 0) return pictures_unreadable(errno);
    int64_t got = read_at(fd, path, s->offset, out->bytes, s->size);
    close(fd);
    if (got < 0) return PICTURE_BAD;
    if (got == (int64_t)s->size) return TRI_OK;
    return base_fail(PICTURE_BAD, "%s: truncated after it was opened", out->name.data);
}

static int64_t file_bytes(void *user, int64_t index) {
    return ((const struct tar *)user)->sample[index].size;
}

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    struct tar *x = user;
    return pictures_fill(&x->pictures, index, epoch, seed, out);
}

static int64_t label_of(const void *user, int64_t index) {
    return ((const struct tar *)user)->sample[index].label;
}

static tri_status check(void *user, int64_t index) {
    struct tar *x = user;
    return pictures_check(&x->pictures, index);
}

static void describe(void *user, struct text *out) {
    struct tar *x = user;
    text_add(out, "%zu archives\n", x->shards.gl_pathc);
    pictures_describe(&x->pictures, out);
}

/* ---- reading the headers ---- */

#define WINDOW 8192 /* bytes per read: a header, and most files that are not pictures */

struct shard {
    int fd;
    const char *path;
    uint64_t from; /* of the window */
    size_t n;
    char window[WINDOW];
};

static int64_t read_shard(void *user, uint64_t offset, void *to, size_t n) {
    struct shard *s = user;
    if (n > WINDOW) return read_at(s->fd, s->path, offset, to, n);
    if (offset < s->from || offset + n > s->from + s->n) {
        int64_t got = read_at(s->fd, s->path, offset, s->window, WINDOW);
        s->from = offset;
        s->n = got > 0 ? (size_t)got : 0;
        if (got < 0) return -1;
    }
    size_t have = s->from + s->n - offset;
    if (have > n) have = n;
    memcpy(to, s->window + (offset - s->from), have);
    return (int64_t)have;
}

/* The sample whose entries are being read. */
struct pending {
    char key[TAR_NAME];
    struct tar_sample sample;
    bool picture, label;
};

/* Adds the sample if it is complete; else reports it. */
static tri_status finish(struct tar *x, const char *path, struct pending *p) {
    bool whole = p->picture && p->label, empty = !p->picture && !p->label;
    tri_status status = TRI_OK;
    if (!whole && !empty) {
        base_fail(PICTURE_BAD, "%s: %s has no %s", path, p->key, p->picture ? "class" : "picture");
        status = pictures_other_bad(&x->pictures);
    }
    if (whole && !ARRAY_GROW(x->sample, x->n, x->capacity)) status = base_no_memory(path);
    else if (whole) {
        x->sample[x->n++] = p->sample;
        if (p->sample.label >= x->classes) x->classes = p->sample.label + 1;
    }
    *p = (struct pending){.sample.shard = p->sample.shard};
    return status;
}

static tri_status take_entry(struct tar *x, struct tar_scan *scan, const struct tar_entry *e,
                             struct pending *p) {
    size_t key;
    enum tar_kind kind = tar_kind_of(e->name, &key);
    if (kind == TAR_OTHER) return TRI_OK;
    tri_status status = TRI_OK;
    if (strlen(p->key) != key || memcmp(p->key, e->name, key)) {
        status = finish(x, scan->name, p);
        memcpy(p->key, e->name, key);
    }
    if (kind != TAR_PICTURE) {
        if (!status && !p->label && tar_read_class(scan, e, kind, &p->sample.label, &p->label))
            status = pictures_other_bad(&x->pictures);
        return status;
    }
    p->picture = e->size <= UINT32_MAX;
    p->sample.offset = e->offset;
    p->sample.size = (uint32_t)e->size;
    return status;
}

/* Reports an archive that is truncated or invalid; entries before that count. */
static tri_status scan_open(struct tar *x, struct shard *s, uint32_t number, uint64_t size) {
    struct tar_scan scan = {read_shard, s, size, s->path, 0};
    struct pending p = {.sample.shard = number};
    struct tar_entry e;
    tri_status status = TRI_OK, end;
    while (!status && tar_next(&scan, &e, &end)) status = take_entry(x, &scan, &e, &p);
    if (!status && end) status = pictures_other_bad(&x->pictures);
    if (!status) status = finish(x, s->path, &p);
    return status;
}

static tri_status scan_shard(struct tar *x, uint32_t number) {
    struct shard s = {.path = x->shards.gl_pathv[number]};
    struct stat st;
    s.fd = base_open(s.path, O_RDONLY, &st);
    if (s.fd < 0) {
        tri_status status = pictures_unreadable(errno);
        return status == PICTURE_BAD ? pictures_other_bad(&x->pictures) : status;
    }
    tri_status status = scan_open(x, &s, number, (uint64_t)st.st_size);
    close(s.fd);
    return status;
}

/* ---- opening ---- */

/* Parses "{000..127}" at p: both ends, the number of digits, what follows. */
static bool range_at(const char *p, long long *from, long long *to, int *digits,
                     const char **after) {
    char *end;
    if (*p != '{' || !isdigit((unsigned char)p[1])) return false;
    *from = strtoll(p + 1, &end, 10);
    *digits = (int)(end - p - 1);
    if (strncmp(end, "..", 2) || !isdigit((unsigned char)end[2])) return false;
    *to = strtoll(end + 2, &end, 10);
    *after = end + 1;
    return *end == '}';
}

#define MOST_SHARDS 1000000

static tri_status find_shards(struct tar *x, const char *spec, const char *pattern) {
    int flags = x->shards.gl_pathc ? GLOB_APPEND : 0;
    int code = glob(pattern, flags, NULL, &x->shards);
    if (code == GLOB_NOSPACE) return base_no_memory(spec);
    if (!code && x->shards.gl_pathc) return TRI_OK;
    return base_fail(TRI_FAILED, "data '%s': no file matches the pattern %s", spec, pattern);
}

/* Expands braces to one pattern after the other. */
static tri_status expand(struct tar *x, const char *spec, const char *pattern) {
    long long from, to;
    int digits;
    const char *at = pattern, *after;
    while (*at && !range_at(at, &from, &to, &digits, &after)) at++;
    if (!*at) return find_shards(x, spec, pattern);
    if (from > to || to - from >= MOST_SHARDS)
        return base_fail(TRI_USAGE, "data '%s': the range from %lld to %lld", spec, from, to);
    struct text one = {0};
    tri_status status = TRI_OK;
    for (; from <= to && !status; from++) {
        one.size = 0;
        text_add(&one, "%.*s%0*lld%s", (int)(at - pattern), pattern, digits, from, after);
        status = one.failed ? base_no_memory(spec) : expand(x, spec, one.data);
    }
    text_free(&one);
    return status;
}

static tri_status open_tar(struct tar *x, const struct data_spec *s,
                           const struct augment_settings *a, bool train, int64_t max_bad) {
    struct augment augment;
    tri_status status = augment_make(s->spec, a, train, &augment);
    if (!status) status = pictures_init(&x->pictures, s->spec, &augment, 0, max_bad);
    if (!status) status = expand(x, s->spec, s->rest);
    for (size_t i = 0; i < x->shards.gl_pathc && !status; i++) status = scan_shard(x, (uint32_t)i);
    if (!status && !x->n)
        status = base_fail(TRI_FAILED,
                           "data '%s': no samples in %zu archives: entries KEY.jpg with "
                           "KEY.cls or KEY.json",
                           s->spec, x->shards.gl_pathc);
    x->pictures.size = (int64_t)x->n;
    x->pictures.source = x;
    x->pictures.load = load;
    return status;
}

/* Fields: "image" f32[3,size,size], "label" i64[]. */
static tri_data *tar_open(const struct data_spec *s) {
    if (tar_is_pipe(s->rest)) return tar_open_pipe(s);
    struct augment_settings a = AUGMENT_DEFAULTS;
    int64_t max_bad = PICTURES_MAX_BAD;
    const struct data_option known[] = {AUGMENT_OPTIONS(&a), {"max-bad", DATA_INT, &max_bad}};
    if (data_parse_options(s, known, (int)COUNT(known))) return NULL;
    struct tar *x = calloc(1, sizeof *x);
    if (!x || open_tar(x, s, &a, true, max_bad)) {
        if (x) free_tar(x);
        else base_no_memory(s->spec);
        return NULL;
    }
    const tri_field fields[] = {{"image", TRI_F32, TRI_SHAPE(3, a.size, a.size)},
                                {"label", TRI_I64, TRI_SCALAR}};
    tri_data *d = data_make(s->spec, x->pictures.size, fields, (int)COUNT(fields), fill, x, false,
                            free_tar);
    if (d)
        d->about = (struct data_about){.classes = x->classes,
                                       .label = label_of,
                                       .augment = &x->pictures.augment,
                                       .pictures = &x->pictures,
                                       .check = check,
                                       .describe = describe,
                                       .file = load,
                                       .file_bytes = file_bytes,
                                       .held = x->capacity * sizeof *x->sample};
    return data_prepared(d, known, (int)COUNT(known));
}

const struct data_source source_tar = {
    "tar", "pattern",
    "tar:PATTERN[,size=N][,augment=random|centre][,max-bad=N]..., or "
    "tar:-,samples=N[,window=N]..., tar:pipe:COMMAND,samples=N...",
    tar_open, false};
