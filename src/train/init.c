/* SPDX-License-Identifier: Apache-2.0
 * Initial values. Each element depends only on the seed, the name and the element's index. */
#include <math.h>
#include <string.h>

#include "base/convert.h"
#include "base/random.h"
#include "train/train.h"

/* Fan-in and fan-out as in PyTorch, for a shape [out, in, window...]. */
static void fans(const tri_shape *s, double *in, double *out) {
    double window = 1;
    for (int i = 2; i < s->rank; i++) window *= (double)s->dim[i];
    *out = (s->rank > 0 ? (double)s->dim[0] : 1) * window;
    *in = (s->rank > 1 ? (double)s->dim[1] : s->rank > 0 ? (double)s->dim[0] : 1) * window;
}

enum shape { FIXED, UNIFORM, NORMAL, TRUNCATED };

struct distribution {
    enum shape shape;
    double a, b; /* uniform: bounds; normal: mean and deviation; fixed: a */
};

static struct distribution centred(enum shape shape, double deviation) {
    double bound = deviation * sqrt(3);
    return shape == UNIFORM ? (struct distribution){UNIFORM, -bound, bound}
                            : (struct distribution){NORMAL, 0, deviation};
}

static struct distribution resolve(const tri_init *init, const tri_shape *s) {
    double in, out, a = init->a;
    fans(s, &in, &out);
    double xavier = (a > 0 ? a : 1) * sqrt(2 / (in + out)), he = a > 0 ? a : sqrt(2);
    switch (init->kind) {
    case TRI_UNIFORM: return (struct distribution){UNIFORM, a, init->b};
    case TRI_NORMAL: return (struct distribution){NORMAL, a, init->b};
    case TRI_TRUNCATED_NORMAL: return (struct distribution){TRUNCATED, a, init->b};
    case TRI_XAVIER_UNIFORM: return centred(UNIFORM, xavier);
    case TRI_XAVIER_NORMAL: return centred(NORMAL, xavier);
    case TRI_HE_UNIFORM: return centred(UNIFORM, he / sqrt(in));
    case TRI_HE_NORMAL: return centred(NORMAL, he / sqrt(in));
    case TRI_HE_NORMAL_OUT: return centred(NORMAL, he / sqrt(out));
    default: return (struct distribution){FIXED, a, 0};
    }
}

static double draw(const struct distribution *d, uint64_t key, uint64_t i) {
    switch (d->shape) {
    case UNIFORM: return d->a + (d->b - d->a) * random_uniform(key, 0, i);
    case TRUNCATED: return d->a + d->b * random_truncated_normal(key, 0, i);
    default: return d->a;
    }
}

#define CHUNK 256

/* Elements [first, first + n). */
static void draw_some(const struct distribution *d, uint64_t key, uint64_t first, size_t n,
                      double *x) {
    if (d->shape == NORMAL) {
        random_normal_fill(key, 0, first, n, x);
        for (size_t i = 0; i < n; i++) x[i] = d->a + d->b * x[i];
    } else {
        for (size_t i = 0; i < n; i++) x[i] = draw(d, key, first + i);
    }
}

void init_draw(const tri_init *init, uint64_t seed, const char *name, const tri_spec *spec,
               int64_t begin, int64_t end, void *out) {
    struct distribution d = resolve(init, &spec->shape);
    uint64_t key = random_key(seed, base_hash_text(name));
    if (d.shape == FIXED && d.a == 0)
        memset(out, 0, (size_t)(end - begin) * tri_type_size(spec->type));
    for (int64_t i = begin, n; i < end && !(d.shape == FIXED && d.a == 0); i += n) {
        double x[CHUNK];
        n = end - i < CHUNK ? end - i : CHUNK;
        draw_some(&d, key, (uint64_t)i, (size_t)n, x);
        if (spec->type == TRI_F32)
            for (int64_t k = 0; k < n; k++) ((float *)out)[i - begin + k] = (float)x[k];
        else
            for (int64_t k = 0; k < n; k++)
                convert_store(spec->type, out, (size_t)(i - begin + k), x[k]);
    }
}
