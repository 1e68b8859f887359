/* SPDX-License-Identifier: Apache-2.0
 * DIR/SPLIT/CLASS/picture, or DIR/CLASS/picture where there is no folder of that split. */
#include "data/images.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/folder.h"
#include "data/pictures.h"

#define LIST_FROM 10000 /* pictures; fewer are found quickly without a list */

struct images {
    struct pictures pictures;
    struct folder folder;
    char **classes; /* sorted */
    size_t n_classes;
    int32_t *label; /* of each of the folder's places; -1: none */
};

static void free_images(void *user) {
    struct images *x = user;
    pictures_close(&x->pictures);
    folder_free(&x->folder);
    free(x->classes);
    free(x->label);
    free(x);
}

/* ---- a sample ---- */

/* What the machine lacks, not the file. */
static bool of_machine(int error) {
    return error == ENOMEM || error == EMFILE || error == ENFILE;
}

static tri_status unreadable(const char *path) {
    int error = errno;
    return base_fail(of_machine(error) ? TRI_FAILED : PICTURE_BAD, "%s: %s", path, strerror(error));
}

static tri_status read_all(int fd, struct pictures_file *out) {
    struct stat st;
    const char *path = out->name.data;
    if (fstat(fd, &st)) return unreadable(path);
    if (!S_ISREG(st.st_mode)) return base_fail(PICTURE_BAD, "%s: not a regular file", path);
    tri_status status = pictures_room(out, (size_t)st.st_size);
    for (size_t at = 0; at < out->n && !status;) {
        ssize_t n = read(fd, out->bytes + at, out->n - at);
        if (n < 0 && errno != EINTR) status = unreadable(path);
        if (!n) status = base_fail(PICTURE_BAD, "%s: read stopped at offset %zu of %zu", path, at, out->n);
        if (n > 0) at += (size_t)n;
    }
    return status;
}

static tri_status load(void *source, int64_t index, struct pictures_file *out) {
    const struct images *x = source;
    out->name.size = 0;
    folder_path(&x->folder, index, &out->name);
    if (out->name.failed) return base_no_memory(x->folder.root);
    out->label = x->label[folder_place_of(&x->folder, index)];
    int fd = open(out->name.data, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return unreadable(out->name.data);
    tri_status status = read_all(fd, out);
    close(fd);
    return status;
}

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    struct images *x = user;
    return pictures_fill(&x->pictures, index, epoch, seed, out);
}

static const char *class_name(const void *user, int64_t label) {
    const struct images *x = user;
    return x->classes[label];
}

static int64_t label_of(const void *user, int64_t index) {
    const struct images *x = user;
    return x->label[folder_place_of(&x->folder, index)];
}

static tri_status check(void *user, int64_t index) {
    struct images *x = user;
    return pictures_check(&x->pictures, index);
}

/* ---- opening ---- */

static bool is_folder(const char *path) {
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A place's class is the first folder on its path. */
static tri_status find_label(struct images *x, const char *path, int32_t *label) {
    size_t length = strcspn(path, "/");
    *label = -1;
    if (!length) return TRI_OK;
    char *first = strndup(path, length);
    if (!first) return base_no_memory(path);
    char **found = bsearch(&first, x->classes, x->n_classes, sizeof *x->classes, by_text);
    free(first);
    if (!found)
        return base_fail(TRI_USAGE, "%s/%.*s: no class of that name in the folder train beside it",
                         x->folder.root, (int)length, path);
    *label = (int32_t)(found - x->classes);
    return TRI_OK;
}

static tri_status set_labels(struct images *x) {
    struct folder *f = &x->folder;
    tri_status status = TRI_OK;
    x->label = calloc(f->n_places, sizeof *x->label);
    if (!x->label) return base_no_memory(f->root);
    for (size_t i = 0; i < f->n_places && !status; i++)
        status = find_label(x, folder_text(f, f->place[i].path), &x->label[i]);
    return status;
}

struct images_settings {
    const char *split; /* null: train, if there is such a folder */
    int64_t max_bad;
    struct augment_settings augment;
};

/* The folder of the split, and the one whose folders name the classes. */
static tri_status find_root(const struct data_source *s, const char *split, struct text *root,
                            struct text *classes) {
    text_add(root, "%s/%s", s->rest, split ? split : "train");
    text_add(classes, "%s/train", s->rest);
    if (root->failed || classes->failed) return base_no_memory(s->spec);
    bool with_classes = is_folder(classes->data);
    if (!is_folder(root->data)) {
        if (!is_folder(s->rest))
            return base_fail(TRI_FAILED, "data '%s': %s: there is no such directory", s->spec, s->rest);
        if (with_classes || (split && strcmp(split, "train")))
            return base_fail(TRI_FAILED, "data '%s': there is no folder %s", s->spec, root->data);
        root->size = 0;
        text_add(root, "%s", s->rest);
    }
    if (with_classes) return TRI_OK;
    classes->size = 0;
    text_add(classes, "%s", root->data);
    return root->failed || classes->failed ? base_no_memory(s->spec) : TRI_OK;
}

static tri_status check_classes(struct images *x, const struct data_source *s) {
    struct folder *f = &x->folder;
    tri_status status = TRI_OK;
    bool *seen = calloc(x->n_classes + 1, sizeof *seen);
    if (!seen) return base_no_memory(s->spec);
    for (size_t i = 0; i < f->n_places; i++)
        if (x->label[i] >= 0 && f->place[i].end > (i ? f->place[i - 1].end : 0))
            seen[x->label[i]] = true;
    for (size_t c = 0; c < x->n_classes && !status; c++) {
        if (seen[c]) continue;
        base_fail(PICTURE_BAD, "%s: the class %s has no pictures", f->root, x->classes[c]);
        status = pictures_other_bad(&x->pictures);
    }
    free(seen);
    return status;
}

static tri_status find_pictures(struct images *x, const struct data_source *s, const char *split) {
    struct text root = {0}, classes = {0};
    bool flat;
    tri_status status = find_root(s, split, &root, &classes);
    if (!status) status = folder_list(classes.data, &x->classes, &x->n_classes, &flat);
    if (!status) status = folder_scan(&x->folder, root.data);
    if (!status && x->n_classes < 1)
        status = base_fail(TRI_USAGE, "data '%s': %s has no folders; each class has one of its own",
                           s->spec, classes.data);
    if (!status) status = set_labels(x);
    if (!status && !x->folder.n_pictures)
        status = base_fail(TRI_FAILED, "data '%s': %s has no pictures: files ending in .jpg, .jpeg or "
                           ".png", s->spec, root.data);
    text_free(&root);
    text_free(&classes);
    return status;
}

static tri_status open_images(struct images *x, const struct data_source *s,
                              const struct images_settings *o) {
    struct augment augment;
    bool train = !o->split || !strcmp(o->split, "train");
    tri_status status = augment_make(s->spec, &o->augment, train, &augment);
    if (!status) status = find_pictures(x, s, o->split);
    if (!status)
        status = pictures_init(&x->pictures, s->spec, &augment, (int64_t)x->folder.n_pictures,
                               o->max_bad);
    x->pictures.source = x;
    x->pictures.load = load;
    return status ? status : check_classes(x, s);
}

tri_data *images_open(const struct data_source *s) {
    struct images_settings o = {.max_bad = PICTURES_MAX_BAD, .augment = AUGMENT_DEFAULTS};
    const struct data_option known[] = {{"split", DATA_TEXT, &o.split},
                                        AUGMENT_OPTIONS(&o.augment),
                                        {"max-bad", DATA_INT, &o.max_bad}};
    if (data_parse_options(s->spec, s->options, known, (int)COUNT(known))) return NULL;
    struct images *x = calloc(1, sizeof *x);
    if (!x || open_images(x, s, &o)) {
        if (x) free_images(x);
        else base_no_memory(s->spec);
        return NULL;
    }
    const tri_field fields[] = {
        {"image", TRI_F32, TRI_SHAPE(3, o.augment.size, o.augment.size)},
        {"label", TRI_I64, TRI_SCALAR},
    };
    tri_data *d = data_make(s->spec, x->pictures.size, fields, (int)COUNT(fields), fill, x, false,
                            free_images);
    if (d)
        d->about = (struct data_about){.classes = (int64_t)x->n_classes, .class_name = class_name,
                                       .label = label_of, .check = check};
    return d;
}
