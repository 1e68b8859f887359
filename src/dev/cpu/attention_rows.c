/* SPDX-License-Identifier: Apache-2.0 */
#include "dev/cpu/attention_rows.h"

#include <math.h> /* INFINITY */

#include "dev/cpu/draw.h"
#include "dev/cpu/gemm.h"

/* Zeros after a row, for keys that another row of its group has in addition. */
#define GROUP_ZEROS (2 * GEMM_GROUP)

/* One row of a tile: its keys, also rounded up to a multiple of SUM_WIDTH; the mask as numbers to
 * add; the random numbers of the dropout. */
struct row {
    int64_t n, end;
    _Alignas(64) float mask[ATTENTION_KEYS];
    _Alignas(64) uint32_t drawn[ATTENTION_KEYS];
};

static const float numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* Reads what is added to the scores of row i. */
static void read_mask(const struct attention_tile *t, int64_t i, int64_t n, float *to) {
    const char *from = t->mask + i * t->mask_row * (int64_t)tri_type_size(t->mask_type);
    int64_t different = t->mask_key ? n : 1;
    if (t->mask_type == TRI_BOOL)
        for (int64_t k = 0; k < different; k++) to[k] = from[k] ? 0 : -INFINITY;
    else
        ROW(different, STORE(TRI_F32, to, LOAD(t->mask_type, from, 0)));
    for (int64_t k = different; k < n; k++) to[k] = to[0];
}

/* Prepares row i of the scores; a mask that is the same for all rows is read once. Also writes the
 * zeros that a group of rows needs after it. */
static float *row_begin(const struct attention_tile *t, int64_t i, struct row *r) {
    float *x = t->s + i * ATTENTION_PITCH;
    int64_t n = i + t->diagonal + 1;
    bool first = r->n < 0;
    r->n = n < 0 ? 0 : n < t->keys ? n : t->keys;
    r->end = (r->n + SUM_WIDTH - 1) / SUM_WIDTH * SUM_WIDTH;
    if (r->end < ATTENTION_KEYS) memset(x + r->end, 0, GROUP_ZEROS * sizeof *x);
    if (t->mask && (first || t->mask_row))
        read_mask(t, i, t->mask_row ? r->n : t->keys, r->mask);
    if (t->kept != 1)
        draw_fill(t->draw_key, t->stream, t->first_draw + (uint64_t)(i * t->draw_row),
                  (size_t)r->n, r->drawn);
    return x;
}

void attention_begin(struct attention_sums *sums) {
    for (int i = 0; i < ATTENTION_QUERIES; i++) {
        sums->max[i] = -INFINITY;
        sums->sum[i] = 0;
    }
}

/* x where the element's index, from k, is below n; else `otherwise`. */
INLINE vec until(int64_t n, int64_t k, vec x, float otherwise) {
    vec left = vec_set((float)(n - k)), number = *(const vec_at *)numbers;
    return vec_select(vec_less(number, left), x, vec_set(otherwise));
}

/* x where the random number keeps it, else 0. */
INLINE vec keep(const uint32_t *drawn, uint32_t limit, vec x) {
    return (vec)((vec_u32)x & (vec_u32)(*(const vec_u32_at *)drawn >= limit));
}

/* exp(x) for x <= 0, or NaN; 0 below 2^-126, as processors are slow with subnormals and masked
 * scores would be subnormal. */
INLINE vec weight(vec x) {
    const vec least = vec_set(-87.3f);
    return vec_select(vec_less(x, least), vec_set(0), vec_exp_negative(vec_at_least(x, least)));
}

/* The scores of a row from k, scaled and masked. */
INLINE vec score(const struct attention_tile *t, const struct row *r, const float *x, int64_t k) {
    vec s = *(const vec_at *)(x + k) * t->scale;
    return t->mask ? s + *(const vec_at *)(r->mask + k) : s;
}

/* Runs code for the vectors of a row, SUM_WIDTH elements at a time. p is the vector's number among
 * these; `last` says, at compile time, that the row may end among them. */
#define BLOCKS(r, ...)                                                                     \
    do {                                                                                   \
        int64_t k = 0;                                                                     \
        for (const bool last = false; k + SUM_WIDTH <= (r).n;)                             \
            UNROLL for (int p = 0; p < SUM_VECS; p++, k += VEC) __VA_ARGS__;               \
        for (const bool last = true; k < (r).end;)                                         \
            UNROLL for (int p = 0; p < SUM_VECS; p++, k += VEC) __VA_ARGS__;               \
    } while (0)

void attention_weigh(const struct attention_tile *t, struct attention_sums *sums) {
    struct row r = {.n = -1};
    for (int64_t i = 0; i < t->rows; i++) {
        float *x = row_begin(t, i, &r);
        vec top[SUM_VECS], sum[SUM_VECS] = {{0}};
        for (int p = 0; p < SUM_VECS; p++) top[p] = vec_set(-INFINITY);
        BLOCKS(r, {
            vec s = score(t, &r, x, k);
            if (last) s = until(r.n, k, s, -INFINITY);
            *(vec_at *)(x + k) = s;
            top[p] = vec_max(s, top[p]);
        });
        float before = sums->max[i], max = vec_largest(top);
        max = before > max ? before : max;
        float base = max == -INFINITY ? 0 : max;
        BLOCKS(r, {
            vec e = weight(*(const vec_at *)(x + k) - base);
            sum[p] += e;
            if (t->kept != 1) e = keep(r.drawn + k, t->limit, e);
            *(vec_at *)(x + k) = e;
            (void)last;
        });
        sums->shrink[i] = before == -INFINITY ? 0 : vmath_exp_negative(before - base);
        sums->sum[i] = sums->sum[i] * (double)sums->shrink[i] + (double)vec_total(sum);
        sums->max[i] = max;
    }
}

void attention_derive(const struct attention_tile *t, const float *lse, const float *delta,
                      float factor, float *ds) {
    struct row r = {.n = -1};
    for (int64_t i = 0; i < t->rows; i++) {
        float *x = row_begin(t, i, &r), *g = ds + i * ATTENTION_PITCH;
        float less = lse[i] == -INFINITY ? INFINITY : lse[i];
        BLOCKS(r, {
            vec w = weight(score(t, &r, x, k) - less), z = w;
            vec d = *(const vec_at *)(g + k);
            if (t->kept != 1) {
                z = keep(r.drawn + k, t->limit, w * t->kept);
                d = keep(r.drawn + k, t->limit, d * t->kept);
            }
            d = w * (d - delta[i]) * factor;
            *(vec_at *)(x + k) = last ? until(r.n, k, z, 0) : z;
            *(vec_at *)(g + k) = last ? until(r.n, k, d, 0) : d;
        });
        if (r.end < ATTENTION_KEYS) memset(g + r.end, 0, GROUP_ZEROS * sizeof *g);
    }
}
