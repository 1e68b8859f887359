/* SPDX-License-Identifier: Apache-2.0
 * From a picture file to a network's input: a part of the picture, scaled to the input's size,
 * maybe mirrored and with changed colours, normalised. All random choices follow from seed, epoch
 * and sample alone. */
#ifndef DATA_AUGMENT_H
#define DATA_AUGMENT_H

#include "data/source.h"
#include "data/picture.h"
#include "data/resize.h"

/* As written in a spec; '/' separates the numbers of pairs and triples. */
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
#define AUGMENT_OPTIONS(s)                                                                  \
    {"size", DATA_INT | DATA_PREPARES, &(s)->size}, {"augment", DATA_TEXT, &(s)->way},      \
    {"resize", DATA_INT | DATA_PREPARES, &(s)->resize}, {"scale", DATA_TEXT, &(s)->scale},  \
    {"ratio", DATA_TEXT, &(s)->ratio}, {"flip", DATA_FLOAT, &(s)->flip},                    \
    {"jitter", DATA_TEXT, &(s)->jitter}, {"mean", DATA_TEXT | DATA_PREPARES, &(s)->mean},   \
    {"std", DATA_TEXT | DATA_PREPARES, &(s)->std},                                          \
    {"shrink", DATA_TEXT | DATA_PREPARES, &(s)->shrink}, {"max-pixels", DATA_INT, &(s)->max_pixels}

struct augment {
    int size;    /* the result is size x size */
    bool grey;   /* one channel, the luminance; else three */
    bool random; /* a random part; else the middle, after the shorter side is scaled to `resize` */
    int resize;
    bool shrink; /* whether files may be read at a fraction of their size, see picture.h */
    double scale[2], ratio[2], flip;
    double jitter[3]; /* brightness, contrast, saturation */
    int64_t max_pixels;
    float value[3][256]; /* for each value of a pixel */
};

/* value[c][i] = (i / 255 - mean[c]) / std[c] */
tri_status augment_normalise(const char *spec, const char *mean, const char *std,
                             float value[3][256]);
/* random: the default of the setting `augment`. */
tri_status augment_make(const char *spec, const struct augment_settings *s, bool random,
                        struct augment *out);

/* The buffers and decoder of one thread. */
struct augmenter {
    struct picture_decoder *decoder;
    struct resize resize;
    unsigned char *rgb; /* the result before normalisation */
};
tri_status augmenter_open(struct augmenter *w, const struct augment *a);
void augmenter_close(struct augmenter *w);

/* Converts a picture file, named `name`, to out[channels][size][size]. key: of all random
 * choices. */
tri_status augment_picture(const struct augment *a, struct augmenter *w,
                           const unsigned char *bytes, size_t n, const char *name, uint64_t key,
                           float *out);
uint64_t augment_key(uint64_t seed, int64_t epoch, int64_t index);

/* The random part of a picture: area and aspect ratio are drawn up to ten times until the part
 * fits; else the largest allowed part in the middle. */
struct augment_box {
    int x, y, width, height;
};
struct augment_box augment_box(const struct augment *a, struct picture_size size, uint64_t key);

/* For small pictures with `pad` pixels around them: shifts are 0 to 2 * pad; half are mirrored. */
struct augment_shift {
    int x, y;
    bool mirrored;
};
struct augment_shift augment_shift(int pad, uint64_t key);

#endif
