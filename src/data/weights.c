/* SPDX-License-Identifier: Apache-2.0 */
#include "data/weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "data/numbers.h"

void weights_free(struct weights *w) {
    free(w->until);
    *w = (struct weights){0};
}

/* ---- by class ---- */

static tri_status need_labels(const tri_data *d, const char *how) {
    if (d->about.label && d->about.classes > 0) return data_check_labels(d);
    return base_fail(TRI_USAGE,
                     "data %s does not know the classes of its samples in advance, which --sampler "
                     "weighted:%s needs; weighted:FILE gives a weight for each sample",
                     d->name, how);
}

/* The weight of each class that makes all classes equally likely; 0 for a class without samples. */
static tri_status balance(const tri_data *d, double *of_class) {
    for (int64_t i = 0; i < d->size; i++) of_class[d->about.label(d->user, i)]++;
    for (int64_t c = 0; c < d->about.classes; c++)
        if (of_class[c] > 0) of_class[c] = 1 / of_class[c];
    return TRI_OK;
}

static tri_status read_classes(const tri_data *d, const char *text, double *of_class) {
    int64_t n = 0;
    for (const char *p = text;; p++, n++) {
        char *end;
        double x = base_number(p, &end);
        bool right = end != p && isfinite(x) && x >= 0 && (!*end || *end == '/') &&
                     n < d->about.classes;
        if (right) of_class[n] = x;
        if (right && !*end && n + 1 == d->about.classes) return TRI_OK;
        if (!right || !*end) break;
        p = end;
    }
    return base_fail(TRI_USAGE,
                     "--sampler weighted:classes=%s: %lld numbers of at least 0, separated by /, "
                     "are needed, one per class",
                     text, (long long)d->about.classes);
}

static tri_status weigh_classes(const tri_data *d, const char *how, const char *numbers,
                                double *out) {
    tri_status status = need_labels(d, how);
    if (status) return status;
    double *of_class = calloc((size_t)d->about.classes, sizeof *of_class);
    if (!of_class) return base_no_memory(d->name);
    status = numbers ? read_classes(d, numbers, of_class) : balance(d, of_class);
    for (int64_t i = 0; i < d->size && !status; i++) out[i] = of_class[d->about.label(d->user, i)];
    free(of_class);
    return status;
}

/* ---- by sample ---- */

static tri_status read_file(const tri_data *d, const char *path, double *out) {
    struct numbers file;
    tri_status status = numbers_open(&file, path);
    int64_t n = 0;
    for (double x; !status && numbers_next(&file, &x, &status); n++) {
        if (n < d->size) out[n] = x;
        if (x < 0)
            status = base_fail(TRI_FAILED, "%s: line %ld: a weight is a number of at least 0", path,
                               file.line);
    }
    numbers_close(&file);
    if (!status && n != d->size)
        status = base_fail(TRI_FAILED, "%s: %lld weight(s); data %s has %lld sample(s)", path,
                           (long long)n, d->name, (long long)d->size);
    return status;
}

/* ---- both ---- */

static tri_status sum_up(struct weights *w, const char *how) {
    double sum = 0;
    for (int64_t i = 0; i < w->size; i++) w->until[i] = sum += w->until[i];
    if (sum > 0 && isfinite(sum)) return TRI_OK;
    return base_fail(TRI_USAGE, "--sampler weighted:%s: the sum of all weights is %g", how, sum);
}

tri_status weights_make(const tri_data *d, const char *how, struct weights *w) {
    const char *numbers = !strncmp(how, "classes=", 8) ? how + 8 : NULL;
    *w = (struct weights){d->size, malloc((size_t)d->size * sizeof *w->until)};
    if (!w->until) return base_no_memory(d->name);
    tri_status status = numbers || !strcmp(how, "balanced")
                            ? weigh_classes(d, how, numbers, w->until)
                            : read_file(d, how, w->until);
    if (!status) status = sum_up(w, how);
    if (status) weights_free(w);
    return status;
}

/* The first sample whose sum exceeds the random number: never one of weight 0. */
int64_t weights_draw(const struct weights *w, uint64_t key, int64_t place) {
    double x = random_uniform(key, 0, (uint64_t)place) * w->until[w->size - 1];
    int64_t low = 0, high = w->size - 1;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (w->until[middle] > x) high = middle;
        else low = middle + 1;
    }
    return low;
}
