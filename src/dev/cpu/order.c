/* SPDX-License-Identifier: Apache-2.0
 * Operators that rank elements: argmax, top_k, in_top_k. Of equals the first comes first; a NaN
 * counts as larger than any number. */
#include "dev/cpu/isa.h"
#include "dev/cpu/lanes.h"
#include "dev/cpu/tile.h"
#include "ops/op.h"

#define CHUNK 256

/* a comes before b: it is larger, or the first NaN. */
#define BEFORE(a, b) ((a) > (b) || ((a) != (a) && (b) == (b)))

/* The largest of `length` places, `inner` elements apart, for each of n neighbours. */
#define ARGMAX(s, T)                                                                        \
    static void argmax_##s(const void *from, int64_t *to, int64_t length,            \
                                  int64_t inner, int64_t n) {                               \
        const T *x = from;                                                                  \
        T best[CHUNK];                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                   \
            best[i] = x[i];                                                                 \
            to[i] = 0;                                                                      \
        }                                                                                   \
        for (int64_t k = 1; k < length; k++)                                                \
            for (int64_t i = 0; i < n; i++) {                                               \
                T v = x[k * inner + i];                                                     \
                bool better = BEFORE(v, best[i]);                                           \
                to[i] = better ? k : to[i];                                                 \
                best[i] = better ? v : best[i];                                             \
            }                                                                               \
    }

/* The k largest of a row, by insertion into a sorted list. */
#define TOP_K(s, T)                                                                         \
    static void top_k_##s(const void *from, int64_t length, int64_t k, void *values,        \
                          int64_t *index) {                                                 \
        const T *x = from;                                                                  \
        T *best = values;                                                                   \
        int64_t have = 0;                                                                   \
        for (int64_t i = 0; i < length; i++) {                                              \
            if (have == k && !BEFORE(x[i], best[k - 1])) continue;                          \
            int64_t at = have < k ? have++ : k - 1;                                         \
            for (; at && BEFORE(x[i], best[at - 1]); at--) {                                \
                best[at] = best[at - 1];                                                    \
                index[at] = index[at - 1];                                                  \
            }                                                                               \
            best[at] = x[i];                                                                \
            index[at] = i;                                                                  \
        }                                                                                   \
    }

#define RANKING(s, T) ARGMAX(s, T) TOP_K(s, T)
RANKING(f32, float)
RANKING(i32, int32_t)
RANKING(i64, int64_t)
RANKING(u8, uint8_t)

/* In the order of enum tile_type. */
static const struct ranking {
    void (*argmax)(const void *x, int64_t *to, int64_t length, int64_t inner, int64_t n);
    void (*top_k)(const void *x, int64_t length, int64_t k, void *values, int64_t *index);
} rankings[] = {
    {argmax_f32, top_k_f32}, {argmax_i32, top_k_i32}, {argmax_i64, top_k_i64},
    {argmax_u8, top_k_u8},
};

/* Of a row the largest, then where it stands: faster than both at once. */
static int64_t argmax_row(const float *x, int64_t n) {
    float max = lanes_max(x, (size_t)n);
    int64_t i = 0;
    while (x[i] != max && x[i] == x[i]) i++;
    return i;
}

static void argmax(const tri_call *c) {
    const tri_spec *spec = cpu_in(c->node, 0);
    enum tile_type type = tile_type(spec->type);
    struct cpu_axis_view v = cpu_axis_view(&spec->shape, cpu_axis(c->node));
    if (v.inner == 1 && type == TILE_F32) {
        const float *x = c->in[0];
        for (int64_t o = 0; o < v.outer; o++, x += v.length)
            ((int64_t *)c->out[0])[o] = argmax_row(x, v.length);
        return;
    }
    const char *x = c->in[0];
    int64_t *y = c->out[0], size = (int64_t)tile_size(type);
    for (int64_t o = 0; o < v.outer; o++, x += v.length * v.inner * size)
        for (int64_t i = 0; i < v.inner; i += CHUNK) {
            int64_t n = v.inner - i < CHUNK ? v.inner - i : CHUNK;
            rankings[type].argmax(x + i * size, y, v.length, v.inner, n);
            y += n;
        }
}

static void top_k(const tri_call *c) {
    const tri_spec *spec = cpu_in(c->node, 0);
    enum tile_type type = tile_type(spec->type);
    struct cpu_axis_view v = cpu_axis_view(&spec->shape, spec->shape.rank - 1);
    int64_t k = tri_attr_int(c->node, "k"), size = (int64_t)tile_size(type);
    for (int64_t o = 0; o < v.outer; o++)
        rankings[type].top_k((const char *)c->in[0] + o * v.length * size, v.length, k,
                             (char *)c->out[0] + o * k * size, (int64_t *)c->out[1] + o * k);
}

/* How many of n elements are not smaller than x[at]; of equals only those before it. */
static int64_t rank_of(const float *x, int64_t n, int64_t at) {
    float v = x[at];
    int32_t before = 0;
    for (int64_t i = 0; i < at; i++) before += !(x[i] < v);
    for (int64_t i = at + 1; i < n; i++) before += !(x[i] <= v);
    return before;
}

/* What is not a number, or no class, is never among them. */
static void in_top_k(const tri_call *c) {
    const tri_shape *s = &cpu_in(c->node, 0)->shape;
    struct cpu_axis_view v = cpu_axis_view(s, s->rank - 1);
    int64_t k = tri_attr_int(c->node, "k");
    for (int64_t o = 0; o < v.outer; o++) {
        int64_t label = cpu_index(c, 1, o);
        const float *x = (const float *)c->in[0] + o * v.length;
        bool number = label >= 0 && label < v.length && x[label] == x[label];
        ((float *)c->out[0])[o] = number && rank_of(x, v.length, label) < k;
    }
}

const struct dev_row FOR_ISA(cpu_order)[] = {
    {.op = "argmax", .run = argmax},
    {.op = "top_k", .run = top_k},
    {.op = "in_top_k", .run = in_top_k},
    {0},
};
