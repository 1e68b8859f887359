/* SPDX-License-Identifier: Apache-2.0
 * Sources of pictures and arrays: folders, lists of them, labels in files, tar archives, CIFAR,
 * NumPy; and the handling of bad files. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these headers */
#include <setjmp.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "data/data.h"
#include "data/folder.h"
#include "data/npy.h"
#include "data/pictures.h"
#include "data/tar_scan.h"
#include "unit/pictures_made.h"
#include "scratch.h"

static void put(const char *name, const void *data, size_t n) {
    char path[512];
    snprintf(path, sizeof path, "%s", at(name));
    for (char *p = path + strlen(directory) + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = 0;
        mkdir(path, 0777);
    }
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void put_text(const char *name, const char *text) { put(name, text, strlen(text)); }

static void put_made(const char *name, struct made m) {
    put(name, m.bytes, m.n);
    free(m.bytes);
}

static void put_jpeg(const char *name, int salt) { put_made(name, made_rgb_jpeg(40, 30, salt)); }

/* KIND:DIRECTORY/REST */
static tri_data *open_data(const char *kind, const char *rest) {
    char spec[2048];
    snprintf(spec, sizeof spec, "%s:%s%s", kind, directory, rest);
    return tri_data_open(spec, NULL, 0);
}

static void refused(const char *kind, const char *rest, const char *message) {
    assert_null(open_data(kind, rest));
    assert_message(message);
}

#define SIZE 8
static int64_t get(tri_data *d, int64_t index, int64_t epoch, float image[3 * SIZE * SIZE]) {
    int64_t label = -1;
    if (tri_data_get(d, index, epoch, 5, (void *[]){image, &label}))
        fail_msg("sample %lld: %s", (long long)index, tri_message());
    return label;
}

static void assert_labels(tri_data *d, const char *labels) {
    float image[3 * SIZE * SIZE];
    if (!d) fail_msg("%s", tri_message());
    assert_int_equal(tri_data_size(d), strlen(labels));
    for (int64_t i = 0; labels[i]; i++) assert_int_equal(get(d, i, 0, image), labels[i] - '0');
    tri_data_free(d);
}

/* ---- folders ---- */

static void put_tree(void) {
    put_jpeg("train/cat/1.JPEG", 1);
    put_jpeg("train/cat/2.jpg", 2);
    put_jpeg("train/cat/deep/3.jpeg", 3);
    put_made("train/dog/1.JPEG", made_png(20, 30, PNG_COLOR_TYPE_RGB, 8, false));
    put_text("train/dog/readme.txt", "no picture");
    put_jpeg("train/elk/x.JpG", 4);
    put_jpeg("val/dog/9.jpg", 5);
}

static void folders(void **state) {
    (void)state;
    put_tree();
    assert_labels(open_data("images", ",size=8"), "00012");
    assert_labels(open_data("images", ",size=8,split=train,augment=centre"), "00012");
    assert_labels(open_data("images", "/train,size=8"), "00012");
    refused("images", ",split=test", "there is no folder");
    refused("images", "/none", "there is no such directory");
    refused("images", ",sise=8", "unknown option 'sise'; known: split, labels, ids, index, size");
    refused("images", ",size=0", "size=0; 1 to 8192");
    refused("images", ",resize=100", "resize=100: the length of the shorter side");
    refused("images", "/train/elk", "has no folders; each class needs a folder");
    refused("images", ",max-bad=-1", "max-bad=-1");
    /* The classes are those of train; two of them have no pictures in val. */
    assert_labels(open_data("images", ",size=8,split=val"), "1");
    refused("images", ",split=val,max-bad=1", "more than max-bad=1 bad files; the last: ");
    assert_message("/val: the class elk has no pictures");
    put_jpeg("val/fox/1.jpg", 1);
    refused("images", ",split=val", "/val/fox: the folder train next to it has no class");
}

/* Random choices depend only on seed, epoch and sample. */
static void same_draws(void **state) {
    float one[3 * SIZE * SIZE], other[3 * SIZE * SIZE];
    (void)state;
    put_tree();
    tri_data *a = open_data("images", ",size=8"), *b = open_data("images", ",size=8");
    for (int i = 0; i < 5; i++) get(a, i, 0, one);
    get(a, 1, 3, one);
    get(b, 1, 3, other);
    assert_memory_equal(one, other, sizeof one);
    get(b, 1, 4, other);
    assert_true(memcmp(one, other, sizeof one));
    tri_data_free(a);
    tri_data_free(b);
}

static void bad_files(void **state) {
    float one[3 * SIZE * SIZE], other[3 * SIZE * SIZE];
    (void)state;
    put_tree();
    put_text("train/cat/0.jpg", "");
    put_text("train/dog/0.png", "GIF89a");
    struct made m = made_rgb_jpeg(40, 30, 1);
    put("train/elk/0.jpg", m.bytes, m.n - 100);
    free(m.bytes);
    assert_int_equal(symlink("nowhere", at("train/elk/1.jpg")), 0);
    put_made("train/elk/2.png", made_png(66000, 1, PNG_COLOR_TYPE_GRAY, 1, false));
    tri_data *a = open_data("images", ",size=8,max-bad=5"),
             *b = open_data("images", ",size=8,max-bad=5");
    assert_int_equal(tri_data_size(a), 10);
    for (int i = 0; i < 10; i++) {
        tri_status right = a->about.check(a->user, i) ? TRI_FAILED : TRI_OK;
        int64_t label = get(a, i, 0, one);
        assert_int_equal(label, get(b, i, 0, other));
        assert_memory_equal(one, other, sizeof one);
        if (!right) assert_int_equal(label, a->about.label(a->user, i));
    }
    for (int epoch = 1; epoch < 4; epoch++) /* bad ones count once */
        for (int i = 0; i < 10; i++) get(a, i, epoch, one);
    tri_data_free(a);
    tri_data_free(b);
    a = open_data("images", ",size=8,max-bad=0");
    assert_int_equal(tri_data_get(a, 0, 0, 0, (void *[]){one, other}), TRI_FAILED);
    assert_message("more than max-bad=0 bad files; the last: ");
    assert_message("train/cat/0.jpg: empty: zero bytes");
    tri_data_free(a);
}

/* Several processes share the samples, here as two sources: each bad sample counts once, whichever
 * process meets it. */
static void counted_together(void **state) {
    float one[3 * SIZE * SIZE];
    int64_t label;
    struct tally *t = calloc(1, sizeof *t);
    (void)state;
    put_tree();
    static const char *const empty[] = {"train/cat/0.jpg", "train/dog/0.png", "train/elk/0.jpg"};
    for (int i = 0; i < 3; i++) put_text(empty[i], "");
    tri_data *both[2];
    for (int i = 0; i < 2; i++) {
        both[i] = open_data("images", ",size=8,max-bad=2");
        both[i] = tri_data_take(both[i], 0, tri_data_size(both[i]));
        pictures_count_together(both[i], t);
    }
    int bad[3], n = 0;
    for (int i = 0; i < tri_data_size(both[0]); i++)
        if (n < 3 && both[0]->about.check(both[0]->user, i)) bad[n++] = i;
    assert_int_equal(n, 3);
    for (int i = 0; i < n; i++) {
        tri_data_get(both[i % 2], bad[i], 0, 0, (void *[]){one, &label});
        int64_t met = tally_count(t);
        tri_data_get(both[!(i % 2)], bad[i], 0, 0, (void *[]){one, &label});
        assert_int_equal(tally_count(t), met);
        assert_true(met > i);
    }
    assert_int_equal(tally_count(t), 3);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tri_data_get(both[i], bad[0], 0, 0, (void *[]){one, &label}), TRI_FAILED);
        assert_message("more than max-bad=2 bad files; the last: ");
    }
    for (int i = 0; i < 2; i++) tri_data_free(both[i]);
    for (int64_t i = 0; i < 2 * TALLY_PLACES; i++) assert_true(tally_add(t, 1000 + i));
    assert_int_equal(tally_count(t), 2 * TALLY_PLACES + 3);
    assert_false(tally_add(t, 1000));
    free(t);
}

/* ---- lists ---- */

static void age(const char *path, int seconds) {
    struct timespec t[2] = {{time(NULL) - seconds, 5}, {time(NULL) - seconds, 5}};
    assert_int_equal(utimensat(AT_FDCWD, at(path), t, 0), 0);
}

static void lists(void **state) {
    static const char *const places[] = {"train/cat/deep", "train/cat", "train/dog", "train/elk",
                                         "train"};
    char *bytes;
    size_t n;
    (void)state;
    put_tree();
    char options[512];
    snprintf(options, sizeof options, ",size=8,index=%s", at("list"));
    assert_labels(open_data("images", options), "00012");
    assert_int_equal(access(at("list"), F_OK), -1); /* a new file may still change */
    for (size_t i = 0; i < COUNT(places); i++) age(places[i], 2000);
    assert_labels(open_data("images", options), "00012");
    assert_int_equal(access(at("list"), F_OK), 0);
    assert_labels(open_data("images", options), "00012");
    struct folder f;
    assert_true(folder_load(&f, at("train"), at("list")));
    assert_int_equal(f.n_pictures, 5);
    folder_free(&f);
    put_jpeg("train/dog/2.jpg", 3); /* changes the folder's time */
    assert_false(folder_load(&f, at("train"), at("list")));
    assert_labels(open_data("images", options), "000112");
    for (size_t i = 0; i < COUNT(places); i++) age(places[i], 1000);
    assert_labels(open_data("images", options), "000112");
    assert_false(folder_load(&f, at("val"), at("list")));
    /* All damage is detected. */
    assert_int_equal(base_read_file(at("list"), &bytes, &n), TRI_OK);
    for (size_t i = 0; i < n; i++) {
        bytes[i] ^= 4;
        put("damaged", bytes, n);
        assert_false(folder_load(&f, at("train"), at("damaged")));
        bytes[i] ^= 4;
        put("damaged", bytes, i);
        assert_false(folder_load(&f, at("train"), at("damaged")));
    }
    free(bytes);
    refused("images", ",index=/nonexistent/list", "/nonexistent/list");
}

/* ---- labels ---- */

static void labels(void **state) {
    char options[1024];
    (void)state;
    put_tree();
    put_jpeg("flat/v_1.JPEG", 1);
    put_jpeg("flat/v_10.JPEG", 1);
    put_jpeg("flat/v_2.JPEG", 1);
    static const struct {
        const char *text, *ids, *labels, *message;
    } cases[] = {
        {"v_1.JPEG dog\nv_2.JPEG elk 1 2 3\nv_10.JPEG\tcat\n", NULL, "102", NULL},
        {"ImageId,Prediction\nv_1,dog 85\nv_10,cat\nv_2,elk", NULL, "102", NULL},
        {"2\n0\n1\n", NULL, "201", NULL},
        {"7\n9\n8\n", "cat 9 Felis\ndog 8\nelk 7\n", "201", NULL},
        {"2\n0\n", NULL, NULL, "no class for the picture v_2.JPEG"},
        {"2\n0\n1\n1\n", NULL, NULL, "line 4: there are only 3 pictures"},
        {"2\n0\n3\n", NULL, NULL, "line 3: there is no class 3"},
        {"v_1 dog\nw cat", NULL, NULL, "line 2: there is no picture w"},
        {"1\n1\n1\n", "cat x", NULL, "line 1 is not of the form CLASS NUMBER"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        put_text("labels", cases[i].text);
        if (cases[i].ids) put_text("ids", cases[i].ids);
        snprintf(options, sizeof options, ",split=flat,size=8,labels=%s%s%s", at("labels"),
                 cases[i].ids ? ",ids=" : "", cases[i].ids ? at("ids") : "");
        if (cases[i].labels) assert_labels(open_data("images", options), cases[i].labels);
        else refused("images", options, cases[i].message);
    }
    refused("images", ",split=flat", "labels=FILE gives the class of each picture");
}

/* ---- tar ---- */

static char *tar_end;

static void tar_add(char type, const char *name, const void *data, size_t n) {
    char *h = tar_end;
    unsigned sum = 0;
    memset(h, 0, 512);
    snprintf(h, 100, "%s", name);
    snprintf(h + 124, 12, "%011zo", n);
    memcpy(h + 257, "ustar\00000", 8);
    h[156] = type;
    memset(h + 148, ' ', 8);
    for (int i = 0; i < 512; i++) sum += (unsigned char)h[i];
    snprintf(h + 148, 8, "%06o", sum);
    memcpy(h + 512, data, n);
    tar_end += 512 + (n + 511) / 512 * 512;
}

static void tar_picture(const char *name, int salt) {
    struct made m = made_rgb_jpeg(40, 30, salt);
    tar_add('0', name, m.bytes, m.n);
    free(m.bytes);
}

static void archives(void **state) {
    char *all = calloc(1, 1 << 20), name[301];
    (void)state;
    tar_end = all;
    tar_add('5', "d/", "", 0);
    tar_picture("d/a.jpg", 1);
    tar_add('0', "d/a.cls", "2", 1);
    tar_add('0', "d/b.json", "{\"width\":3,\"label\":1}", 21);
    tar_picture("d/b.JPEG", 2);
    tar_add('0', "d/b.txt", "what it is", 10);
    memset(name, 'x', 300);
    strcpy(name + 296, ".jpg");
    tar_add('L', "././@LongLink", name, 301);
    tar_picture("cut", 3);
    strcpy(name + 296, ".cls");
    char record[400];
    assert_int_equal(snprintf(record, sizeof record, "310 path=%s\n", name), 310);
    tar_add('x', "pax", record, 310);
    tar_add('0', "cut", "0\n", 2);
    size_t whole = (size_t)(tar_end - all);
    put("a.tar", all, whole + 1024);
    assert_labels(open_data("tar", "/a.tar,size=8"), "210");
    tar_end = all;
    tar_picture("c.png", 1); /* a JPEG, despite its name */
    tar_add('0', "c.cls", "1", 1);
    put("b.tar", all, (size_t)(tar_end - all)); /* without an end mark */
    assert_labels(open_data("tar", "/?.tar,size=8"), "2101");
    tar_picture("e.jpg", 1);
    tar_add('0', "f.cls", "1", 1);
    tar_picture("g.jpg", 1);
    put("c.tar", all, (size_t)(tar_end - all) - 600);
    /* e, f, and the end within g */
    assert_labels(open_data("tar", "/c.tar,size=8,max-bad=3"), "1");
    refused("tar", "/c.tar,size=8,max-bad=2", "more than max-bad=2");
    refused("tar", "/d.tar", "no file matches the pattern");
    put_text("e.tar", "no archive at all");
    refused("tar", "/e.tar", "no samples in 1 archives");
    free(all);
}

/* ---- CIFAR ---- */

static void cifar(void **state) {
    unsigned char *rows = malloc(3 * 3074);
    float image[3 * 1024];
    int64_t label;
    (void)state;
    for (int i = 0; i < 3 * 3073; i++)
        rows[i] = (unsigned char)(i % 3073 ? i * 31 % 256 : i / 3073 * 4);
    for (int i = 1; i <= 5; i++) {
        char name[64];
        snprintf(name, sizeof name, "cifar-10-batches-bin/data_batch_%d.bin", i);
        put(name, rows, (size_t)(i == 2 ? 3 : 1) * 3073);
    }
    tri_data *d = open_data("cifar", ",augment=none,mean=0,std=1");
    assert_int_equal(tri_data_size(d), 7);
    assert_int_equal(tri_data_get(d, 3, 0, 0, (void *[]){image, &label}), TRI_OK);
    assert_int_equal(label, 8);
    for (int i = 0; i < 3072; i++) assert_true(image[i] == (float)rows[2 * 3073 + 1 + i] / 255.0f);
    tri_data_free(d);
    d = open_data("cifar", "/cifar-10-batches-bin,mean=0,std=1"); /* shifted and mirrored */
    assert_int_equal(tri_data_get(d, 0, 0, 0, (void *[]){image, &label}), TRI_OK);
    tri_data_free(d);
    refused("cifar", ",label=fine", "CIFAR-100 has fine and coarse ones");
    refused("cifar", ",split=test", "found neither test_batch.bin of CIFAR-10 nor test.bin");
    put("cifar-10-batches-bin/data_batch_4.bin", rows, 3000);
    refused("cifar", "", "data_batch_4.bin: truncated: 3000 bytes are not a multiple of rows");
    rows[0] = 10;
    put("cifar-10-batches-bin/test_batch.bin", rows, 3073);
    refused("cifar", ",split=test", "test_batch.bin: offset 0: class 10; there are 10");
    rows[1] = 77;
    put("cifar-100-binary/test.bin", rows, 3074);
    remove(at("cifar-10-batches-bin/test_batch.bin"));
    d = open_data("cifar", ",split=test");
    assert_int_equal(tri_data_get(d, 0, 0, 0, (void *[]){image, &label}), TRI_OK);
    assert_int_equal(label, 77);
    tri_data_free(d);
    d = open_data("cifar", ",split=test,label=coarse");
    assert_int_equal(tri_data_get(d, 0, 0, 0, (void *[]){image, &label}), TRI_OK);
    assert_int_equal(label, 10);
    tri_data_free(d);
    free(rows);
}

/* ---- NumPy ---- */

static void put_npy(const char *name, int version, const char *header, const void *data, size_t n) {
    unsigned char bytes[1024] = "\x93NUMPY";
    size_t length = strlen(header), begin = version > 1 ? 12 : 10;
    bytes[6] = (unsigned char)version;
    bytes[8] = (unsigned char)length;
    bytes[9] = (unsigned char)(length >> 8);
    memcpy(bytes + begin, header, length);
    memcpy(bytes + begin + length, data, n);
    put(name, bytes, begin + length + n);
}

static void arrays(void **state) {
    float x[2];
    int64_t y;
    char rest[512];
    (void)state;
    put_npy("x.npy", 1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 2), }   \n",
            (double[]){1, 2, 3, 4, 5, 6.5}, 48);
    put_npy("label.npy", 2, "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }\n",
            (int64_t[]){7, 8, 9}, 24);
    snprintf(rest, sizeof rest, "/x.npy;%s", at("label.npy"));
    tri_data *d = open_data("npy", rest);
    if (!d) fail_msg("%s", tri_message());
    const tri_field *f;
    assert_int_equal(tri_data_fields(d, &f), 2);
    assert_string_equal(f[0].name, "x");
    assert_true(base_shape_equal(&f[0].shape, &TRI_SHAPE(2)) && f[0].type == TRI_F32);
    assert_string_equal(f[1].name, "label");
    assert_true(f[1].shape.rank == 0 && f[1].type == TRI_I64);
    assert_int_equal(tri_data_get(d, 2, 0, 0, (void *[]){x, &y}), TRI_OK);
    assert_true(x[0] == 5 && x[1] == 6.5f && y == 9);
    tri_data_free(d);
    static const struct {
        const char *header, *message;
    } cases[] = {
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 1), }",
         "the array is in Fortran order"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2, 1), }",
         "type '>f4' are not supported"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "a single number has no rows"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3), }", "it has no elements"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }",
         "12 bytes of elements expected"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9999999999999999999,), }",
         "too large"},
        {"{'descr': '<f4', 'shape': (2,), }", "descr, shape or fortran_order is missing"},
        {"{'descr': '<f4', 'shape': (2,)", "it has no end"},
        {"{'descr': [('a', '<f4')], }", "the type is no text"},
        {"", "it does not begin with {"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        put_npy("bad.npy", 1, cases[i].header, (float[]){1, 2}, 8);
        refused("npy", "/bad.npy", cases[i].message);
    }
    put_npy("label.npy", 3, "{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }\n",
            (int64_t[]){7, 8}, 16);
    refused("npy", rest, "2 rows; the first file has 3");
    put_text("bad.npy", "");
    refused("npy", "/bad.npy", "empty: zero bytes");
    put_text("bad.npy", "anything else");
    refused("npy", "/bad.npy", "not a file of numpy.save");
    refused("npy", "/none.npy", "No such file");
}

/* ---- whole runs ---- */

/* Three classes, red, green and blue squares on noise: learnt within a few steps, with weights that
 * do not depend on the number of threads. */
static void put_colours(void) {
    for (int i = 0; i < 48; i++) {
        char name[64];
        struct made m = {0};
        unsigned char rgb[24 * 24 * 3], *row[24];
        for (int k = 0; k < 24 * 24 * 3; k++) rgb[k] = (unsigned char)((k * 131 + i * 977) % 97);
        for (int k = 0; k < 12 * 12; k++)
            rgb[((k / 12 + 2 + i % 9) * 24 + k % 12 + i % 7) * 3 + i % 3] = 250;
        for (int y = 0; y < 24; y++) row[y] = rgb + (ptrdiff_t)72 * y;
        png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
        png_infop info = png_create_info_struct(png);
        png_set_write_fn(png, &m, made_append, NULL);
        png_set_IHDR(png, info, 24, 24, 8, PNG_COLOR_TYPE_RGB, 0, 0, 0);
        png_set_rows(png, info, row);
        png_write_png(png, info, PNG_TRANSFORM_IDENTITY, NULL);
        png_destroy_write_struct(&png, &info);
        snprintf(name, sizeof name, "train/%c/%d.JPEG", "rgb"[i % 3], i); /* another name */
        put_made(name, m);
    }
}

static void learns(void **state) {
    char weights[2][65], hash[65], spec[256];
    (void)state;
    put_colours();
    snprintf(spec, sizeof spec, "images:%s,size=8,scale=0.5/1", directory);
    for (int i = 0; i < 2; i++) {
        tri_options o = {.batch = 16, .lanes = 4, .threads = 1 + 2 * i, .epochs = 16, .data = spec,
                         .quiet = true, .optimizer = {.name = "adam", .lr = 0.01}};
        tri_run *run = tri_open(tri_model_open("cnn:width=2,channels=3,size=8,classes=3", 16), &o);
        double top1 = 0;
        if (!run) fail_msg("%s", tri_message());
        while (tri_step(run)) top1 = tri_value(run, "top1");
        assert_true(top1 > 0.9);
        tri_hash(run, weights[i], hash);
        assert_int_equal(tri_close(run), TRI_OK);
    }
    assert_string_equal(weights[0], weights[1]);
}

/* Classes or sizes that do not fit are reported when the run is opened; more classes in the network
 * are allowed, and classes of excluded samples do not count. */
static void fits(void **state) {
    static const struct {
        const char *model, *subset, *message; /* message null: it fits */
    } cases[] = {
        {"classes=2,size=8", NULL, "has 3 classes, the network takes 2: classes=3"},
        {"classes=2,size=8", "30:40", "has 3 classes, the network takes 2: classes=3"},
        {"classes=2,size=8", "0:32", NULL},
        {"classes=3,size=8", NULL, NULL},
        {"classes=4,size=8", NULL, NULL},
        {"classes=3,size=16", NULL, "wants \"image\" f32[3,16,16] per sample, but data"},
        {"classes=3,size=16", NULL,
         "has f32[3,8,8]: add size=16 after the directory, as in images:DIR,size=16"},
    };
    (void)state;
    put_colours();
    for (size_t i = 0; i < COUNT(cases); i++) {
        char spec[256], model[64];
        snprintf(spec, sizeof spec, "images:%s,size=8,scale=0.5/1", directory);
        snprintf(model, sizeof model, "cnn:width=2,channels=3,%s", cases[i].model);
        tri_options o = {.batch = 8, .data = spec, .subset = cases[i].subset, .quiet = true};
        tri_run *run = tri_open(tri_model_open(model, 8), &o);
        if (!run != !!cases[i].message) fail_msg("case %zu: %s", i, tri_message());
        if (!run) assert_int_equal(base_last(), TRI_USAGE);
        if (!run) assert_message(cases[i].message);
        if (run) tri_close(run);
    }
}

static int one_class(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)index, (void)epoch, (void)seed;
    memset(out[0], 0, 3 * 8 * 8 * sizeof(float));
    *(int64_t *)out[1] = *(int64_t *)user;
    return 0;
}

/* Where the classes are not known beforehand, the first sample of a class that does not fit is
 * reported. */
static void strangers(void **state) {
    static int64_t label = 5;
    const tri_field fields[] = {{"image", TRI_F32, TRI_SHAPE(3, 8, 8)},
                                {"label", TRI_I64, TRI_SCALAR}};
    (void)state;
    tri_options o = {.batch = 8,
                     .quiet = true,
                     .source = tri_data_new("own", 16, fields, 2, one_class, &label, false)};
    tri_run *run = tri_open(tri_model_open("cnn:width=2,channels=3,size=8,classes=3", 8), &o);
    if (!run) fail_msg("%s", tri_message());
    assert_false(tri_step(run));
    assert_int_equal(tri_run_status(run), TRI_FAILED);
    assert_message("\"label\" is 5, but the network takes 0 to 2");
    assert_int_equal(tri_close(run), TRI_FAILED);
}

int main(void) {
    static void (*const cases[])(void **) = {folders, same_draws, bad_files, counted_together,
                                             lists,   labels,     archives,  cifar,
                                             arrays,  learns,     fits,      strangers};
    static const char *const names[] = {"folders", "same draws", "bad files", "counted together",
                                        "lists",   "labels",     "archives",  "cifar",
                                        "arrays",  "learns",     "fits",      "strangers"};
    struct CMUnitTest tests[COUNT(cases)];
    for (size_t i = 0; i < COUNT(cases); i++)
        tests[i] = (struct CMUnitTest){names[i], cases[i], make_directory, remove_directory, NULL};
    return cmocka_run_group_tests_name("folders", tests, NULL, NULL);
}
