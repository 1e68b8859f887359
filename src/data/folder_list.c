/* SPDX-License-Identifier: Apache-2.0
 * Lists of pictures in files, in this machine's byte order: a head, the root's path, places,
 * pictures, names. The head contains a hash of the rest. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "data/folder.h"
#include "io/outfile.h"

static const char magic[16] = "trireme folder1";

struct head {
    char magic[16];
    uint64_t hash;
    uint64_t root, places, pictures, names; /* bytes, numbers, bytes */
};

struct stored_place {
    int64_t seconds, nano, end;
    uint64_t path;
};

static uint64_t hash_of(const struct head *h, const void *rest, size_t bytes) {
    return base_hash(rest, bytes, base_hash(&h->root, 4 * sizeof h->root, 1));
}

/* ---- reading ---- */

struct reader {
    const char *at;
    size_t left;
};

static const void *next(struct reader *r, uint64_t count, size_t each) {
    const char *p = r->at;
    if (count > r->left / each) return NULL;
    r->at += count * each;
    r->left -= count * each;
    return p;
}

static bool fill_places(struct folder *f, const void *data, size_t n, size_t pictures) {
    int64_t last = 0;
    f->place = calloc(n, sizeof *f->place);
    for (size_t i = 0; f->place && i < n; i++) {
        struct stored_place s;
        memcpy(&s, (const char *)data + i * sizeof s, sizeof s);
        if (s.path >= f->names.size || s.end < last || s.end > (int64_t)pictures) return false;
        f->place[i] = (struct folder_place){(uint32_t)s.path, s.seconds, s.nano, last = s.end};
    }
    f->n_places = f->places_capacity = n;
    return f->place && last == (int64_t)pictures;
}

static bool fill_pictures(struct folder *f, const void *data, size_t n) {
    f->picture = malloc(n * sizeof *f->picture + 1);
    if (!f->picture) return false;
    memcpy(f->picture, data, n * sizeof *f->picture);
    f->n_pictures = f->pictures_capacity = n;
    for (size_t i = 0; i < n; i++)
        if (f->picture[i] >= f->names.size) return false;
    return true;
}

static bool parse(struct folder *f, const char *root, const char *data, size_t bytes) {
    struct reader r = {data, bytes};
    struct head h;
    const void *p = next(&r, 1, sizeof h);
    if (!p) return false;
    memcpy(&h, p, sizeof h);
    if (memcmp(h.magic, magic, sizeof magic) || h.hash != hash_of(&h, r.at, r.left)) return false;
    const char *path = next(&r, h.root, 1);
    const void *places = next(&r, h.places, sizeof(struct stored_place));
    const void *pictures = next(&r, h.pictures, sizeof *f->picture);
    const char *names = next(&r, h.names, 1);
    if (!path || !places || !pictures || !names || r.left || !h.places || !h.names) return false;
    if (h.root != strlen(root) || memcmp(path, root, h.root) || names[h.names - 1]) return false;
    text_add_bytes(&f->names, names, h.names);
    return !f->names.failed && fill_places(f, places, h.places, h.pictures) &&
           fill_pictures(f, pictures, h.pictures);
}

static bool unchanged(const struct folder *f) {
    struct text path = {0};
    struct stat st;
    bool same = true;
    for (size_t i = 0; i < f->n_places && same; i++) {
        path.size = 0;
        text_add(&path, "%s/%s", f->root, folder_text(f, f->place[i].path));
        same = !path.failed && !stat(path.data, &st) && st.st_mtim.tv_sec == f->place[i].seconds &&
               st.st_mtim.tv_nsec == f->place[i].nano;
    }
    text_free(&path);
    return same;
}

bool folder_load(struct folder *f, const char *root, const char *file) {
    char *data = NULL, whole[PATH_MAX];
    size_t bytes;
    *f = (struct folder){.root = strdup(root)};
    bool good = f->root && realpath(root, whole) && !access(file, R_OK) &&
                !base_read_file(file, &data, &bytes) && parse(f, whole, data, bytes) &&
                unchanged(f);
    free(data);
    if (!good) folder_free(f);
    return good;
}

/* ---- writing ---- */

static bool settled(const struct folder *f) {
    time_t now = time(NULL);
    for (size_t i = 0; i < f->n_places; i++)
        if (f->place[i].seconds + 2 > now) return false;
    return true;
}

static bool serialise(const struct folder *f, const char *root, struct text *out) {
    struct head h = {.root = strlen(root), .places = f->n_places, .pictures = f->n_pictures,
                     .names = f->names.size};
    memcpy(h.magic, magic, sizeof magic);
    text_add_bytes(out, &h, sizeof h);
    text_add_bytes(out, root, h.root);
    for (size_t i = 0; i < f->n_places; i++) {
        const struct folder_place *p = &f->place[i];
        struct stored_place s = {p->seconds, p->nano, p->end, p->path};
        text_add_bytes(out, &s, sizeof s);
    }
    text_add_bytes(out, f->picture, f->n_pictures * sizeof *f->picture);
    text_add_bytes(out, f->names.data, f->names.size);
    if (out->failed) return false;
    h.hash = hash_of(&h, out->data + sizeof h, out->size - sizeof h);
    memcpy(out->data, &h, sizeof h);
    return true;
}

static tri_status write_list(const struct text *data, const char *file) {
    struct outfile f;
    tri_status status = outfile_replace(&f, file, NULL);
    if (!status) status = outfile_write(&f, data->data, data->size);
    return outfile_close(&f, status, NULL);
}

tri_status folder_save(const struct folder *f, const char *file) {
    struct text data = {0};
    if (!settled(f)) return TRI_OK;
    char whole[PATH_MAX];
    if (!realpath(f->root, whole)) return base_fail(TRI_FAILED, "%s: %s", f->root, strerror(errno));
    tri_status status =
        serialise(f, whole, &data) ? write_list(&data, file) : base_no_memory(file);
    text_free(&data);
    return status;
}

bool folder_default_file(const char *root, struct text *out) {
    char whole[PATH_MAX];
    if (!realpath(root, whole) || !base_cache(out)) return false;
    text_add(out, "/%016llx.pictures", (unsigned long long)base_hash_text(whole));
    return !out->failed;
}
