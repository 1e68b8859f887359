/* SPDX-License-Identifier: Apache-2.0
 * Data sources: IDX files and each kind of damage to them, generators, synthetic data, and the
 * order of samples. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these headers */
#include <setjmp.h>

#include <cmocka.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/convert.h"
#include "data/data.h"
#include "data/idx.h"
#include "data/sampler.h"
#include "scratch.h"

static void refused(const char *spec, const char *message) {
    assert_null(tri_data_open(spec, NULL, 0));
    assert_message(message);
}

/* The spec "idx:DIRECTORY" with options. */
static const char *idx(const char *options) {
    static char spec[256];
    snprintf(spec, sizeof spec, "idx:%s%s", directory, options);
    return spec;
}

/* ---- names and options ---- */

static void specs(void **state) {
    (void)state;
    refused("", "unknown kind; known: idx:DIR");
    refused("sifar:x", "data 'sifar:x': unknown kind; known: idx:DIR[,split=train|test]");
    refused("idxx:x", "unknown kind");
    refused("idx", "the directory is missing; idx:DIR");
    refused("idx:,split=test", "the directory is missing");
    refused("idx:d,splt=test", "unknown option 'splt'; known: split, mean, std");
    refused("idx:d,split", "'split' is not of the form key=value");
    refused("idx:d,split=", "split is empty");
    refused("idx:d,split=dev", "split=dev is neither train nor test");
    refused("idx:d,std=0", "std=0 is not above 0");
    refused("idx:d,mean=a", "mean=a is not a number");
    refused("idx:d,mean=nan", "mean=nan is not a number");
    refused("idx:d,mean=1,mean=1", "mean is given twice");
    refused("synthetic", "for the inputs of a network");
    refused("synthetic:size=0", "size is 0");
    refused("synthetic:size=281474976710657", "1 to 2^48 samples are possible");
    refused("synthetic:size=9999999999999999999", "is not a whole number");
    refused("synthetic:1", "not of the form key=value");
    assert_null(tri_data_open(NULL, NULL, 0));
}

/* ---- IDX files ---- */

/* 3 images of 2 x 4 */
static const unsigned char images[] = {
    0,   0,   8,   3,   0,  0,  0,  3,  0,  0,  0,  2,  0,  0,  0, 4, /* header */
    0,   1,   2,   3,   4,  5,  6,  7,                                /* image 0 */
    255, 254, 253, 252, 51, 50, 49, 48,                               /* image 1 */
    102, 0,   0,   0,   0,  0,  0,  255,                              /* image 2 */
};
static const unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 7, 0, 9};

static void put(const char *name, const void *data, size_t n) {
    FILE *f = fopen(at(name), "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void put_gz(const char *name, const char *mode, const void *data, size_t n) {
    gzFile f = gzopen(at(name), mode);
    assert_non_null(f);
    assert_int_equal(gzwrite(f, data, (unsigned)n), n);
    assert_int_equal(gzclose(f), Z_OK);
}

static void check_samples(tri_data *d, float mean, float std) {
    assert_non_null(d);
    assert_int_equal(tri_data_size(d), 3);
    const tri_field *f;
    assert_int_equal(tri_data_fields(d, &f), 2);
    assert_string_equal(f[0].name, "image");
    assert_int_equal(f[0].type, TRI_F32);
    assert_true(base_shape_equal(&f[0].shape, &TRI_SHAPE(1, 2, 4)));
    assert_string_equal(f[1].name, "label");
    assert_int_equal(f[1].type, TRI_I64);
    assert_int_equal(f[1].shape.rank, 0);
    for (int i = 2; i >= 0; i--) {
        float image[8];
        int64_t label;
        assert_int_equal(tri_data_get(d, i, 5, 0, (void *[]){image, &label}), TRI_OK);
        assert_int_equal(label, labels[8 + i]);
        for (int k = 0; k < 8; k++)
            assert_true(image[k] == ((float)images[16 + 8 * i + k] / 255.0f - mean) / std);
    }
    assert_int_equal(tri_data_get(d, 3, 0, 0, NULL), TRI_USAGE);
    assert_message("there is no sample 3");
    assert_int_equal(tri_data_get(d, -1, 0, 0, NULL), TRI_USAGE);
    tri_data_free(d);
}

static void idx_plain_and_gz(void **state) {
    (void)state;
    refused(idx(""), "found neither train-images-idx3-ubyte nor train-images-idx3-ubyte.gz in it "
            "(apt-get install dataset-fashion-mnist puts Fashion-MNIST in /usr/share/datasets/");
    refused("idx:/no/such", "/no/such: found neither");
    assert_message("there is no such directory");
    put("train-images-idx3-ubyte", images, sizeof images);
    refused(idx(""), "found neither train-labels-idx1-ubyte");
    put_gz("train-labels-idx1-ubyte.gz", "wb", labels, sizeof labels);
    check_samples(tri_data_open(idx(""), NULL, 0), 0, 1);
    check_samples(tri_data_open(idx(",mean=0.5,std=0.25,split=train"), NULL, 0), 0.5f, 0.25f);
    refused(idx(",split=test"), "found neither t10k-images-idx3-ubyte");
    put_gz("t10k-images-idx3-ubyte.gz", "wb", images, 20);
    put_gz("t10k-images-idx3-ubyte.gz", "ab", images + 20, sizeof images - 20);
    put("t10k-labels-idx1-ubyte", labels, sizeof labels);
    check_samples(tri_data_open(idx(",split=test,mean=0.1307,std=0.3081"), NULL, 0), 0.1307f,
                  0.3081f);
}

static void idx_files_that_disagree(void **state) {
    (void)state;
    put("train-images-idx3-ubyte", images, sizeof images);
    put("train-labels-idx1-ubyte", images, sizeof images);
    refused(idx(""), "train-labels-idx1-ubyte: offset 3: 3 dimensions; labels have 1");
    put("train-images-idx3-ubyte", labels, sizeof labels);
    refused(idx(""), "train-images-idx3-ubyte: offset 3: 1 dimension; images have 3");
    put("train-images-idx3-ubyte", images, sizeof images);
    put("train-labels-idx1-ubyte", "\0\0\x08\1\0\0\0\2\7\1", 10);
    refused(idx(""), "3 images of train, but 2 labels");
}

static void idx_damaged(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t n;
        const char *message;
    } cases[] = {
        {"", 0, "truncated at offset 0"},
        {"\0\0\x08", 3, "truncated at offset 3"},
        {"\x1f\x8b\x08\1", 4, "offset 0: not an IDX file: it begins with 1f 8b, not 00 00"},
        {"\0\0\x0d\1\0\0\0\1", 8, "offset 2: elements of type 0d (floats) are not supported"},
        {"\0\0\xff\1\0\0\0\1", 8, "offset 2: elements of type ff (an unknown type)"},
        {"\0\0\x08\0", 4, "offset 3: 0 dimensions"},
        {"\0\0\x08\5", 4, "offset 3: 5 dimensions; 1 to 4"},
        {"\0\0\x08\3\0\0\0\1", 8, "truncated at offset 8: 3 dimensions take 16 bytes"},
        {"\0\0\x08\1\0\0\0\0", 8, "offset 4: dimension 0 is 0"},
        {"\0\0\x08\2\xff\xff\xff\xff\xff\xff\xff\xff", 12, "offset 8: dimension 1 is 4294967295: "},
        {"\0\0\x08\1\0\0\0\3\7\7", 10, "truncated at offset 10: 3 bytes of data expected from "
         "offset 8 on, 1 are missing"},
        {"\0\0\x08\1\0\0\0\1\7\7", 10, "offset 9: 1 bytes follow the last element"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct idx_array a;
        tri_status status =
            idx_parse((const unsigned char *)cases[i].bytes, cases[i].n, "bad", &a);
        assert_int_equal(status, TRI_FAILED);
        assert_message("bad: ");
        assert_message(cases[i].message);
    }
}

static void gz_damaged(void **state) {
    (void)state;
    char *gz;
    unsigned char *out;
    size_t n, n_out;
    put_gz("gz", "wb", images, sizeof images);
    assert_int_equal(base_read_file(at("gz"), &gz, &n), TRI_OK);
    for (size_t size = 0; size < n; size++) {
        assert_int_equal(idx_unpack((unsigned char *)gz, size, "bad.gz", SIZE_MAX, &out, &n_out),
                         TRI_FAILED);
        assert_message("bad.gz: truncated at offset ");
        assert_null(out);
    }
    gz[n - 6] ^= 1; /* the checksum */
    assert_int_equal(idx_unpack((unsigned char *)gz, n, "bad.gz", SIZE_MAX, &out, &n_out),
                     TRI_FAILED);
    assert_message("not valid gzip data: incorrect data check");
    gz[n - 6] ^= 1;
    put("train-images-idx3-ubyte.gz", gz, n - 1);
    refused(idx(""), "train-images-idx3-ubyte.gz: truncated at offset");
    free(gz);
    FILE *f = fopen(at("gz"), "ab");
    assert_non_null(f);
    assert_int_equal(fputs("more", f) < 0, 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(base_read_file(at("gz"), &gz, &n), TRI_OK);
    assert_int_equal(idx_unpack((unsigned char *)gz, n, "bad.gz", SIZE_MAX, &out, &n_out),
                     TRI_FAILED);
    assert_message("bad.gz: offset ");
    assert_message("not valid gzip data: incorrect header check");
    free(gz);
}

/* The data after the header never end: a reader that unpacks them before it checks the header would
 * never return. */
static void gz_header_first(void **state) {
    (void)state;
    static const struct {
        const char *header, *message;
    } cases[] = {
        {"\0\0\x0d\3\0\0\0\1\0\0\0\1\0\0\0\1", "offset 2: elements of type 0d (floats)"},
        {"\0\0\x08\2\0\0\0\1\0\0\0\1\0\0\0\1", "offset 3: 2 dimensions; images have 3"},
        {"\0\0\x08\3\0\0\0\1\0\0\0\0\0\0\0\1", "offset 8: dimension 1 is 0"},
        {"\0\0\x08\3\0\0\0\2\0\0\0\3\0\0\0\4", "offset 40: 1 bytes follow the last element"},
    };
    static char file[1 << 20];
    for (size_t i = 0; i < COUNT(cases); i++) {
        char *gz;
        size_t n;
        memcpy(file, cases[i].header, 16);
        put_gz("gz", "wb", file, sizeof file);
        assert_int_equal(base_read_file(at("gz"), &gz, &n), TRI_OK);
        put("train-images-idx3-ubyte.gz", gz, n - 8);
        refused(idx(""), cases[i].message);
        free(gz);
    }
}

static void fashion_mnist(void **state) {
    (void)state;
    static const char path[] = "/usr/share/datasets/fashion-mnist";
    if (access(path, F_OK)) skip();
    static float image[784];
    int64_t label, count[10] = {0};
    tri_data *d = tri_data_open("idx:/usr/share/datasets/fashion-mnist,split=test", NULL, 0);
    assert_non_null(d);
    assert_int_equal(tri_data_size(d), 10000);
    for (int64_t i = 0; i < 10000; i++) {
        assert_int_equal(tri_data_get(d, i, 0, 0, (void *[]){image, &label}), TRI_OK);
        assert_in_range(label, 0, 9);
        count[label]++;
    }
    for (int i = 0; i < 10; i++) assert_int_equal(count[i], 1000);
    tri_data_free(d);
}

/* ---- the caller's sources ---- */

static const tri_field pair_fields[] = {{"x", TRI_F32, {1, {2}}}, {"y", TRI_I32, {0, {0}}}};

/* user: the sample to fail at, or null */
static int fill_pair(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    if (user && *(int64_t *)user == index) return 7;
    ((float *)out[0])[0] = (float)index;
    ((float *)out[0])[1] = (float)epoch;
    *(int32_t *)out[1] = (int32_t)seed;
    return 0;
}

static tri_status get(tri_data *d, int64_t index, int64_t epoch) {
    float x[2] = {0};
    int32_t y = 0;
    tri_status status = tri_data_get(d, index, epoch, 9, (void *[]){x, &y});
    if (!status) assert_true(x[0] == (float)index && x[1] == (float)epoch && y == 9);
    return status;
}

static void generator(void **state) {
    (void)state;
    int64_t fail_at = 3;
    tri_data *d = tri_data_new("gen", 5, pair_fields, 2, fill_pair, &fail_at, false);
    assert_non_null(d);
    assert_int_equal(get(d, 4, 1), TRI_OK);
    assert_int_equal(get(d, 0, 0), TRI_OK);
    assert_int_equal(get(d, 0, 0), TRI_OK);
    assert_int_equal(get(d, 3, 2), TRI_FAILED);
    assert_message("data 'gen': the fill function returned 7 for sample 3 of epoch 2");
    assert_int_equal(get(d, 5, 0), TRI_USAGE);
    assert_int_equal(get(d, 0, -1), TRI_USAGE);
    tri_data_free(d);
    assert_int_equal(get(NULL, 0, 0), TRI_USAGE);
    assert_int_equal(tri_data_size(NULL), 0);
    tri_data_free(NULL);
}

static void sequential(void **state) {
    (void)state;
    tri_data *d = tri_data_new("seq", 3, pair_fields, 2, fill_pair, NULL, true);
    assert_non_null(d);
    assert_int_equal(get(d, 0, 0), TRI_OK);
    assert_int_equal(get(d, 2, 0), TRI_USAGE);
    assert_message("data 'seq' is sequential: its next sample is 1 of epoch 0, not 2 of epoch 0");
    assert_int_equal(get(d, 0, 0), TRI_USAGE);
    assert_int_equal(get(d, 1, 0), TRI_OK);
    assert_int_equal(get(d, 0, 1), TRI_OK); /* the rest of epoch 0 was left out */
    assert_int_equal(get(d, 1, 1), TRI_OK);
    assert_int_equal(get(d, 2, 1), TRI_OK);
    assert_int_equal(get(d, 0, 3), TRI_USAGE);
    assert_int_equal(get(d, 0, 2), TRI_OK);
    tri_data_free(d);
}

static void free_count(void *user) { ++*(int *)user; }

static void wrong_sources(void **state) {
    (void)state;
    const tri_field same[] = {pair_fields[0], pair_fields[0]};
    const tri_field nameless = {"", TRI_F32, {0, {0}}}, zero = {"z", TRI_F32, {1, {0}}};
    const tri_field large = {"l", TRI_F32, {2, {INT64_C(1) << 40, INT64_C(1) << 40}}};
    const tri_field deep = {"d", TRI_F32, {8, {1, 1, 1, 1, 1, 1, 1, 1}}};
    static const struct {
        int64_t size;
        int n;
        const char *message;
    } counts[] = {
        {0, 1, "size is 0"}, {1, 0, "at least one field"}, {1, TRI_MAX_FIELDS + 1, "65 fields"}};
    for (size_t i = 0; i < COUNT(counts); i++) {
        assert_null(
            tri_data_new("w", counts[i].size, pair_fields, counts[i].n, fill_pair, NULL, false));
        assert_message(counts[i].message);
    }
    int freed = 0;
    assert_null(data_make("w", 1, same, 2, fill_pair, &freed, false, free_count));
    assert_message("data 'w': two fields have the name 'x'");
    assert_int_equal(freed, 1);
    assert_null(tri_data_new(NULL, 1, &nameless, 1, fill_pair, NULL, false));
    assert_message("field 0 has no name");
    assert_null(tri_data_new("w", 1, &zero, 1, fill_pair, NULL, false));
    assert_message("field 'z': its dimension 0 is 0");
    assert_null(tri_data_new("w", 1, &large, 1, fill_pair, NULL, false));
    assert_null(tri_data_new("w", 1, &deep, 1, fill_pair, NULL, false));
    assert_message("has 8 dimensions; a sample has 0 to 7");
    assert_null(tri_data_new("w", 1, pair_fields, 1, NULL, NULL, false));
    tri_data_free(data_make("w", 1, pair_fields, 2, fill_pair, &freed, false, free_count));
    assert_int_equal(freed, 2);
}

/* ---- synthetic data ---- */

static const tri_field many[] = {
    {"x", TRI_F32, {2, {10, 10}}}, {"a", TRI_I64, {1, {100}}}, {"b", TRI_I32, {1, {100}}},
    {"c", TRI_U8, {1, {100}}},     {"d", TRI_BOOL, {1, {100}}},
};
static const int64_t many_below[] = {0, 1000, 0, 256, 0};

struct sample {
    float x[100];
    int64_t a[100];
    int32_t b[100];
    uint8_t c[100], d[100];
};

static void draw(tri_data *d, int64_t index, struct sample *s) {
    memset(s, 0, sizeof *s);
    assert_int_equal(tri_data_get(d, index, 0, 0, (void *[]){s->x, s->a, s->b, s->c, s->d}),
                     TRI_OK);
}

static void synthetic_values(void **state) {
    (void)state;
    tri_data *d = data_synthetic(many, many_below, 5, 1000, 1);
    assert_non_null(d);
    double sum = 0, squares = 0, a = 0, b = 0;
    struct sample s;
    for (int64_t i = 0; i < 100; i++) {
        draw(d, i, &s);
        for (int k = 0; k < 100; k++) {
            sum += s.x[k];
            squares += s.x[k] * s.x[k];
            assert_in_range(s.a[k], 0, 999);
            assert_in_range(s.b[k], 0, 1);
            assert_in_range(s.d[k], 0, 1);
            a += (double)s.a[k];
            b += s.b[k];
        }
    }
    /* of 10000 values; the bounds are five standard deviations */
    assert_true(fabs(sum / 1e4) < 0.05 && fabs(squares / 1e4 - 1) < 0.071);
    assert_true(fabs(a / 1e4 - 499.5) < 14.5 && fabs(b / 1e4 - 0.5) < 0.025);
    tri_data_free(d);
}

static void synthetic_below(void **state) {
    (void)state;
    const tri_field f = {"w", TRI_F32, {1, {1000}}}, h = {"w", TRI_BF16, {1, {1000}}};
    const int64_t below = 3;
    tri_data *d = data_synthetic(&f, &below, 1, 1, 1), *e = data_synthetic(&h, &below, 1, 1, 1);
    assert_non_null(d);
    assert_non_null(e);
    float w[1000];
    uint16_t b[1000];
    assert_int_equal(tri_data_get(d, 0, 0, 0, (void *[]){w}), TRI_OK);
    assert_int_equal(tri_data_get(e, 0, 0, 0, (void *[]){b}), TRI_OK);
    double sum = 0;
    for (size_t i = 0; i < 1000; i++) {
        assert_true(w[i] >= 0 && w[i] < 3);
        assert_true(convert_load(TRI_BF16, b, i) < 3);
        sum += (double)w[i];
    }
    assert_true(fabs(sum / 1000 - 1.5) < 0.14); /* five standard deviations */
    tri_data_free(d);
    tri_data_free(e);
}

/* A function of seed, name and index: independent of the order of calls, the other fields and the
 * epoch. */
static void synthetic_is_pure(void **state) {
    (void)state;
    tri_data *d = data_synthetic(many, many_below, 5, 1000, 1);
    tri_data *alone = data_synthetic(&many[1], &many_below[1], 1, 10, 1);
    tri_data *other = data_synthetic(many, many_below, 5, 1000, 2);
    assert_non_null(d);
    assert_non_null(alone);
    assert_non_null(other);
    struct sample s, t;
    int64_t a[100];
    draw(d, 7, &s);
    draw(d, 3, &t);
    assert_memory_not_equal(s.x, t.x, sizeof s.x);
    draw(d, 7, &t);
    assert_memory_equal(&s, &t, sizeof s);
    assert_int_equal(tri_data_get(alone, 7, 3, 99, (void *[]){a}), TRI_OK);
    assert_memory_equal(a, s.a, sizeof a);
    draw(other, 7, &t);
    assert_memory_not_equal(s.x, t.x, sizeof s.x);
    tri_data_free(d);
    tri_data_free(alone);
    tri_data_free(other);
    const int64_t below = 257;
    assert_null(data_synthetic(&many[3], &below, 1, 10, 1));
    assert_message("field 'c': below 257 is not in 0 to 256");
}

/* The same numbers as in fp32, rounded. */
static void synthetic_halves(void **state) {
    (void)state;
    enum { N = 20000 };
    static float x[N];
    static uint16_t h[N];
    for (int type = TRI_BF16; type <= TRI_F16; type++) {
        const tri_field f32 = {"x", TRI_F32, {1, {N}}}, half = {"x", (tri_type)type, {1, {N}}};
        const int64_t below = 0;
        tri_data *d = data_synthetic(&f32, &below, 1, 1, 1);
        tri_data *e = data_synthetic(&half, &below, 1, 1, 1);
        assert_non_null(d);
        assert_non_null(e);
        assert_int_equal(tri_data_get(d, 0, 0, 0, (void *[]){x}), TRI_OK);
        assert_int_equal(tri_data_get(e, 0, 0, 0, (void *[]){h}), TRI_OK);
        for (int i = 0; i < N; i++)
            assert_int_equal(h[i],
                             (type == TRI_F16 ? convert_f32_to_f16 : convert_f32_to_bf16)(x[i]));
        tri_data_free(d);
        tri_data_free(e);
    }
}

/* ---- the order of samples ---- */

static void sampler_covers(void **state) {
    (void)state;
#define CASE(n, of, key, order) {.size = n, .batch = of, .seed = key, .shuffle = order}
    static const struct sampler cases[] = {CASE(60, 6, 1, true), CASE(60, 6, 1, false),
                                           CASE(61, 7, 2, true), CASE(5, 5, 3, true),
                                           CASE(1, 1, 4, true)};
    for (size_t c = 0; c < COUNT(cases); c++) {
        struct sampler sampler = cases[c], *s = &sampler;
        int64_t steps;
        assert_int_equal(sampler_steps(s, &steps), TRI_OK);
        assert_int_equal(steps, s->size / s->batch);
        for (int64_t e = 0; e < 4; e++) {
            int seen[64] = {0};
            for (int64_t i = 0; i < steps * s->batch; i++) {
                uint64_t index;
                sampler_seek(s, e * steps + i / s->batch);
                sampler_take(s, i % s->batch, 1, &index);
                assert_int_equal(s->epoch, e);
                assert_in_range(index, 0, s->size - 1);
                assert_int_equal(seen[index]++, 0);
                if (!s->shuffle) assert_int_equal(index, i);
            }
        }
    }
}

/* The number of the first 1000 places of an epoch at which two samplers differ. */
static int difference(struct sampler s, struct sampler t, int64_t epoch_s, int64_t epoch_t) {
    int n = 0;
    for (int64_t i = 0; i < 1000; i++) {
        uint64_t a, b;
        sampler_seek(&s, epoch_s * 10 + i / 100);
        sampler_seek(&t, epoch_t * 10 + i / 100);
        sampler_take(&s, i % 100, 1, &a);
        sampler_take(&t, i % 100, 1, &b);
        n += a != b;
    }
    return n;
}

static void sampler_shuffles(void **state) {
    (void)state;
    const struct sampler s = {.size = 1000, .batch = 100, .seed = 1, .shuffle = true},
                         other = {.size = 1000, .batch = 100, .seed = 2, .shuffle = true},
                         straight = {.size = 1000, .batch = 100, .seed = 1};
    assert_int_equal(difference(s, s, 1, 1), 0);
    assert_in_range(difference(s, s, 0, 1), 980, 1000);
    assert_in_range(difference(s, other, 0, 0), 980, 1000);
    assert_in_range(difference(s, straight, 0, 0), 980, 1000);
}

static void sampler_refuses(void **state) {
    (void)state;
    int64_t steps;
    assert_int_equal(sampler_steps(&(struct sampler){.size = 40, .batch = 64}, &steps), TRI_USAGE);
    assert_message("the data has 40 samples, fewer than the batch of 64");
    assert_int_equal(sampler_steps(&(struct sampler){.size = 40}, &steps), TRI_USAGE);
    assert_message("a batch of 0 samples");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(specs),
        cmocka_unit_test_teardown(idx_plain_and_gz, empty_directory),
        cmocka_unit_test_teardown(idx_files_that_disagree, empty_directory),
        cmocka_unit_test_teardown(gz_header_first, empty_directory),
        cmocka_unit_test(idx_damaged),
        cmocka_unit_test_teardown(gz_damaged, empty_directory),
        cmocka_unit_test(fashion_mnist),
        cmocka_unit_test(generator),
        cmocka_unit_test(sequential),
        cmocka_unit_test(wrong_sources),
        cmocka_unit_test(synthetic_values),
        cmocka_unit_test(synthetic_below),
        cmocka_unit_test(synthetic_is_pure),
        cmocka_unit_test(synthetic_halves),
        cmocka_unit_test(sampler_covers),
        cmocka_unit_test(sampler_shuffles),
        cmocka_unit_test(sampler_refuses),
    };
    return cmocka_run_group_tests_name("data", tests, make_directory, remove_directory);
}
