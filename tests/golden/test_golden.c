/* SPDX-License-Identifier: Apache-2.0
 * Operators and models against PyTorch's numbers (make.py), on every device that is built in. */
#include "golden.h"

#include <math.h>
#include <stdlib.h>

#include "dev/dev.h"

static uint64_t hash_name(const char *name) {
    uint64_t h = 0xcbf29ce484222325u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 0x100000001b3u;
    return h;
}

static double draw_one(uint64_t key, int64_t i) {
    uint64_t z = key + (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 40) * 0x1p-24;
}

void draw(const char *name, int64_t first, int64_t n, double low, double high, float *out) {
    uint64_t key = hash_name(name);
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)(low + (high - low) * draw_one(key, first + i));
}

void draw_int(const char *name, int64_t first, int64_t n, double low, double high, int64_t *out) {
    for (int64_t i = 0; i < n; i++) {
        float f;
        draw(name, first + i, 1, low, high, &f);
        out[i] = (int64_t)floorf(f);
    }
}

struct safetensors *golden_open(const char *file) {
    const char *folder = getenv("TRI_GOLDEN");
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder ? folder : "tests/golden/data", file);
    struct safetensors *s;
    must(safetensors_open(path, NULL, false, &s), path);
    return s;
}

const struct safetensors_entry *golden_entry(const struct safetensors *file, tri_type type,
                                             int64_t count, const char *fmt, ...) {
    char name[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(name, sizeof name, fmt, args);
    va_end(args);
    const struct safetensors_entry *e = safetensors_find(file, name);
    if (!e) fail_msg("the golden file has no tensor %s", name);
    if (e->spec.type != type || tri_shape_count(&e->spec.shape) != count)
        fail_msg("%s has %lld elements of %s where PyTorch has %lld of %s", name, (long long)count,
                 tri_type_name(type), (long long)tri_shape_count(&e->spec.shape),
                 tri_type_name(e->spec.type));
    return e;
}

void compare(const char *what, const float *got, const float *want, int64_t n, double tolerance) {
    double largest = 0, worst = -1;
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        double difference = fabs((double)got[i] - (double)want[i]);
        if (!(difference <= worst)) {
            worst = isnan(difference) ? (double)INFINITY : difference;
            at = i;
        }
        largest = fmax(largest, fabs((double)want[i]));
    }
    if (worst > tolerance * largest)
        fail_msg("%s[%lld] is %.9g, by PyTorch %.9g; the difference %.2g is above %.1g of the "
                 "largest, %.3g",
                 what, (long long)at, (double)got[at], (double)want[at], worst, tolerance, largest);
}

void must(tri_status status, const char *what) {
    if (status) fail_msg("%s: %s", what, tri_message());
}

void *must_allocate(size_t bytes) {
    void *p = calloc(1, bytes ? bytes : 1);
    if (!p) fail_msg("no %zu bytes", bytes);
    return p;
}

int main(void) {
    static const char *const devices[] = {"ref", "cpu"};
    int failed = 0;
    for (size_t i = 0; i < COUNT(devices); i++) {
        if (!dev_find(devices[i])) {
            printf("# the device %s is not built in: not tested\n", devices[i]);
            continue;
        }
        failed += golden_ops(devices[i]);
        failed += golden_models(devices[i]);
    }
    return failed != 0;
}
