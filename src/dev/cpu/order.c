/* SPDX-License-Identifier: Apache-2.0
 * Operators that rank elements: argmax, top_k, in_top_k. Of equal elements the first one ranks
 * first; NaN ranks above all numbers. Divided into parts by rows. */
#include "dev/cpu/rows.h"
#include "dev/cpu/tile.h"
#include "ops/op.h"

#define CHUNK 256

/* a ranks before b: it is larger, or the first NaN. */
#define BEFORE(a, b) ((a) > (b) || ((a) != (a) && (b) == (b)))

/* The largest of `length` elements, `inner` apart, for each of n neighbours. GET converts an
 * element of type T to a number of type V. */
#define ARGMAX(s, T, V, GET)                                                                \
    static void argmax_##s(const void *from, int64_t *to, int64_t length, int64_t inner,    \
                           int64_t n) {                                                     \
        const T *x = from;                                                                  \
        V best[CHUNK];                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                   \
            best[i] = GET(x[i]);                                                            \
            to[i] = 0;                                                                      \
        }                                                                                   \
        for (int64_t k = 1; k < length; k++)                                                \
            for (int64_t i = 0; i < n; i++) {                                               \
                V v = GET(x[k * inner + i]);                                                \
                bool better = BEFORE(v, best[i]);                                           \
                to[i] = better ? k : to[i];                                                 \
                best[i] = better ? v : best[i];                                             \
            }                                                                               \
    }

/* The k largest of a row, by insertion into a sorted list. */
#define TOP_K(s, T, V, GET)                                                                 \
    static void top_k_##s(const void *from, int64_t length, int64_t k, void *values,        \
                          int64_t *index) {                                                 \
        const T *x = from;                                                                  \
        T *best = values;                                                                   \
        int64_t have = 0;                                                                   \
        for (int64_t i = 0; i < length; i++) {                                              \
            V v = GET(x[i]);                                                                \
            if (have == k && !BEFORE(v, GET(best[k - 1]))) continue;                        \
            int64_t at = have < k ? have++ : k - 1;                                         \
            for (; at && BEFORE(v, GET(best[at - 1])); at--) {                              \
                best[at] = best[at - 1];                                                    \
                index[at] = index[at - 1];                                                  \
            }                                                                               \
            best[at] = x[i];                                                                \
            index[at] = i;                                                                  \
        }                                                                                   \
    }

#define AS_IT_IS(x) (x)
#define RANKING(s, T, V, GET) ARGMAX(s, T, V, GET) TOP_K(s, T, V, GET)
RANKING(f32, float, float, AS_IT_IS)
RANKING(bf16, uint16_t, float, convert_bf16_to_f32)
RANKING(f16, uint16_t, float, convert_f16_to_f32)
RANKING(i32, int32_t, int32_t, AS_IT_IS)
RANKING(i64, int64_t, int64_t, AS_IT_IS)
RANKING(u8, uint8_t, uint8_t, AS_IT_IS)

static const struct ranking {
    void (*argmax)(const void *x, int64_t *to, int64_t length, int64_t inner, int64_t n);
    void (*top_k)(const void *x, int64_t length, int64_t k, void *values, int64_t *index);
} rankings[] = {
    [TRI_F32] = {argmax_f32, top_k_f32}, [TRI_BF16] = {argmax_bf16, top_k_bf16},
    [TRI_F16] = {argmax_f16, top_k_f16}, [TRI_I32] = {argmax_i32, top_k_i32},
    [TRI_I64] = {argmax_i64, top_k_i64}, [TRI_U8] = {argmax_u8, top_k_u8},
    [TRI_BOOL] = {argmax_u8, top_k_u8},
};

/* ---- argmax ---- */

/* First the maximum of a row, then its place: faster than both at once. */
INLINE void argmax_row(tri_type t, const void *x, int64_t n, int64_t *to) {
    float max = rows_max_or_nan(t, x, n);
    int64_t i = 0;
    if (max == max)
        while (rows_get(t, x, i) != max) i++;
    else
        while (rows_get(t, x, i) == rows_get(t, x, i)) i++;
    *to = i;
}

static struct cpu_axis_view argmax_view(const tri_node *n) {
    return cpu_axis_view(&cpu_in(n, 0)->shape, cpu_axis(n));
}

static void argmax(const tri_call *c) {
    tri_type type = cpu_in(c->node, 0)->type;
    struct cpu_axis_view v = argmax_view(c->node);
    struct cpu_range r = cpu_part(c, cpu_parts(v.outer, v.length * v.inner), v.outer);
    int64_t size = (int64_t)tri_type_size(type), plane = v.length * v.inner;
    for (int64_t o = r.begin; o < r.end; o++) {
        const char *x = (const char *)c->in[0] + o * plane * size;
        int64_t *y = (int64_t *)c->out[0] + o * v.inner;
        if (v.inner == 1 && type_is_float(type))
            BY_TYPE(type, argmax_row, x, v.length, y);
        else
            for (int64_t i = 0; i < v.inner; i += CHUNK)
                rankings[type].argmax(x + i * size, y + i, v.length, v.inner,
                                      v.inner - i < CHUNK ? v.inner - i : CHUNK);
    }
}

static void plan_argmax(const tri_node *n, struct kernel *k) {
    struct cpu_axis_view v = argmax_view(n);
    k->parts = cpu_parts(v.outer, v.length * v.inner);
}

/* Whether x[i] and v[k] are equal, or both NaN. */
static bool equal(tri_type t, const void *x, int64_t i, const void *v, int64_t k) {
    size_t size = tri_type_size(t);
    if (!type_is_float(t))
        return !memcmp((const char *)x + (size_t)i * size, (const char *)v + (size_t)k * size,
                       size);
    float a = rows_get(t, x, i), b = rows_get(t, v, k);
    return a == b || (a != a && b != b);
}

static void first_equal(const tri_call *c) {
    tri_type type = cpu_in(c->node, 0)->type;
    struct cpu_axis_view v = argmax_view(c->node);
    struct cpu_range r = cpu_part(c, cpu_parts(v.outer, v.length * v.inner), v.outer);
    int64_t first = tri_attr_int(c->node, "first");
    for (int64_t k = r.begin * v.inner; k < r.end * v.inner; k++) {
        int64_t at = k / v.inner * v.length * v.inner + k % v.inner, i = 0;
        while (i < v.length && !equal(type, c->in[0], at + i * v.inner, c->in[1], k)) i++;
        ((int64_t *)c->out[0])[k] = i < v.length ? -(first + i) : -INT64_MAX;
    }
}

/* ---- rows of the last dimension ---- */

static void plan_rows(const tri_node *n, struct kernel *k) {
    struct cpu_axis_view v = cpu_last_view(n);
    k->parts = cpu_parts(v.outer, v.length);
}

static void top_k(const tri_call *c) {
    tri_type type = cpu_in(c->node, 0)->type;
    struct cpu_axis_view v = cpu_last_view(c->node);
    struct cpu_range r = cpu_part(c, cpu_parts(v.outer, v.length), v.outer);
    int64_t k = tri_attr_int(c->node, "k"), size = (int64_t)tri_type_size(type);
    for (int64_t o = r.begin; o < r.end; o++)
        rankings[type].top_k((const char *)c->in[0] + o * v.length * size, v.length, k,
                             (char *)c->out[0] + o * k * size, (int64_t *)c->out[1] + o * k);
}

INLINE vec below(vec x, float v, bool or_equal) {
    vec_mask m = vec_less(x, vec_set(v));
    if (or_equal) m = vec_either(m, vec_equal(x, vec_set(v)));
    return vec_select(m, vec_set(1), vec_set(0));
}

/* The number of elements that are not below v, or not even equal. */
INLINE double count_not(tri_type t, const void *x, int64_t n, float v, bool or_equal) {
    double sum;
    ROW_SUM(n, sum, below(LOAD(t, rows_in(t, x, block), __builtin_nanf("")), v, or_equal));
    return (double)n - sum;
}

/* Whether x[at] is among the k first; never if it is NaN or not a class. */
INLINE void among(tri_type t, const void *x, int64_t n, int64_t at, int64_t k, float *y) {
    *y = 0;
    if (at < 0 || at >= n) return;
    float v = rows_get(t, x, at);
    if (v != v) return;
    double before = count_not(t, x, at, v, false);
    before += count_not(t, rows_in(t, x, at + 1), n - at - 1, v, true);
    *y = before < (double)k;
}

static void in_top_k(const tri_call *c) {
    tri_type type = cpu_in(c->node, 0)->type;
    struct cpu_axis_view v = cpu_last_view(c->node);
    struct cpu_range r = cpu_part(c, cpu_parts(v.outer, v.length), v.outer);
    int64_t k = tri_attr_int(c->node, "k");
    for (int64_t o = r.begin; o < r.end; o++) {
        const char *x = (const char *)c->in[0] + o * v.length * (int64_t)tri_type_size(type);
        BY_TYPE(type, among, x, v.length, cpu_index(c, 1, o), k, (float *)c->out[0] + o);
    }
}

/* What ranks before a label at place `at` of these n, which may be outside of them; v: its own. */
INLINE void count_before(tri_type t, const void *x, int64_t n, int64_t at, const void *own,
                         float *y) {
    float v = rows_get(t, own, 0);
    int64_t below = at < 0 ? 0 : at < n ? at : n, above = at < 0 ? 0 : at + 1 < n ? at + 1 : n;
    *y = (float)(count_not(t, x, below, v, false) +
                 count_not(t, rows_in(t, x, above), n - above, v, true));
}

static void ranks_before(const tri_call *c) {
    tri_type type = cpu_in(c->node, 0)->type;
    struct cpu_axis_view v = cpu_last_view(c->node);
    struct cpu_range r = cpu_part(c, cpu_parts(v.outer, v.length), v.outer);
    int64_t first = tri_attr_int(c->node, "first"), size = (int64_t)tri_type_size(type);
    for (int64_t o = r.begin; o < r.end; o++) {
        int64_t label = cpu_index(c, 1, o), at = label < first ? -1 : label - first;
        BY_TYPE(type, count_before, (const char *)c->in[0] + o * v.length * size, v.length, at,
                (const char *)c->in[2] + o * size, (float *)c->out[0] + o);
    }
}

const struct dev_row FOR_ISA(cpu_order)[] = {
    {.op = "first_equal", .run = first_equal, .plan = plan_argmax},
    {.op = "ranks_before", .run = ranks_before, .plan = plan_rows},
    {.op = "argmax", .run = argmax, .plan = plan_argmax},
    {.op = "top_k", .run = top_k, .plan = plan_rows},
    {.op = "in_top_k", .run = in_top_k, .plan = plan_rows},
    {0},
};
