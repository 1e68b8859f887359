/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/sum.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif
#include <string.h>

#include "base/clones.h"

#define RUN 1024u /* elements of a partial sum, which stays in the first-level cache */
#define DEPTH 6   /* of the tree: SUM_RANKS is 2^DEPTH */

/* A cache line at any alignment. */
typedef float line_at __attribute__((vector_size(4 * SUM_ALIGN), aligned(4), may_alias));

int sum_left(int ranks) {
    int left = 1;
    while (2 * left < ranks) left *= 2;
    return left;
}

/* to[i] = a[i] + b[i]; `to` may be a or b. */
CLONES static void add(const float *a, const float *b, float *to, size_t n) {
    size_t i = 0;
    for (; n - i >= SUM_ALIGN; i += SUM_ALIGN)
        *(line_at *)(to + i) = *(const line_at *)(a + i) + *(const line_at *)(b + i);
    for (; i < n; i++) to[i] = a[i] + b[i];
}

/* The same for two outputs. */
CLONES static void add_twice(const float *a, const float *b, float *to, float *too, size_t n) {
    size_t i = 0;
    for (; n - i >= SUM_ALIGN; i += SUM_ALIGN) {
        line_at sum = *(const line_at *)(a + i) + *(const line_at *)(b + i);
        *(line_at *)(to + i) = sum;
        *(line_at *)(too + i) = sum;
    }
    for (; i < n; i++) to[i] = too[i] = a[i] + b[i];
}

#ifdef __x86_64__
/* The same, bypassing the caches; the caller ends with a fence. Writing a line in one piece takes a
 * fifth less time than in four. */
static void stream_lines(const float *a, const float *b, float *to, float *too, size_t lines) {
    for (; lines; lines--, a += SUM_ALIGN, b += SUM_ALIGN, to += SUM_ALIGN, too += SUM_ALIGN) {
        __m128 sum[SUM_ALIGN / 4];
        for (size_t k = 0; k < COUNT(sum); k++)
            sum[k] = _mm_add_ps(_mm_loadu_ps(a + 4 * k), _mm_loadu_ps(b + 4 * k));
        for (size_t k = 0; k < COUNT(sum); k++) _mm_stream_ps(to + 4 * k, sum[k]);
        for (size_t k = 0; k < COUNT(sum); k++) _mm_stream_ps(too + 4 * k, sum[k]);
    }
}

__attribute__((target("avx512f"))) static void stream_whole_lines(const float *a, const float *b,
                                                                  float *to, float *too,
                                                                  size_t lines) {
    for (; lines; lines--, a += SUM_ALIGN, b += SUM_ALIGN, to += SUM_ALIGN, too += SUM_ALIGN) {
        __m512 sum = _mm512_add_ps(_mm512_loadu_ps(a), _mm512_loadu_ps(b));
        _mm512_stream_ps(to, sum);
        _mm512_stream_ps(too, sum);
    }
}

static void stream_twice(const float *a, const float *b, float *to, float *too, size_t n) {
    bool whole = __builtin_cpu_supports("avx512f");
    size_t lines = n / SUM_ALIGN, i = lines * SUM_ALIGN;
    (whole ? stream_whole_lines : stream_lines)(a, b, to, too, lines);
    for (; i < n; i++) to[i] = too[i] = a[i] + b[i];
}
static void fence(void) { _mm_sfence(); }
#else
#define stream_twice add_twice
static void fence(void) {}
#endif

/* Sums n elements from element `at`. Returns where the sums are: scratch[0], or, for a single rank,
 * its input. */
static const float *tree(const float *const *in, int ranks, size_t at, size_t n,
                         float (*scratch)[RUN]) {
    if (ranks == 1) return in[0] + at;
    int left = sum_left(ranks);
    const float *a = tree(in, left, at, n, scratch);
    const float *b = tree(in + left, ranks - left, at, n, scratch + 1);
    add(a, b, scratch[0], n);
    return scratch[0];
}

/* The root's addition is done for two outputs at a time; its operands are in the cache by then. */
static void run_to_all(const float *const *in, float *const *out, int ranks, size_t at, size_t n,
                       unsigned way) {
    float scratch[DEPTH][RUN];
    int left = sum_left(ranks), k = 0;
    const float *a = tree(in, left, at, n, scratch);
    const float *b = tree(in + left, ranks - left, at, n, scratch + 1);
    for (; k + 1 < ranks; k += 2)
        (way & SUM_STREAM ? stream_twice : add_twice)(a, b, out[k] + at, out[k + 1] + at, n);
    if (k < ranks) add(a, b, out[k] + at, n);
}

void sum_to_all(const float *const *in, float *const *out, int ranks, size_t begin, size_t end,
                unsigned way) {
    if (ranks == 1) {
        memcpy(out[0] + begin, in[0] + begin, (end - begin) * sizeof(float));
        return;
    }
    size_t runs = (end - begin + RUN - 1) / RUN;
    for (size_t i = 0; i < runs; i++) {
        size_t at = begin + (way & SUM_BACKWARD ? runs - 1 - i : i) * RUN;
        run_to_all(in, out, ranks, at, end - at < RUN ? end - at : RUN, way);
    }
    if (way & SUM_STREAM) fence();
}
