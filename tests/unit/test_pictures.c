/* SPDX-License-Identifier: Apache-2.0
 * Pictures: decoding, faulty files, resizing, choosing a part. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these headers */
#include <setjmp.h>

#include <cmocka.h>
#include <math.h>

#include "data/augment.h"
#include "unit/pictures_made.h"

static void assert_message(const char *part) {
    if (!strstr(tri_message(), part) || strchr(tri_message(), '\n'))
        fail_msg("the message is \"%s\", which lacks \"%s\"", tri_message(), part);
}

static struct picture_decoder *decoder;

static int set_up(void **state) {
    (void)state;
    decoder = picture_decoder_new(1 << 22);
    return !decoder;
}

static int tear_down(void **state) {
    (void)state;
    picture_decoder_free(decoder);
    return 0;
}

static struct picture read_part(const struct made *m, const struct picture_part *part) {
    struct picture_size size;
    struct picture p;
    assert_int_equal(picture_open(decoder, m->bytes, m->n, "p", &size), TRI_OK);
    struct picture_part all = {0, 0, size.width, size.height, 1};
    assert_int_equal(picture_read(decoder, part ? part : &all, &p), TRI_OK);
    return p;
}

static void refused(const struct made *m, const char *message) {
    struct picture_size size;
    struct picture p;
    tri_status status = picture_open(decoder, m->bytes, m->n, "some.jpg", &size);
    if (!status)
        status =
            picture_read(decoder, &(struct picture_part){0, 0, size.width, size.height, 1}, &p);
    assert_int_equal(status, PICTURE_BAD);
    assert_message("some.jpg: ");
    assert_message(message);
}

/* ---- JPEG ---- */

static int difference(const struct picture *p, int (*right)(int x, int y, int c)) {
    int most = 0;
    for (int y = 0; y < p->height; y++)
        for (int x = 0; x < p->width; x++)
            for (int c = 0; c < 3; c++) {
                int d = p->rgb[(size_t)y * p->stride + (size_t)(3 * x + c)] - right(x, y, c);
                if (abs(d) > most) most = abs(d);
            }
    return most;
}

static int plain(int x, int y, int c) { return made_pixel(x, y, c, 0); }
static int grey(int x, int y, int c) { return (void)c, made_pixel(x, y, 0, 0); }
/* Four channels hold light: what remains of it after all inks. */
static int light(int x, int y, int c) {
    return (made_pixel(x, y, c, 0) * made_pixel(x, y, 3, 0) + 127) / 255;
}
static int inks(int x, int y, int c) {
    return ((255 - made_pixel(x, y, c, 0)) * (255 - made_pixel(x, y, 3, 0)) + 127) / 255;
}

static void jpeg_colours(void **state) {
    (void)state;
    static const struct {
        int channels;
        J_COLOR_SPACE from, to;
        bool no_adobe;
        int (*right)(int, int, int);
    } cases[] = {
        {3, JCS_RGB, JCS_YCbCr, false, plain},    {1, JCS_GRAYSCALE, JCS_GRAYSCALE, false, grey},
        {3, JCS_RGB, JCS_RGB, false, plain},      {4, JCS_CMYK, JCS_CMYK, false, light},
        {4, JCS_CMYK, JCS_YCCK, false, light},    {4, JCS_CMYK, JCS_CMYK, true, inks},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int progressive = 0; progressive < 2; progressive++) {
            struct made m = made_jpeg(&(struct made_jpeg){67, 45, cases[i].channels, 100, 0, 0,
                                                          cases[i].from, cases[i].to, progressive,
                                                          cases[i].no_adobe});
            struct picture p = read_part(&m, NULL);
            assert_int_equal(p.width, 67);
            assert_int_equal(p.height, 45);
            /* smooth, except at the pattern's turning points; YCCK and YCbCr may be subsampled */
            int d = difference(&p, cases[i].right);
            if (d > (cases[i].to == JCS_YCbCr || cases[i].to == JCS_YCCK ? 60 : 8))
                fail_msg("case %zu: %d levels off", i, d);
            free(m.bytes);
        }
}

/* Any part has the bits that it has in the whole picture, at every size of the decoder. */
static void jpeg_parts(void **state) {
    (void)state;
    for (int k = 0; k < 240; k++) {
        int width = 31 + k * 7 % 170, height = 20 + k * 13 % 140, shrink = 1 << k % 4;
        struct made m = made_jpeg(&(struct made_jpeg){
            width, height, k % 5 ? 3 : 1, 85, 1 + k / 4 % 2, k, k % 5 ? JCS_RGB : JCS_GRAYSCALE,
            k % 5 ? JCS_YCbCr : JCS_GRAYSCALE, k % 3 == 1, false});
        struct picture whole = read_part(&m, &(struct picture_part){0, 0, width, height, shrink});
        assert_int_equal(whole.width, (width + shrink - 1) / shrink);
        assert_int_equal(whole.height, (height + shrink - 1) / shrink);
        size_t bytes = whole.stride * (size_t)whole.height;
        unsigned char *kept = malloc(bytes);
        memcpy(kept, whole.rgb, bytes);
        struct picture_part part = {k * 5 % (width - 9), k * 11 % (height - 9), 0, 0, shrink};
        part.width = 1 + k * 17 % (width - part.x);
        part.height = 1 + k * 3 % (height - part.y);
        struct picture p = read_part(&m, &part);
        int left = part.x / shrink, right = (part.x + part.width + shrink - 1) / shrink;
        int top = part.y / shrink, bottom = (part.y + part.height + shrink - 1) / shrink;
        assert_true(p.x <= left && p.x + p.width >= right && p.y <= top &&
                    p.y + p.height >= bottom);
        for (int y = top; y < bottom; y++)
            if (memcmp(p.rgb + (size_t)(y - p.y) * p.stride + 3 * (size_t)(left - p.x),
                       kept + (size_t)y * whole.stride + 3 * (size_t)left,
                       3 * (size_t)(right - left)))
                fail_msg("%d x %d at 1/%d, part %d %d %d %d, row %d differs", width, height, shrink,
                         part.x, part.y, part.width, part.height, y);
        free(kept);
        free(m.bytes);
    }
}

static void jpeg_damaged(void **state) {
    (void)state;
    struct made m = made_rgb_jpeg(200, 150, 1);
    refused(&(struct made){m.bytes, 0}, "empty: zero bytes");
    refused(&(struct made){m.bytes, 1}, "neither a JPEG nor a PNG picture: it begins with ff");
    for (size_t n = 3; n < m.n; n += n < 700 ? 1 : 37) {
        unsigned char *cut = malloc(n); /* so that a sanitizer sees reads beyond the end */
        memcpy(cut, m.bytes, n);
        refused(&(struct made){cut, n}, n > 1000 ? "truncated" : "");
        free(cut);
    }
    struct made zeros = {malloc(m.n), m.n}; /* cut off, and filled with zeros */
    memcpy(zeros.bytes, m.bytes, m.n);
    memset(zeros.bytes + m.n / 2, 0, m.n - m.n / 2);
    refused(&zeros, "truncated");
    memcpy(zeros.bytes, m.bytes, m.n);
    memcpy(zeros.bytes + m.n / 2, "\xff\xd9", 2); /* an end mark in the middle */
    refused(&zeros, "premature end");
    free(zeros.bytes);
    free(m.bytes);
    refused(&(struct made){(unsigned char *)"GIF89a", 6}, "begins with 47 49 46 38");
}

static void too_large(void **state) {
    (void)state;
    struct made m = made_png(4000, 1100, PNG_COLOR_TYPE_GRAY, 1, false);
    refused(&m, "4000 x 1100 pixels: more than the limit of 4194304");
    free(m.bytes);
    m = made_png(70000, 1, PNG_COLOR_TYPE_GRAY, 1, false);
    refused(&m, "at most 65536 per side");
    free(m.bytes);
    m = made_rgb_jpeg(3000, 1500, 0);
    refused(&m, "3000 x 1500 pixels: more than the limit");
    free(m.bytes);
}

/* ---- PNG ---- */

static int png_depth, png_type;

static int png_right(int x, int y, int c) {
    bool colour = png_type & PNG_COLOR_MASK_COLOR;
    int v = made_pixel(x, y, colour && png_type != PNG_COLOR_TYPE_PALETTE ? c : 0, 0);
    if (png_depth < 8) v >>= 8 - png_depth;
    if (png_type == PNG_COLOR_TYPE_PALETTE) return c == 0 ? v : c == 1 ? 255 - v : v / 2;
    return png_depth < 8 ? v * 255 / ((1 << png_depth) - 1) : v;
}

static void png_kinds(void **state) {
    (void)state;
    static const int types[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_PALETTE, PNG_COLOR_TYPE_RGB,
                                PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB_ALPHA};
    for (size_t t = 0; t < COUNT(types); t++)
        for (int depth = 1; depth <= 16; depth *= 2) {
            bool few = depth < 8 && types[t] != PNG_COLOR_TYPE_GRAY &&
                       types[t] != PNG_COLOR_TYPE_PALETTE;
            if (few || (depth == 16 && types[t] == PNG_COLOR_TYPE_PALETTE)) continue;
            png_depth = depth;
            png_type = types[t];
            struct made m = made_png(53, 31, png_type, depth, depth == 8);
            struct picture p = read_part(&m, NULL);
            /* grey with alpha, for which made_row has two channels, and for colours three and
             * one */
            assert_int_equal(difference(&p, png_right), 0);
            for (size_t n = 0; n < m.n; n += 13) {
                struct made cut = {m.bytes, n};
                refused(&cut, n > 8 ? "truncated" : "");
            }
            m.bytes[m.n / 2] ^= 0x40;
            refused(&m, "not a valid PNG picture");
            free(m.bytes);
        }
}

/* ---- resizing ---- */

/* The definition in doubles, without intermediate rounding. */
static double ideal_weight(double centre, double support, int k) {
    double d = fabs((k - centre + 0.5) / support);
    return d < 1 ? 1 - d : 0;
}

static double ideal(const unsigned char *rgb, int width, int height, int out_w, int out_h, int x,
                    int y, int c) {
    double rx = (double)width / out_w, ry = (double)height / out_h, sum = 0, weights = 0;
    double sx = rx > 1 ? rx : 1, sy = ry > 1 ? ry : 1, cx = (x + 0.5) * rx, cy = (y + 0.5) * ry;
    for (int j = 0; j < height; j++)
        for (int i = 0; i < width; i++) {
            double w = ideal_weight(cx, sx, i) * ideal_weight(cy, sy, j);
            sum += w * rgb[3 * (j * width + i) + c];
            weights += w;
        }
    return sum / weights;
}

static void resizing(void **state) {
    (void)state;
    static const int sizes[][4] = {{40, 30, 16, 16}, {16, 16, 40, 30}, {33, 9, 5, 7},
                                   {1, 1, 4, 3},     {64, 2, 3, 2},    {17, 23, 17, 23}};
    for (size_t s = 0; s < COUNT(sizes); s++) {
        int w = sizes[s][0], h = sizes[s][1], ow = sizes[s][2], oh = sizes[s][3];
        unsigned char *rgb = malloc((size_t)(3 * w * h + 1)), *out = malloc((size_t)(3 * ow * oh));
        for (int i = 0; i < 3 * w * h; i++)
            rgb[i] = (unsigned char)(i * 7919 % 251 + (i % 3 == 2) * 4);
        struct resize r = {0};
        struct resize_span x = {0, w, w, ow, 0, ow}, y = {0, h, h, oh, 0, oh};
        assert_int_equal(resize_plan(&r, &x, &y), TRI_OK);
        assert_int_equal(resize_run(&r, rgb, 3 * (size_t)w, out), TRI_OK);
        for (int i = 0; i < 3 * ow * oh; i++) {
            double right = ideal(rgb, w, h, ow, oh, i / 3 % ow, i / 3 / ow, i % 3);
            assert_true(fabs(out[i] - right) <= 1.01);
        }
        /* Any window of the result has the same bits. */
        unsigned char *window = malloc((size_t)(3 * ow * oh));
        x.first = ow / 3, x.count = ow - ow / 3;
        y.first = oh / 2, y.count = oh - oh / 2;
        assert_int_equal(resize_plan(&r, &x, &y), TRI_OK);
        const unsigned char *from = rgb + 3 * (r.y.begin * w + r.x.begin);
        assert_int_equal(resize_run(&r, from, 3 * (size_t)w, window), TRI_OK);
        for (int j = 0; j < y.count; j++)
            assert_memory_equal(window + 3 * j * x.count, out + 3 * ((y.first + j) * ow + x.first),
                                3 * (size_t)x.count);
        resize_free(&r);
        free(window);
        free(out);
        free(rgb);
    }
}

/* Pillow 9.4 with 7 x 5 pixels, red 36 x + 3 y, green 50 y, blue (x * y * 11) % 256, and resize((4,
 * 3), BILINEAR) */
static void same_as_pillow(void **state) {
    (void)state;
    static const unsigned char right[] = {
        20, 21, 3, 76, 21, 10, 142, 21, 18, 198, 21, 26,
        25, 100, 12, 81, 100, 46, 147, 100, 86, 203, 100, 120,
        30, 179, 20, 86, 179, 82, 152, 179, 154, 208, 179, 139,
    };
    unsigned char rgb[7 * 5 * 3 + 1], out[4 * 3 * 3];
    for (int i = 0; i < 35; i++) {
        int x = i % 7, y = i / 7;
        rgb[3 * i] = (unsigned char)(36 * x + 3 * y);
        rgb[3 * i + 1] = (unsigned char)(50 * y);
        rgb[3 * i + 2] = (unsigned char)(x * y * 11 % 256);
    }
    struct resize r = {0};
    struct resize_span x = {0, 7, 7, 4, 0, 4}, y = {0, 5, 5, 3, 0, 3};
    assert_int_equal(resize_plan(&r, &x, &y), TRI_OK);
    assert_int_equal(resize_run(&r, rgb, 21, out), TRI_OK);
    assert_memory_equal(out, right, sizeof out);
    resize_free(&r);
}

/* ---- choosing a part ---- */

static struct augment settings(const char *way) {
    struct augment_settings s = AUGMENT_DEFAULTS;
    struct augment a;
    s.size = 24;
    s.way = way;
    assert_int_equal(augment_make("spec", &s, true, &a), TRI_OK);
    return a;
}

static void boxes(void **state) {
    (void)state;
    struct augment a = settings(NULL);
    double areas = 0, shapes = 0;
    int n = 20000;
    for (int i = 0; i < n; i++) {
        struct augment_box b = augment_box(&a, (struct picture_size){500, 375, true},
                                           augment_key(7, i % 3, i));
        assert_true(b.x >= 0 && b.y >= 0 && b.width > 0 && b.height > 0);
        assert_true(b.x + b.width <= 500 && b.y + b.height <= 375);
        double area = (double)b.width * b.height / (500 * 375), shape = (double)b.width / b.height;
        assert_true(area > 0.078 && area <= 1 && shape > 0.74 && shape < 1.35);
        areas += area / n;
        shapes += log(shape) / n;
    }
    /* Means over 400000 parts by the definition in double precision with other random numbers. */
    assert_true(fabs(areas - 0.4322) < 0.008);
    assert_true(fabs(shapes - 0.0300) < 0.006);
    /* No part fits these: the middle. */
    struct augment_box b = augment_box(&a, (struct picture_size){1000, 10, true}, 1);
    assert_int_equal(b.width, 13);
    assert_int_equal(b.height, 10);
    assert_int_equal(b.x, (1000 - 13) / 2);
    b = augment_box(&a, (struct picture_size){1, 1000, true}, 1);
    assert_true(b.width == 1 && b.height == 1);
}

static void draw(const struct augment *a, const struct made *m, uint64_t key, float *out) {
    struct augmenter w;
    assert_int_equal(augmenter_open(&w, a), TRI_OK);
    assert_int_equal(augment_picture(a, &w, m->bytes, m->n, "p", key, out), TRI_OK);
    augmenter_close(&w);
}

#define NUMBERS (3 * 24 * 24)

static void draws(void **state) {
    (void)state;
    struct augment a = settings(NULL), middle = settings("centre");
    struct made m = made_rgb_jpeg(160, 90, 3);
    float one[NUMBERS], other[NUMBERS];
    draw(&a, &m, 1, one);
    draw(&a, &m, 1, other);
    assert_memory_equal(one, other, sizeof one);
    draw(&a, &m, 2, other);
    assert_true(memcmp(one, other, sizeof one));
    draw(&middle, &m, 1, one);
    draw(&middle, &m, 2, other);
    assert_memory_equal(one, other, sizeof one);
    a.scale[0] = a.scale[1] = 1; /* the whole square, so that only mirroring varies */
    struct made square = made_rgb_jpeg(24, 24, 3);
    a.ratio[0] = a.ratio[1] = 1;
    a.flip = 0;
    draw(&a, &square, 1, one);
    a.flip = 1;
    draw(&a, &square, 1, other);
    for (int i = 0; i < NUMBERS; i++) assert_true(one[i] == other[i / 24 * 24 + 23 - i % 24]);
    a.jitter[0] = a.jitter[1] = a.jitter[2] = 0.4;
    draw(&a, &square, 1, one);
    assert_true(memcmp(one, other, sizeof one));
    /* which changes nothing, except for rounding */
    a.jitter[0] = a.jitter[1] = a.jitter[2] = 1e-9;
    draw(&a, &square, 1, one);
    for (int i = 0; i < NUMBERS; i++) assert_true(fabsf(one[i] - other[i]) < 0.03f);
    free(square.bytes);
    free(m.bytes);
}

static void wrong_settings(void **state) {
    (void)state;
    static const struct {
        const char *text[7]; /* mode, scale, ratio, jitter, mean, std, shrink */
        const char *message;
    } cases[] = {
        {{"none"}, "augment=none is neither centre nor random"},
        {{0, "0.5"}, NULL},
        {{0, "0.5/0.2"}, "scale=0.5/0.2"},
        {{0, "0/1"}, "scale=0/1"},
        {{0, "1/2/3"}, "is not 2 numbers separated by /"},
        {{0, "a/b"}, "is not 2 numbers"},
        {{0, 0, "2/1"}, "ratio=2/1"},
        {{0, 0, 0, "-1"}, "jitter=-1"},
        {{0, 0, 0, 0, "0.5/0.5"}, "mean=0.5/0.5 is not 3 numbers"},
        {{0, 0, 0, 0, 0, "1/0/1"}, "std=1/0/1 is not above 0"},
        {{0, 0, 0, 0, 0, 0, "maybe"}, "shrink=maybe is neither no nor yes"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct augment_settings s = AUGMENT_DEFAULTS;
        const char **at[] = {&s.way, &s.scale, &s.ratio, &s.jitter, &s.mean, &s.std, &s.shrink};
        struct augment a;
        for (size_t k = 0; k < COUNT(at); k++)
            if (cases[i].text[k]) *at[k] = cases[i].text[k];
        assert_int_equal(augment_make("spec", &s, true, &a), cases[i].message ? TRI_USAGE : TRI_OK);
        if (cases[i].message) assert_message(cases[i].message);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(jpeg_colours, set_up, tear_down),
        cmocka_unit_test_setup_teardown(jpeg_parts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(jpeg_damaged, set_up, tear_down),
        cmocka_unit_test_setup_teardown(png_kinds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(too_large, set_up, tear_down),
        cmocka_unit_test(resizing),
        cmocka_unit_test(same_as_pillow),
        cmocka_unit_test(boxes),
        cmocka_unit_test(draws),
        cmocka_unit_test(wrong_settings),
    };
    return cmocka_run_group_tests_name("pictures", tests, NULL, NULL);
}
