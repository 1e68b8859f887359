/* SPDX-License-Identifier: Apache-2.0
 * From a picture's file to the numbers that a network is given: a part of it at the network's size,
 * perhaps mirrored and with other colours, normalised. What is drawn follows from seed, epoch and
 * sample alone. */
#ifndef DATA_AUGMENT_H
#define DATA_AUGMENT_H

#include "data/source.h"
#include "data/picture.h"
#include "data/resize.h"

/* As they stand in a spec; pairs and triples have '/' between their numbers. */
struct augment_settings {
    int64_t size, resize, max_pixels;
    const char *way, *scale, *ratio, *jitter, *mean, *std, *shrink;
    double flip;
};
#define AUGMENT_DEFAULTS {.size = 224, .max_pixels = PICTURE_MAX_PIXELS, .scale = "0.08/1",       \
                          .ratio = "0.75/1.3333333333333333", .jitter = "0/0/0",                  \
                          .mean = "0.485/0.456/0.406", .std = "0.229/0.224/0.225",                \
                          .shrink = "yes", .flip = 0.5}
/* Rows for data_parse_options. */
#define AUGMENT_OPTIONS(s)                                                                        \
    {"size", DATA_INT | DATA_PREPARES, &(s)->size}, {"augment", DATA_TEXT, &(s)->way},                            \
    {"resize", DATA_INT | DATA_PREPARES, &(s)->resize}, {"scale", DATA_TEXT, &(s)->scale},                        \
    {"ratio", DATA_TEXT, &(s)->ratio}, {"flip", DATA_FLOAT, &(s)->flip},                          \
    {"jitter", DATA_TEXT, &(s)->jitter}, {"mean", DATA_TEXT | DATA_PREPARES, &(s)->mean},                         \
    {"std", DATA_TEXT | DATA_PREPARES, &(s)->std}, {"shrink", DATA_TEXT | DATA_PREPARES, &(s)->shrink},                           \
    {"max-pixels", DATA_INT, &(s)->max_pixels}

struct augment {
    int size;    /* of the result: size x size */
    bool grey;   /* one channel, of the luminance; else three */
    bool random; /* a random part; else the middle, the shorter side being made `resize` before */
    int resize;
    bool shrink; /* whether files may be read at a fraction of their size, see picture.h */
    double scale[2], ratio[2], flip;
    double jitter[3]; /* brightness, contrast, saturation */
    int64_t max_pixels;
    float value[3][256]; /* of a pixel's colours */
};

/* Three numbers, or one for all three, with '/' between them. */
tri_status augment_numbers(const char *spec, const char *key, const char *text, int n, double *out);
/* value[c][i] = (i / 255 - mean[c]) / std[c] */
tri_status augment_normalise(const char *spec, const char *mean, const char *std,
                             float value[3][256]);
/* random: what stands if the settings do not say. */
tri_status augment_make(const char *spec, const struct augment_settings *s, bool random,
                        struct augment *out);

/* What one thread needs for it. */
struct augmenter {
    struct picture_decoder *decoder;
    struct resize resize;
    unsigned char *rgb; /* the result before it is normalised */
};
tri_status augmenter_open(struct augmenter *w, const struct augment *a);
void augmenter_close(struct augmenter *w);

/* A picture's file, named `name`, to out[channels][size][size]. key: of all that is drawn. */
tri_status augment_picture(const struct augment *a, struct augmenter *w,
                           const unsigned char *bytes, size_t n, const char *name, uint64_t key,
                           float *out);
uint64_t augment_key(uint64_t seed, int64_t epoch, int64_t index);

/* The random part of a picture that is taken: area and shape are drawn, ten times if need be until
 * it fits, else the largest part in the middle whose shape is allowed. */
struct augment_box {
    int x, y, width, height;
};
struct augment_box augment_box(const struct augment *a, struct picture_size size, uint64_t key);

/* Of small pictures with `pad` pixels around them: 0 to 2 * pad, and half of them mirrored. */
struct augment_shift {
    int x, y;
    bool mirrored;
};
struct augment_shift augment_shift(int pad, uint64_t key);

#endif
