/* SPDX-License-Identifier: Apache-2.0
 * A row of a file is a label (CIFAR-100: a coarse and a fine one) and three planes of 32 x 32. */
#include "data/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/augment.h"

#define SIDE 32
#define PLANE (SIDE * SIDE)
#define PIXELS (3 * PLANE)
#define PAD 4 /* pixels added on each side before a random crop */
#define MOST_FILES 5

static const struct family {
    const char *folder; /* inside DIR, or DIR itself */
    const char *files[2][MOST_FILES]; /* train, test */
    int labels, classes;
} families[] = {
    {"cifar-10-batches-bin",
     {{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
       "data_batch_5.bin"}, {"test_batch.bin"}}, 1, 10},
    {"cifar-100-binary", {{"train.bin"}, {"test.bin"}}, 2, 100},
};

struct cifar {
    const struct family *family;
    char *file[MOST_FILES];
    int64_t end[MOST_FILES]; /* samples up to the end of each file */
    int n_files, label;      /* label: the index of the label in a row */
    int64_t classes;
    bool random;
    float value[3][256];
};

static void free_cifar(void *user) {
    struct cifar *x = user;
    for (int i = 0; i < MOST_FILES; i++) free(x->file[i]);
    free(x);
}

static const unsigned char *row_of(const struct cifar *x, int64_t index) {
    int i = 0;
    while (index >= x->end[i]) i++;
    size_t place = (size_t)(index - (i ? x->end[i - 1] : 0));
    return (unsigned char *)x->file[i] + place * (size_t)(x->family->labels + PIXELS);
}

static int64_t label_of(const void *user, int64_t index) {
    const struct cifar *x = user;
    return row_of(x, index)[x->label];
}

/* Crops the plane, padded with PAD zeros, at (left, top). */
static void cut(const unsigned char *plane, const float value[256], int left, int top,
                bool mirrored, float *out) {
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            int from_y = y + top - PAD, from_x = (mirrored ? SIDE - 1 - x : x) + left - PAD;
            bool inside = from_y >= 0 && from_y < SIDE && from_x >= 0 && from_x < SIDE;
            out[y * SIDE + x] = value[inside ? plane[from_y * SIDE + from_x] : 0];
        }
}

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    const struct cifar *x = user;
    const unsigned char *row = row_of(x, index);
    struct augment_shift shift = {PAD, PAD, false};
    if (x->random) shift = augment_shift(PAD, augment_key(seed, epoch, index));
    for (int c = 0; c < 3; c++)
        cut(row + x->family->labels + c * PLANE, x->value[c], shift.x, shift.y, shift.mirrored,
            (float *)out[0] + c * PLANE);
    *(int64_t *)out[1] = row[x->label];
    return 0;
}

/* ---- opening ---- */

static tri_status load_file(struct cifar *x, const char *path, int64_t *end) {
    size_t bytes, row = (size_t)(x->family->labels + PIXELS);
    char **file = &x->file[x->n_files];
    tri_status status = base_read_file(path, file, &bytes);
    if (status) return status;
    if (!bytes || bytes % row)
        return base_fail(TRI_FAILED, "%s: truncated: %zu bytes are not a multiple of rows of %zu",
                         path, bytes, row);
    for (size_t i = 0; i < bytes; i += row)
        if ((unsigned char)(*file)[i + (size_t)x->label] >= x->classes)
            return base_fail(TRI_FAILED, "%s: offset %zu: class %d; there are %lld", path, i,
                             (unsigned char)(*file)[i + (size_t)x->label], (long long)x->classes);
    *end += (int64_t)(bytes / row);
    x->end[x->n_files++] = *end;
    return TRI_OK;
}

/* Finds the family whose first file exists, in DIR or in the folder that its archive contains. */
static tri_status locate(struct cifar *x, const struct data_spec *s, bool test,
                         struct text *folder) {
    for (size_t i = 0; i < 2 * COUNT(families); i++) {
        struct text path = {0};
        x->family = &families[i / 2];
        folder->size = 0;
        text_add(folder, "%s%s%s", s->rest, i % 2 ? "/" : "", i % 2 ? x->family->folder : "");
        text_add(&path, "%s/%s", folder->data ? folder->data : "", x->family->files[test][0]);
        bool failed = folder->failed || path.failed;
        bool here = !failed && (!access(path.data, F_OK) || errno != ENOENT);
        text_free(&path);
        if (failed) return base_no_memory(s->spec);
        if (here) return TRI_OK;
    }
    return base_fail(TRI_FAILED,
                     "data '%s': found neither %s of CIFAR-10 nor %s of CIFAR-100 in %s", s->spec,
                     families[0].files[test][0], families[1].files[test][0], s->rest);
}

static tri_status load(struct cifar *x, const struct data_spec *s, bool test, const char *label) {
    struct text folder = {0};
    int64_t end = 0;
    bool coarse = label && !strcmp(label, "coarse");
    tri_status status = locate(x, s, test, &folder);
    if (!status && label && (x->family->labels < 2 || (!coarse && strcmp(label, "fine"))))
        status = base_fail(TRI_USAGE, "data '%s': label=%s; CIFAR-100 has fine and coarse ones",
                           s->spec, label);
    x->label = coarse ? 0 : x->family->labels - 1;
    x->classes = coarse ? 20 : x->family->classes;
    for (int i = 0; i < MOST_FILES && !status && x->family->files[test][i]; i++) {
        struct text path = {0};
        text_add(&path, "%s/%s", folder.data, x->family->files[test][i]);
        status = path.failed ? base_no_memory(s->spec) : load_file(x, path.data, &end);
        text_free(&path);
    }
    text_free(&folder);
    return status;
}

/* Fields: "image" f32[3,32,32], "label" i64[]. */
static tri_data *cifar_open(const struct data_spec *s) {
    const char *split = "train", *label = NULL, *way = NULL, *mean = "0.4914/0.4822/0.4465",
               *std = "0.247/0.2435/0.2616";
    const struct data_option known[] = {{"split", DATA_TEXT, &split},
                                        {"label", DATA_TEXT, &label},
                                        {"augment", DATA_TEXT, &way},
                                        {"mean", DATA_TEXT | DATA_PREPARES, &mean},
                                        {"std", DATA_TEXT | DATA_PREPARES, &std}};
    if (data_parse_options(s, known, (int)COUNT(known))) return NULL;
    bool test = false;
    struct cifar *x = calloc(1, sizeof *x);
    if (!x) {
        base_no_memory(s->spec);
        return NULL;
    }
    tri_status status = data_choose(s->spec, "split", split, "train", "test", &test);
    x->random = !test;
    if (!status) status = data_choose(s->spec, "augment", way, "none", "random", &x->random);
    if (!status) status = augment_normalise(s->spec, mean, std, x->value);
    if (!status) status = load(x, s, test, label);
    if (status) {
        free_cifar(x);
        return NULL;
    }
    const tri_field fields[] = {{"image", TRI_F32, TRI_SHAPE(3, SIDE, SIDE)},
                                {"label", TRI_I64, TRI_SCALAR}};
    tri_data *d = data_make(s->spec, x->end[x->n_files - 1], fields, (int)COUNT(fields), fill, x,
                            false, free_cifar);
    if (d) d->about = (struct data_about){.classes = x->classes, .label = label_of,
                                       .held = (size_t)(d->size * (x->family->labels + PIXELS))};
    return data_prepared(d, known, (int)COUNT(known));
}

const struct data_source source_cifar = {"cifar", "directory",
                                         "cifar:DIR[,split=train|test][,augment=random|none]"
                                         "[,label=fine|coarse]...",
                                         cifar_open, false};
