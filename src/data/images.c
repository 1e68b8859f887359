/* SPDX-License-Identifier: Apache-2.0
 * DIR/SPLIT/CLASS/picture, or DIR/CLASS/picture if there is no folder of that split. */
#include "data/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/folder.h"
#include "data/labels.h"
#include "data/pictures.h"

#define LIST_FROM 10000 /* pictures; fewer are found fast without a list */

struct images {
    struct pictures pictures;
    struct folder folder;
    char **classes; /* sorted */
    size_t n_classes;
    int64_t first; /* index of the first picture that is a sample; those before it have no class */
    int32_t *label; /* of each place of the folder, -1: none; or, if read from a file, */
    bool each;      /* of each picture */
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

static int64_t label_of(const void *user, int64_t index) {
    const struct images *x = user;
    int64_t picture = x->first + index;
    return x->label[x->each ? (size_t)picture : folder_place_of(&x->folder, picture)];
}

static tri_status load(void *source, int64_t index, struct data_file *out) {
    const struct images *x = source;
    out->name.size = 0;
    folder_path(&x->folder, x->first + index, &out->name);
    if (out->name.failed) return base_no_memory(x->folder.root);
    out->label = label_of(x, index);
    return pictures_read_file(out);
}

static int64_t file_bytes(void *user, int64_t index) {
    const struct images *x = user;
    struct text path = {0};
    struct stat st;
    folder_path(&x->folder, x->first + index, &path);
    bool known = !path.failed && !stat(path.data, &st);
    text_free(&path);
    return known ? (int64_t)st.st_size : -1;
}

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    struct images *x = user;
    return pictures_fill(&x->pictures, index, epoch, seed, out);
}

static const char *class_name(const void *user, int64_t label) {
    const struct images *x = user;
    return x->classes[label];
}

static void describe(void *user, struct text *out) {
    struct images *x = user;
    pictures_describe(&x->pictures, out);
}

static tri_status check(void *user, int64_t index) {
    struct images *x = user;
    return pictures_check(&x->pictures, index);
}

/* ---- opening ---- */

static tri_status find_folder(const char *path, bool *is) {
    struct stat st;
    bool there = !stat(path, &st);
    *is = there && S_ISDIR(st.st_mode);
    if (there || errno == ENOENT || errno == ENOTDIR) return TRI_OK;
    return base_fail(TRI_FAILED, "%s: %s", path, strerror(errno));
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A place's class is the first folder in its path. */
static tri_status find_label(struct images *x, const char *path, int32_t *label) {
    size_t length = strcspn(path, "/");
    *label = -1;
    if (!length) return TRI_OK;
    struct text first = {0};
    text_add(&first, "%.*s", (int)length, path);
    if (first.failed) return base_no_memory(path);
    char **found = bsearch(&first.data, x->classes, x->n_classes, sizeof *x->classes, by_text);
    text_free(&first);
    if (!found)
        return base_fail(TRI_USAGE,
                         "%s/%.*s: the folder train next to it has no class of that name",
                         x->folder.root, (int)length, path);
    *label = (int32_t)(found - x->classes);
    return TRI_OK;
}

static tri_status label_places(struct images *x) {
    struct folder *f = &x->folder;
    tri_status status = TRI_OK;
    x->label = calloc(f->n_places, sizeof *x->label);
    if (!x->label) return base_no_memory(f->root);
    for (size_t i = 0; i < f->n_places && !status; i++)
        status = find_label(x, folder_text(f, f->place[i].path), &x->label[i]);
    x->first = f->place[0].end;
    return status;
}

static tri_status label_pictures(struct images *x, const char *file, const char *ids) {
    struct labels l = {file, ids, x->classes, x->n_classes};
    x->label = malloc(x->folder.n_pictures * sizeof *x->label + 1);
    x->each = true;
    return x->label ? labels_read(&l, &x->folder, x->label) : base_no_memory(file);
}

struct images_settings {
    const char *split; /* null: train, if that folder exists */
    const char *labels, *ids; /* files; null: folders name the classes */
    const char *index;        /* a file for the list of pictures, or "none"; null: the default */
    int64_t max_bad;
    struct augment_settings augment;
};

/* Finds the folder of the split, and the one whose folders name the classes. */
static tri_status find_root(const struct data_spec *s, const char *split, struct text *root,
                            struct text *classes) {
    text_add(root, "%s/%s", s->rest, split ? split : "train");
    text_add(classes, "%s/train", s->rest);
    if (root->failed || classes->failed) return base_no_memory(s->spec);
    bool with_classes, with_split, there;
    if (find_folder(classes->data, &with_classes) || find_folder(root->data, &with_split) ||
        find_folder(s->rest, &there))
        return TRI_FAILED;
    if (!with_split) {
        if (!there)
            return base_fail(TRI_FAILED, "data '%s': %s: there is no such directory", s->spec,
                             s->rest);
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

/* Reports classes without pictures and pictures without a class. */
static tri_status check_classes(struct images *x, const char *spec) {
    tri_status status = TRI_OK;
    bool *seen = calloc(x->n_classes + 1, sizeof *seen);
    if (!seen) return base_no_memory(spec);
    for (int64_t i = 0; i < x->pictures.size; i++) seen[label_of(x, i)] = true;
    for (size_t c = 0; c < x->n_classes && !status; c++) {
        if (seen[c]) continue;
        base_fail(PICTURE_BAD, "%s: the class %s has no pictures", x->folder.root, x->classes[c]);
        status = pictures_other_bad(&x->pictures);
    }
    free(seen);
    if (status || !x->first) return status;
    base_fail(PICTURE_BAD,
              "%s: %lld pictures are in no folder of a class; the first is %s",
              x->folder.root, (long long)x->first, folder_text(&x->folder, x->folder.picture[0]));
    return pictures_other_bad(&x->pictures);
}

/* What the list would replace must not be a device. */
static tri_status check_list(const char *file) {
    int fd = base_open(file, O_RDONLY, NULL);
    if (fd < 0 && errno != ENOENT) return TRI_FAILED;
    if (fd >= 0) close(fd);
    return TRI_OK;
}

/* Lists only save time: a list that cannot be written is a failure only if the user named it. */
static tri_status find_all(struct images *x, const char *root, const char *index) {
    struct text file = {0};
    bool none = index && !strcmp(index, "none");
    if (index) text_add(&file, "%s", index);
    bool keep = !none && (index ? !file.failed : folder_default_file(root, &file));
    tri_status status = keep && index ? check_list(index) : TRI_OK;
    if (!status && (!keep || !folder_load(&x->folder, root, file.data))) {
        status = folder_scan(&x->folder, root);
        if (!status && keep && (index || x->folder.n_pictures >= LIST_FROM)) {
            status = folder_save(&x->folder, file.data);
            if (!index) status = TRI_OK;
        }
    }
    text_free(&file);
    return status;
}

static tri_status label_all(struct images *x, const struct data_spec *s,
                            const struct images_settings *o, const char *classes) {
    const struct folder *f = &x->folder;
    if (!f->n_pictures)
        return base_fail(TRI_FAILED,
                         "data '%s': %s has no pictures: files ending in .jpg, .jpeg or "
                         ".png",
                         s->spec, f->root);
    if (!x->n_classes || (f->n_places == 1 && !o->labels))
        return base_fail(TRI_USAGE,
                         "data '%s': %s has no folders; each class needs a folder, or labels=FILE "
                         "gives the class of each picture by name",
                         s->spec, x->n_classes ? f->root : classes);
    tri_status status = o->labels ? label_pictures(x, o->labels, o->ids) : label_places(x);
    if (!status && x->first == (int64_t)f->n_pictures)
        status = base_fail(TRI_FAILED, "data '%s': the folders in %s have no pictures", s->spec,
                           f->root);
    return status;
}

static tri_status find_pictures(struct images *x, const struct data_spec *s,
                                const struct images_settings *o) {
    struct text root = {0}, classes = {0};
    tri_status status = find_root(s, o->split, &root, &classes);
    if (!status) status = folder_list(classes.data, &x->classes, &x->n_classes);
    if (!status) status = find_all(x, root.data, o->index);
    if (!status) status = label_all(x, s, o, classes.data);
    text_free(&root);
    text_free(&classes);
    return status;
}

static tri_status open_images(struct images *x, const struct data_spec *s,
                              const struct images_settings *o) {
    struct augment augment;
    bool train = !o->split || !strcmp(o->split, "train");
    tri_status status = augment_make(s->spec, &o->augment, train, &augment);
    if (!status) status = find_pictures(x, s, o);
    if (!status)
        status = pictures_init(&x->pictures, s->spec, &augment,
                               (int64_t)x->folder.n_pictures - x->first, o->max_bad);
    x->pictures.source = x;
    x->pictures.load = load;
    return status ? status : check_classes(x, s->spec);
}

static size_t held_by(const struct images *x) {
    const struct folder *f = &x->folder;
    size_t labels = x->label ? f->n_pictures * sizeof *x->label : 0;
    return f->names.size + f->places_capacity * sizeof *f->place +
           f->pictures_capacity * sizeof *f->picture + labels;
}

/* Fields: "image" f32[3,size,size], "label" i64[]. */
static tri_data *images_open(const struct data_spec *s) {
    struct images_settings o = {.max_bad = PICTURES_MAX_BAD, .augment = AUGMENT_DEFAULTS};
    const struct data_option known[] = {{"split", DATA_TEXT, &o.split},
                                        {"labels", DATA_TEXT, &o.labels},
                                        {"ids", DATA_TEXT, &o.ids},
                                        {"index", DATA_TEXT, &o.index},
                                        AUGMENT_OPTIONS(&o.augment),
                                        {"max-bad", DATA_INT, &o.max_bad}};
    if (data_parse_options(s, known, (int)COUNT(known))) return NULL;
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
        d->about = (struct data_about){.classes = (int64_t)x->n_classes,
                                       .class_name = class_name,
                                       .label = label_of,
                                       .augment = &x->pictures.augment,
                                       .pictures = &x->pictures,
                                       .check = check,
                                       .describe = describe,
                                       .file = load,
                                       .file_bytes = file_bytes,
                                       .held = held_by(x)};
    return data_prepared(d, known, (int)COUNT(known));
}

const struct data_source source_images = {
    "images", "directory",
    "images:DIR[,split=train|val][,size=N][,augment=random|centre][,max-bad=N]...", images_open,
    false};
