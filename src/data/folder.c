/* SPDX-License-Identifier: Apache-2.0 */
#include "data/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

void folder_free(struct folder *f) {
    free(f->root);
    text_free(&f->names);
    free(f->place);
    free(f->picture);
    *f = (struct folder){0};
}

/* ---- a directory's names ---- */

struct entry {
    char *name;
    bool folder;
};

struct listing {
    struct entry *entry;
    size_t n, capacity;
};

static bool is_picture(const char *name) {
    static const char *const endings[] = {".jpg", ".jpeg", ".png"};
    const char *ending = strrchr(name, '.');
    for (size_t i = 0; ending && i < COUNT(endings); i++)
        if (!strcasecmp(ending, endings[i])) return true;
    return false;
}

/* Follows symlinks. */
static bool is_folder(const char *path, const struct dirent *e) {
    struct stat st;
    struct text whole = {0};
    if (e->d_type != DT_UNKNOWN && e->d_type != DT_LNK) return e->d_type == DT_DIR;
    text_add(&whole, "%s/%s", path, e->d_name);
    bool yes = !whole.failed && !stat(whole.data, &st) && S_ISDIR(st.st_mode);
    text_free(&whole);
    return yes;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static void free_listing(struct listing *l) {
    for (size_t i = 0; i < l->n; i++) free(l->entry[i].name);
    free(l->entry);
    *l = (struct listing){0};
}

static tri_status add_entry(struct listing *l, const char *path, const struct dirent *e) {
    bool picture = is_picture(e->d_name);
    if (*e->d_name == '.') return TRI_OK;
    bool folder = (!picture || e->d_type != DT_REG) && is_folder(path, e);
    if (!folder && !picture) return TRI_OK;
    char *name = strdup(e->d_name);
    if (!name || !ARRAY_GROW(l->entry, l->n, l->capacity)) {
        free(name);
        return base_no_memory(path);
    }
    l->entry[l->n++] = (struct entry){name, folder};
    return TRI_OK;
}

/* Folders and pictures, sorted by name. */
static tri_status list(const char *path, struct listing *l, struct stat *st) {
    DIR *d = opendir(path);
    if (!d) return base_fail(TRI_FAILED, "%s: %s", path, strerror(errno));
    tri_status status = TRI_OK;
    if (fstat(dirfd(d), st)) status = base_fail(TRI_FAILED, "%s: %s", path, strerror(errno));
    while (!status) {
        errno = 0;
        const struct dirent *e = readdir(d);
        if (e) status = add_entry(l, path, e);
        else if (errno) status = base_fail(TRI_FAILED, "%s: %s", path, strerror(errno));
        if (!e) break;
    }
    closedir(d);
    if (l->n) qsort(l->entry, l->n, sizeof *l->entry, by_name);
    return status;
}

/* Pointers, followed by the names; returns the number of names. */
static size_t put_folders(const struct listing *l, char **out) {
    size_t n = 0, k = 0;
    for (size_t i = 0; i < l->n; i++) n += l->entry[i].folder;
    char *text = (char *)(out + n);
    for (size_t i = 0; i < l->n; i++) {
        if (!l->entry[i].folder) continue;
        out[k++] = text;
        text = stpcpy(text, l->entry[i].name) + 1;
    }
    return n;
}

tri_status folder_list(const char *path, char ***out, size_t *n) {
    struct listing l = {0};
    struct stat st;
    size_t bytes = 0;
    *out = NULL;
    *n = 0;
    tri_status status = list(path, &l, &st);
    for (size_t i = 0; i < l.n; i++)
        if (l.entry[i].folder) bytes += sizeof(char *) + strlen(l.entry[i].name) + 1;
    if (!status && !(*out = malloc(bytes + 1))) status = base_no_memory(path);
    if (!status) *n = put_folders(&l, *out);
    free_listing(&l);
    return status;
}

/* ---- everything below a root ---- */

static tri_status add_text(struct folder *f, const char *text, uint32_t *at) {
    if (f->names.size > UINT32_MAX - 4096)
        return base_fail(TRI_FAILED, "%s: too many names", f->root);
    *at = (uint32_t)f->names.size;
    text_add_bytes(&f->names, text, strlen(text) + 1);
    return f->names.failed ? base_no_memory(f->root) : TRI_OK;
}

static tri_status add_place(struct folder *f, const char *path, const struct stat *st,
                            const struct listing *l) {
    struct folder_place place = {.seconds = st->st_mtim.tv_sec, .nano = st->st_mtim.tv_nsec};
    tri_status status = add_text(f, path, &place.path);
    for (size_t i = 0; i < l->n && !status; i++) {
        uint32_t at = 0;
        if (l->entry[i].folder) continue;
        status = add_text(f, l->entry[i].name, &at);
        if (!status && !ARRAY_GROW(f->picture, f->n_pictures, f->pictures_capacity))
            status = base_no_memory(f->root);
        if (!status) f->picture[f->n_pictures++] = at;
    }
    place.end = (int64_t)f->n_pictures;
    if (!status && !ARRAY_GROW(f->place, f->n_places, f->places_capacity))
        status = base_no_memory(f->root);
    if (!status) f->place[f->n_places++] = place;
    return status;
}

static tri_status scan(struct folder *f, const char *path, int depth) {
    struct listing l = {0};
    struct text whole = {0};
    struct stat st;
    text_add(&whole, "%s%s%s", f->root, *path ? "/" : "", path);
    tri_status status = whole.failed ? base_no_memory(f->root) : list(whole.data, &l, &st);
    if (!status) status = add_place(f, path, &st, &l);
    for (size_t i = 0; i < l.n && !status; i++) {
        struct text below = {0};
        if (!l.entry[i].folder) continue;
        text_add(&below, "%s%s%s", path, *path ? "/" : "", l.entry[i].name);
        if (below.failed) status = base_no_memory(f->root);
        else if (depth == FOLDER_DEPTH)
            status = base_fail(TRI_FAILED, "%s/%s: more than %d levels of folders", f->root,
                               below.data, FOLDER_DEPTH);
        else status = scan(f, below.data, depth + 1);
        text_free(&below);
    }
    text_free(&whole);
    free_listing(&l);
    return status;
}

tri_status folder_scan(struct folder *f, const char *root) {
    *f = (struct folder){.root = strdup(root)};
    if (!f->root) return base_no_memory(root);
    return scan(f, "", 0);
}

size_t folder_place_of(const struct folder *f, int64_t picture) {
    size_t low = 0, high = f->n_places - 1;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (f->place[middle].end > picture) high = middle;
        else low = middle + 1;
    }
    return low;
}

const char *folder_text(const struct folder *f, uint32_t at) { return f->names.data + at; }

void folder_path(const struct folder *f, int64_t picture, struct text *out) {
    const char *place = folder_text(f, f->place[folder_place_of(f, picture)].path);
    text_add(out, "%s/%s%s%s", f->root, place, *place ? "/" : "",
             folder_text(f, f->picture[picture]));
}
