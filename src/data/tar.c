/* SPDX-License-Identifier: Apache-2.0
 * The archives' headers are read once; then each sample is found by its place. */
#include "data/tar.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/pictures.h"
#include "data/tar_scan.h"

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

static tri_status unreadable(const char *path, int error) {
    bool of_machine = error == ENOMEM || error == EMFILE || error == ENFILE;
    return base_fail(of_machine ? TRI_FAILED : PICTURE_BAD, "%s: %s", path, strerror(error));
}

/* n bytes at a place, or as many as there are; -1 with a message. */
static int64_t read_at(int fd, const char *path, uint64_t offset, void *to, size_t n) {
    for (size_t at = 0; at < n;) {
        ssize_t got = pread(fd, (char *)to + at, n - at, (off_t)(offset + at));
        if (!got) return (int64_t)at;
        if (got > 0) at += (size_t)got;
        else if (errno != EINTR) {
            unreadable(path, errno);
            return -1;
        }
    }
    return (int64_t)n;
}

static tri_status load(void *source, int64_t index, struct pictures_file *out) {
    const struct tar *x = source;
    const struct tar_sample *s = &x->sample[index];
    const char *path = x->shards.gl_pathv[s->shard];
    out->name.size = 0;
    text_add(&out->name, "%s, offset %llu", path, (unsigned long long)s->offset);
    if (out->name.failed) return base_no_memory(path);
    out->label = s->label;
    tri_status status = pictures_room(out, s->size);
    if (status) return status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return unreadable(path, errno);
    int64_t got = read_at(fd, path, s->offset, out->bytes, s->size);
    close(fd);
    if (got < 0) return PICTURE_BAD;
    if (got == (int64_t)s->size) return TRI_OK;
    return base_fail(PICTURE_BAD, "%s: truncated since it was opened", out->name.data);
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

#define WINDOW 8192 /* what is read at once: a header, and most contents that are no pictures */

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

/* The sample whose entries are coming. */
struct pending {
    char key[TAR_NAME];
    struct tar_sample sample;
    bool picture, label;
};

#define LABEL_BYTES 65536

static bool label_of_json(const char *text, size_t n, int64_t *label) {
    static const char *const names[] = {"label", "class", "cls"};
    json_t *all = json_loadb(text, n, 0, NULL);
    bool found = false;
    for (size_t i = 0; i < COUNT(names) && !found; i++) {
        json_t *value = json_object_get(all, names[i]);
        found = json_is_integer(value);
        if (found) *label = json_integer_value(value);
    }
    json_decref(all);
    return found;
}

static bool label_of_text(const char *text, int64_t *label) {
    char *end;
    errno = 0;
    *label = strtoll(text, &end, 10);
    if (end == text || errno) return false;
    return !end[strspn(end, " \t\r\n")];
}

static tri_status read_label(struct tar_scan *scan, const struct tar_entry *e, bool json,
                             struct pending *p) {
    char text[LABEL_BYTES + 1];
    if (e->size > LABEL_BYTES)
        return base_fail(PICTURE_BAD, "%s: %s is too long for a label", scan->name, e->name);
    int64_t n = scan->read(scan->user, e->offset, text, (size_t)e->size);
    if (n < 0) return PICTURE_BAD;
    text[n] = 0;
    p->label = json ? label_of_json(text, (size_t)n, &p->sample.label)
                    : label_of_text(text, &p->sample.label);
    if (json && !p->label) return TRI_OK; /* it may tell other things */
    if (p->label && p->sample.label >= 0 && p->sample.label < INT32_MAX) return TRI_OK;
    p->label = false;
    return base_fail(PICTURE_BAD, "%s: %s has no class: a number from 0 up", scan->name, e->name);
}

/* What has come of a sample is one, or is told. */
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
    static const char *const kinds[] = {"jpg", "jpeg", "png", "cls", "json"};
    const char *slash = strrchr(e->name, '/'), *base = slash ? slash + 1 : e->name;
    const char *ending = strchr(base, '.');
    size_t kind = 0, key = ending ? (size_t)(ending - e->name) : 0;
    while (ending && kind < COUNT(kinds) && strcasecmp(ending + 1, kinds[kind])) kind++;
    if (!ending || kind == COUNT(kinds)) return TRI_OK;
    tri_status status = TRI_OK;
    if (strlen(p->key) != key || memcmp(p->key, e->name, key)) {
        status = finish(x, scan->name, p);
        memcpy(p->key, e->name, key);
    }
    if (kind >= 3) {
        if (!status && !p->label && read_label(scan, e, kind == 4, p))
            status = pictures_other_bad(&x->pictures);
        return status;
    }
    p->picture = e->size <= UINT32_MAX;
    p->sample.offset = e->offset;
    p->sample.size = (uint32_t)e->size;
    return status;
}

/* An archive that ends too early, or is none, is told; what stands before that counts. */
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
    s.fd = open(s.path, O_RDONLY | O_CLOEXEC);
    if (s.fd < 0 || fstat(s.fd, &st)) {
        tri_status status = unreadable(s.path, errno);
        if (s.fd >= 0) close(s.fd);
        return status == PICTURE_BAD ? pictures_other_bad(&x->pictures) : status;
    }
    tri_status status = scan_open(x, &s, number, (uint64_t)st.st_size);
    close(s.fd);
    return status;
}

/* ---- opening ---- */

static tri_status open_tar(struct tar *x, const struct data_source *s,
                           const struct augment_settings *a, bool train, int64_t max_bad) {
    struct augment augment;
    tri_status status = augment_make(s->spec, a, train, &augment);
    if (!status) status = pictures_init(&x->pictures, s->spec, &augment, 0, max_bad);
    int code = status ? 0 : glob(s->rest, 0, NULL, &x->shards);
    if (code == GLOB_NOSPACE) status = base_no_memory(s->spec);
    if (!status && (code || !x->shards.gl_pathc))
        status = base_fail(TRI_FAILED, "data '%s': no file fits the pattern %s", s->spec, s->rest);
    for (size_t i = 0; i < x->shards.gl_pathc && !status; i++) status = scan_shard(x, (uint32_t)i);
    if (!status && !x->n)
        status = base_fail(TRI_FAILED, "data '%s': no samples in %zu archives: entries KEY.jpg with "
                           "KEY.cls or KEY.json", s->spec, x->shards.gl_pathc);
    x->pictures.size = (int64_t)x->n;
    x->pictures.source = x;
    x->pictures.load = load;
    return status;
}

tri_data *tar_open(const struct data_source *s) {
    struct augment_settings a = AUGMENT_DEFAULTS;
    int64_t max_bad = PICTURES_MAX_BAD;
    const struct data_option known[] = {AUGMENT_OPTIONS(&a), {"max-bad", DATA_INT, &max_bad}};
    if (data_parse_options(s->spec, s->options, known, (int)COUNT(known))) return NULL;
    struct tar *x = calloc(1, sizeof *x);
    if (!x || open_tar(x, s, &a, true, max_bad)) {
        if (x) free_tar(x);
        else base_no_memory(s->spec);
        return NULL;
    }
    const tri_field fields[] = {{"image", TRI_F32, TRI_SHAPE(3, a.size, a.size)},
                                {"label", TRI_I64, TRI_SCALAR}};
    tri_data *d = data_make(s->spec, x->pictures.size, fields, (int)COUNT(fields), fill, x, false, free_tar);
    if (d)
        d->about = (struct data_about){.classes = x->classes, .label = label_of, .check = check,
                                       .describe = describe};
    return d;
}
