/* SPDX-License-Identifier: Apache-2.0
 * The part of a picture and its size follow torchvision's RandomResizedCrop, or Resize with
 * CenterCrop; colours follow its ColorJitter. */
#include "data/augment.h"

#include <math.h>
#include <stdlib.h>

#include "base/math.h"
#include "base/random.h"

/* The random numbers of a sample, by their index in the stream. */
enum { DRAW_FLIP, DRAW_ORDER, DRAW_COLOUR, DRAW_BOX = 8 };
#define TRIES 10

uint64_t augment_key(uint64_t seed, int64_t epoch, int64_t index) {
    uint64_t key = random_key(seed, base_hash_text("augment"));
    return random_key(random_key(key, (uint64_t)epoch), (uint64_t)index);
}

static double between(uint64_t key, uint64_t draw, double low, double high) {
    return low + (high - low) * random_uniform(key, 0, draw);
}

/* 0 to n - 1 */
static int pick(uint64_t key, uint64_t draw, int n) {
    return (int)(random_uniform(key, 0, draw) * n);
}

/* ---- settings ---- */

/* Reads n numbers separated by '/', or one for all. */
static tri_status numbers(const char *spec, const char *key, const char *text, int n,
                          double *out) {
    int i = 0;
    for (const char *p = text; i < n; i++) {
        char *end;
        out[i] = base_number(p, &end);
        bool last = !*end;
        if (end == p || !isfinite(out[i]) || (!last && *end != '/')) break;
        p = end + 1;
        if (!last) continue;
        for (int k = 1; !i && k < n; k++) out[k] = out[0];
        if (!i || i == n - 1) return TRI_OK;
        break;
    }
    return base_fail(TRI_USAGE, "data '%s': %s=%s is not %d numbers separated by /", spec, key,
                     text, n);
}

tri_status augment_normalise(const char *spec, const char *mean, const char *std,
                             float value[3][256]) {
    double m[3], s[3];
    tri_status status = numbers(spec, "mean", mean, 3, m);
    if (!status) status = numbers(spec, "std", std, 3, s);
    for (int c = 0; c < 3 && !status; c++) {
        if (!((float)s[c] > 0))
            return base_fail(TRI_USAGE, "data '%s': std=%s is not above 0", spec, std);
        for (int i = 0; i < 256; i++)
            value[c][i] = ((float)i / 255.0f - (float)m[c]) / (float)s[c];
    }
    return status;
}

static tri_status check_numbers(const char *spec, const struct augment_settings *s,
                                const struct augment *a) {
    if (s->size < 1 || s->size > 8192)
        return base_fail(TRI_USAGE, "data '%s': size=%lld; 1 to 8192 are possible", spec,
                         (long long)s->size);
    if (s->resize && (s->resize < s->size || s->resize > 16384))
        return base_fail(TRI_USAGE,
                         "data '%s': resize=%lld: the length of the shorter side must be %lld to "
                         "16384 for size=%lld",
                         spec, (long long)s->resize, (long long)s->size, (long long)s->size);
    if (s->max_pixels < 1 || s->max_pixels > INT64_C(1) << 30)
        return base_fail(TRI_USAGE, "data '%s': max-pixels=%lld; 1 to 2^30 are possible", spec,
                         (long long)s->max_pixels);
    if (!(a->scale[0] > 0 && a->scale[0] <= a->scale[1] && a->scale[1] <= 1))
        return base_fail(
            TRI_USAGE,
            "data '%s': scale=%s: fractions of the area, above 0 up to 1, the smaller one first",
            spec, s->scale);
    if (!(a->ratio[0] > 0 && a->ratio[0] <= a->ratio[1]))
        return base_fail(TRI_USAGE,
                         "data '%s': ratio=%s: width by height, above 0, the smaller one "
                         "first",
                         spec, s->ratio);
    if (!(a->flip >= 0 && a->flip <= 1))
        return base_fail(TRI_USAGE, "data '%s': flip=%g is not a probability", spec, a->flip);
    for (int i = 0; i < 3; i++)
        if (!(a->jitter[i] >= 0 && a->jitter[i] <= 16))
            return base_fail(TRI_USAGE, "data '%s': jitter=%s: each of brightness, contrast, "
                             "saturation is 0 to 16", spec, s->jitter);
    return TRI_OK;
}

tri_status augment_make(const char *spec, const struct augment_settings *s, bool random,
                        struct augment *out) {
    *out = (struct augment){.random = random, .flip = s->flip, .max_pixels = s->max_pixels};
    tri_status status = data_choose(spec, "augment", s->way, "centre", "random", &out->random);
    if (!status) status = data_choose(spec, "shrink", s->shrink, "no", "yes", &out->shrink);
    if (!status) status = numbers(spec, "scale", s->scale, 2, out->scale);
    if (!status) status = numbers(spec, "ratio", s->ratio, 2, out->ratio);
    if (!status) status = numbers(spec, "jitter", s->jitter, 3, out->jitter);
    if (!status) status = augment_normalise(spec, s->mean, s->std, out->value);
    if (!status) status = check_numbers(spec, s, out);
    if (status) return status;
    out->size = (int)s->size;
    out->resize = (int)(s->resize ? s->resize : s->size * 256 / 224);
    return TRI_OK;
}

tri_status augmenter_open(struct augmenter *w, const struct augment *a) {
    *w = (struct augmenter){.decoder = picture_decoder_new(a->max_pixels)};
    w->rgb = malloc((size_t)a->size * (size_t)a->size * 3);
    if (w->decoder && w->rgb) return TRI_OK;
    augmenter_close(w);
    return base_no_memory("pictures");
}

void augmenter_close(struct augmenter *w) {
    picture_decoder_free(w->decoder);
    resize_free(&w->resize);
    free(w->rgb);
    *w = (struct augmenter){0};
}

/* ---- which part ---- */

static struct augment_box middle(const struct augment *a, struct picture_size size) {
    struct augment_box box = {0, 0, size.width, size.height};
    double shape = (double)size.width / size.height;
    if (shape < a->ratio[0]) box.height = (int)lrint(size.width / a->ratio[0]);
    if (shape > a->ratio[1]) box.width = (int)lrint(size.height * a->ratio[1]);
    if (box.width < 1) box.width = 1;
    if (box.height < 1) box.height = 1;
    box.x = (size.width - box.width) / 2;
    box.y = (size.height - box.height) / 2;
    return box;
}

struct augment_box augment_box(const struct augment *a, struct picture_size size, uint64_t key) {
    double area = (double)size.width * size.height;
    double low = math_log(a->ratio[0]), high = math_log(a->ratio[1]);
    for (uint64_t draw = DRAW_BOX; draw < DRAW_BOX + 4 * TRIES; draw += 4) {
        double part = area * between(key, draw, a->scale[0], a->scale[1]);
        double shape = math_exp(between(key, draw + 1, low, high));
        double width = rint(sqrt(part * shape)), height = rint(sqrt(part / shape));
        if (width < 1 || height < 1 || width > size.width || height > size.height) continue;
        struct augment_box box = {.width = (int)width, .height = (int)height};
        box.x = pick(key, draw + 2, size.width - box.width + 1);
        box.y = pick(key, draw + 3, size.height - box.height + 1);
        return box;
    }
    return middle(a, size);
}

struct augment_shift augment_shift(int pad, uint64_t key) {
    return (struct augment_shift){.x = pick(key, DRAW_BOX, 2 * pad + 1),
                                  .y = pick(key, DRAW_BOX + 1, 2 * pad + 1),
                                  .mirrored = random_uniform(key, 0, DRAW_FLIP) < 0.5};
}

/* One dimension of the part, in pixels of the picture: begin .. begin + length become `size`
 * pixels, `count` of which are computed. */
struct side {
    int whole, begin, length;
    int64_t size, first;
    int count;
};

static void sides(const struct augment *a, struct picture_size size, uint64_t key, struct side *x,
                  struct side *y) {
    if (a->random) {
        struct augment_box box = augment_box(a, size, key);
        *x = (struct side){size.width, box.x, box.width, a->size, 0, a->size};
        *y = (struct side){size.height, box.y, box.height, a->size, 0, a->size};
        return;
    }
    bool wide = size.width > size.height;
    struct side *shorter = wide ? y : x, *longer = wide ? x : y;
    int few = wide ? size.height : size.width, many = wide ? size.width : size.height;
    int64_t length = (int64_t)a->resize * many / few;
    *shorter = (struct side){few, 0, few, a->resize, 0, a->size};
    *longer = (struct side){many, 0, many, length, 0, a->size};
    shorter->first = lrint((double)(shorter->size - a->size) / 2);
    longer->first = lrint((double)(longer->size - a->size) / 2);
}

/* The largest divisor at which the part still has as many pixels as the result. */
static int choose_shrink(const struct side *x, const struct side *y) {
    int shrink = 1;
    while (shrink < 8 && x->length / (2 * shrink) >= x->size && y->length / (2 * shrink) >= y->size)
        shrink *= 2;
    return shrink;
}

/* The same at 1/shrink of the size; `*begin` is the first pixel of the part. */
static struct resize_span span(const struct side *s, int shrink, int *begin) {
    int end = (s->begin + s->length + shrink - 1) / shrink;
    *begin = s->begin / shrink;
    return (struct resize_span){.from = (double)s->begin / shrink - *begin,
                                .to = (double)(s->begin + s->length) / shrink - *begin,
                                .limit = end - *begin, .size = s->size, .first = s->first,
                                .count = s->count};
}

/* The pixels begin + a->begin .. begin + a->end at 1/shrink of the size, in pixels of the
 * picture */
static void source(const struct resize_axis *a, int begin, int shrink, int whole, int *from,
                   int *n) {
    int end = (begin + a->end) * shrink;
    *from = (begin + a->begin) * shrink;
    *n = (end < whole ? end : whole) - *from;
}

static tri_status cut_out(const struct augment *a, struct augmenter *w, struct picture_size size,
                          uint64_t key) {
    struct side x, y;
    struct picture_part part;
    struct picture picture;
    int left, top;
    sides(a, size, key, &x, &y);
    int shrink = part.shrink = a->shrink && size.shrinks ? choose_shrink(&x, &y) : 1;
    struct resize_span across = span(&x, shrink, &left), down = span(&y, shrink, &top);
    tri_status status = resize_plan(&w->resize, &across, &down);
    if (status) return status;
    source(&w->resize.x, left, shrink, size.width, &part.x, &part.width);
    source(&w->resize.y, top, shrink, size.height, &part.y, &part.height);
    if ((status = picture_read(w->decoder, &part, &picture))) return status;
    size_t skip_x = (size_t)(left + w->resize.x.begin - picture.x);
    size_t skip_y = (size_t)(top + w->resize.y.begin - picture.y);
    return resize_run(&w->resize, picture.rgb + skip_y * picture.stride + 3 * skip_x,
                      picture.stride, w->rgb);
}

/* ---- colours ---- */

#define ONE 65536

static int grey(const unsigned char *p) {
    return (19595 * p[0] + 38470 * p[1] + 7471 * p[2] + ONE / 2) >> 16;
}

/* other + factor * (v - other) */
static unsigned char blend(int other, int v, int64_t factor) {
    int64_t sum = ((int64_t)other * ONE + factor * (v - other) + ONE / 2) >> 16;
    return (unsigned char)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static void brightness(unsigned char *rgb, size_t pixels, int64_t factor) {
    for (size_t i = 0; i < 3 * pixels; i++) rgb[i] = blend(0, rgb[i], factor);
}

static void contrast(unsigned char *rgb, size_t pixels, int64_t factor) {
    uint64_t sum = 0;
    for (size_t i = 0; i < pixels; i++) sum += (uint64_t)grey(rgb + 3 * i);
    int mean = (int)((sum + pixels / 2) / pixels);
    for (size_t i = 0; i < 3 * pixels; i++) rgb[i] = blend(mean, rgb[i], factor);
}

static void saturation(unsigned char *rgb, size_t pixels, int64_t factor) {
    for (unsigned char *p = rgb; p < rgb + 3 * pixels; p += 3) {
        int g = grey(p);
        for (int c = 0; c < 3; c++) p[c] = blend(g, p[c], factor);
    }
}

/* Multiplies each by a factor around 1, in random order. */
static void jitter(const struct augment *a, unsigned char *rgb, uint64_t key) {
    static void (*const change[])(unsigned char *, size_t, int64_t) = {brightness, contrast,
                                                                       saturation};
    static const unsigned char orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                               {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    const unsigned char *order = orders[pick(key, DRAW_ORDER, 6)];
    for (int i = 0; i < 3; i++) {
        double by = a->jitter[order[i]];
        if (by == 0) continue;
        double factor = between(key, DRAW_COLOUR + order[i], by < 1 ? 1 - by : 0, 1 + by);
        change[order[i]](rgb, (size_t)a->size * (size_t)a->size, (int64_t)(factor * ONE));
    }
}

/* rgb [size][size][3] to [channels][size][size] */
static void normalise(const struct augment *a, const unsigned char *rgb, bool mirrored,
                      float *out) {
    size_t n = (size_t)a->size;
    if (a->grey) {
        for (size_t i = 0; i < n * n; i++) {
            const size_t x = i % n;
            out[mirrored ? i - x + (n - 1 - x) : i] = a->value[0][grey(rgb + 3 * i)];
        }
        return;
    }
    for (size_t y = 0; y < n; y++, rgb += 3 * n)
        for (size_t c = 0; c < 3; c++) {
            float *to = out + (c * n + y) * n;
            const float *value = a->value[c];
            const unsigned char *p = rgb + c;
            if (mirrored)
                for (size_t x = 0; x < n; x++) to[n - 1 - x] = value[p[3 * x]];
            else
                for (size_t x = 0; x < n; x++) to[x] = value[p[3 * x]];
        }
}

tri_status augment_picture(const struct augment *a, struct augmenter *w,
                           const unsigned char *bytes, size_t n, const char *name, uint64_t key,
                           float *out) {
    struct picture_size size;
    tri_status status = picture_open(w->decoder, bytes, n, name, &size);
    if (!status) status = cut_out(a, w, size, key);
    if (status) return status;
    if (a->random) jitter(a, w->rgb, key);
    normalise(a, w->rgb, a->random && random_uniform(key, 0, DRAW_FLIP) < a->flip, out);
    return TRI_OK;
}
