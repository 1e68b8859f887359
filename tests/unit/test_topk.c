/* SPDX-License-Identifier: Apache-2.0
 * What is kept against a sort, messages against their definition, and what is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these headers */
#include <setjmp.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "base/random.h"
#include "wire/topk.h"
#include "wire/wire.h"

#define MOST 3000
#define WORDS ((MOST + 63) / 64)

static float x[MOST], estimate[MOST], rounded[MOST], again[MOST];
static uint64_t marks[WORDS + 1], marks_again[WORDS + 1];
static uint64_t drawn;

static uint32_t draw(void) { return random_u32(7, 0, drawn++); }

/* ---- which numbers are kept ---- */

static double far(int i) {
    const double d = fabs((double)(x[i] - estimate[i]));
    return isnan(d) ? INFINITY : isinf(d) ? 1e300 : d;
}

static int furthest_first(const void *a, const void *b) {
    const int i = *(const int *)a, j = *(const int *)b;
    if (far(i) != far(j)) return far(i) > far(j) ? -1 : 1;
    return i - j;
}

/* Rounds x, which stays as it is, to `rounded`, and compares. */
static void check_kept(const char *what, int n, int kept) {
    static int order[MOST];
    float want[MOST];
    for (int i = 0; i < n; i++) order[i] = i;
    qsort(order, (size_t)n, sizeof *order, furthest_first);
    memcpy(want, estimate, sizeof want);
    for (int i = 0; i < kept; i++) want[order[i]] = x[order[i]];
    memcpy(rounded, x, sizeof x);
    marks[(n + 63) / 64] = 99;
    topk_round(rounded, estimate, (uint64_t)n, (uint64_t)kept, marks);
    assert_int_equal(marks[(n + 63) / 64], 99);
    for (int i = 0; i < n; i++)
        if (convert_bits(rounded[i]) != convert_bits(want[i]))
            fail_msg("%s: number %d of %d, of which %d are kept: %a in place of %a", what, i, n,
                     kept, (double)rounded[i], (double)want[i]);
    for (int i = 0; i < kept; i++)
        if (!(marks[order[i] / 64] >> order[i] % 64 & 1)) fail_msg("%s: no mark", what);
    int all = 0;
    for (int w = 0; w < (n + 63) / 64; w++) all += __builtin_popcountll(marks[w]);
    assert_int_equal(all, kept);
}

/* ---- messages ---- */

static void set_bit(uint8_t *to, uint64_t i) { to[i / 8] |= (uint8_t)(1u << i % 8); }

/* Writes what follows from marks and `rounded`; returns how many bytes. */
static size_t model_put(int n, int kept, uint8_t *to) {
    int low = 0;
    while ((kept << (low + 1)) <= n) low++;
    const size_t unary_at = 4 * (size_t)kept + ((size_t)(kept * low) + 7) / 8;
    const size_t bytes = unary_at + ((size_t)(kept + ((n - 1) >> low)) + 7) / 8;
    memset(to, 0, bytes);
    for (int i = 0, k = 0; i < n; i++) {
        if (!(marks[i / 64] >> i % 64 & 1)) continue;
        memcpy(to + 4 * k, &rounded[i], 4);
        for (int bit = 0; bit < low; bit++)
            if (i >> bit & 1) set_bit(to + 4 * kept, (uint64_t)(k * low + bit));
        set_bit(to + unary_at, (uint64_t)((i >> low) + k));
        k++;
    }
    return bytes;
}

static void check_message(int n, int kept) {
    static uint8_t bytes[8 * MOST], want[8 * MOST];
    const size_t size = topk_bytes((uint64_t)n, (uint64_t)kept);
    assert_int_equal(model_put(n, kept, want), size);
    bytes[size] = 77;
    topk_put(rounded, marks, (uint64_t)n, (uint64_t)kept, bytes);
    assert_memory_equal(bytes, want, size);
    assert_int_equal(bytes[size], 77);
    assert_true(topk_take(bytes, estimate, (uint64_t)n, (uint64_t)kept, again, marks_again));
    assert_memory_equal(again, rounded, (size_t)n * sizeof *again);
    assert_memory_equal(marks_again, marks, (size_t)(n + 63) / 64 * 8);
}

static float number(int kind) {
    static const float special[] = {0,   -0.0f,  1,      -1,   INFINITY, -INFINITY,
                                    NAN, 1e-40f, -3e38f, 3e38f};
    const uint32_t r = draw();
    if (kind == 0) return convert_of_bits(r);
    if (kind == 1) return (float)(r % 5);
    if (kind == 2) return special[r % COUNT(special)];
    return (float)(int32_t)r * 1e-9f;
}

static void kept(void **state) {
    (void)state;
    static const int sizes[] = {1, 2, 3, 63, 64, 65, 255, 256, 257, 1000, MOST};
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (int kind = 0; kind < 16; kind++) {
            const int n = sizes[s];
            for (int i = 0; i < n; i++) x[i] = number(kind % 4), estimate[i] = number(kind / 4);
            const int keeps[] = {1, 2, n / 100 + 1, n / 10 + 1, n / 2 + 1, n};
            for (size_t k = 0; k < COUNT(keeps); k++) {
                if (keeps[k] > n) continue;
                check_kept("random", n, keeps[k]);
                check_message(n, keeps[k]);
            }
        }
}

/* Distances that differ in one bit of each digit. */
static void digits(void **state) {
    (void)state;
    for (int bit = 0; bit < 31; bit++) {
        for (int i = 0; i < 600; i++) {
            estimate[i] = 0;
            x[i] = convert_of_bits(0x3f9e3779u ^ (i % 3 ? 0 : 1u << bit) ^ (draw() << 31));
        }
        for (int keeps = 190; keeps < 600; keeps += 10 + keeps / 9)
            check_kept("digits", 600, keeps);
    }
}

static void how_many(void **state) {
    (void)state;
    assert_int_equal(topk_kept(0.01, 1), 1);
    assert_int_equal(topk_kept(0.01, 100), 1);
    assert_int_equal(topk_kept(0.01, 101), 2);
    assert_int_equal(topk_kept(0.999999, 10), 10);
    assert_int_equal(topk_kept(1e-12, 1u << 31), 1);
    /* as many bytes as the documentation says */
    assert_in_range(topk_bytes(10000000, 100000), 400000, 512000);
    assert_in_range(topk_bytes(10000000, 1000000), 4000000, 4680000);
}

/* Whatever is taken is what topk_put writes; nearly all else is refused. */
static void refused(void **state) {
    (void)state;
    int taken = 0, tried = 0;
    for (int round = 0; round < 200; round++) {
        const int n = 1 + (int)(draw() % 300), keeps = 1 + (int)(draw() % (uint32_t)n);
        for (int i = 0; i < n; i++) x[i] = number(3), estimate[i] = 0;
        uint8_t message[8 * 300], back[8 * 300];
        const size_t size = topk_bytes((uint64_t)n, (uint64_t)keeps), at = 4 * (size_t)keeps;
        topk_round(x, estimate, (uint64_t)n, (uint64_t)keeps, marks);
        topk_put(x, marks, (uint64_t)n, (uint64_t)keeps, message);
        for (size_t bit = 8 * at; bit < 8 * size; bit++, tried++) {
            message[bit / 8] ^= (uint8_t)(1u << bit % 8);
            if (topk_take(message, estimate, (uint64_t)n, (uint64_t)keeps, again, marks_again)) {
                topk_put(again, marks_again, (uint64_t)n, (uint64_t)keeps, back);
                assert_memory_equal(back, message, size);
                taken++;
            } else if (bit % 3) { /* and two bits */
                const size_t other = 8 * at + draw() % (8 * (size - at));
                message[other / 8] ^= (uint8_t)(1u << other % 8);
                if (topk_take(message, estimate, (uint64_t)n, (uint64_t)keeps, again,
                              marks_again)) {
                    topk_put(again, marks_again, (uint64_t)n, (uint64_t)keeps, back);
                    assert_memory_equal(back, message, size);
                }
                message[other / 8] ^= (uint8_t)(1u << other % 8);
            }
            message[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
    assert_true(taken > 0 && taken < tried);
}

/* A map with a part of each kind: the slot's other bytes stay. */
static void in_a_map(void **state) {
    (void)state;
    enum { N = 700, KEPT = 70, MARKS = 4800, SLOT = 5000 };
    static _Alignas(8) char slot[SLOT], there[SLOT], guess[4 * N + 8];
    const struct wire_part part[] = {
        {.at = 8, .n = 300, .format = WIRE_BF16, .name = 1},
        {.at = 1208, .n = N, .format = WIRE_TOPK, .name = 2, .kept = KEPT, .marks = MARKS,
         .estimate = 8},
        {.at = 1208 + 4 * N, .n = 3, .format = WIRE_F32}};
    const struct wire_map map = {.part = part, .n = 3, .estimate = guess};
    const struct wire_key key = {1, 2, 3};
    uint8_t message[8000];
    for (int i = 0; i < SLOT / 4; i++) {
        const float f = number(3);
        memcpy(slot + 4 * i, &f, 4);
    }
    for (int i = 0; i < N; i++) estimate[i] = number(3);
    memcpy(guess + 8, estimate, 4 * N);
    memcpy(x, slot + 1208, 4 * N);
    assert_int_equal(wire_blocks(&map), 2 + 1 + 1);
    const size_t bytes = wire_bytes(&map, 0, 4);
    assert_int_equal(bytes, 2 * 300 + topk_bytes(N, KEPT) + 12);
    assert_int_equal(wire_slot_bytes(&map, 0, 4), 4 * (300 + N + 3));
    wire_round(&map, &key, 0, 4, slot);
    check_kept("map", N, KEPT);
    assert_memory_equal(slot + 1208, rounded, 4 * N);
    wire_put(&map, slot, 0, 4, message);
    memset(there, 0x5a, SLOT);
    assert_int_equal(wire_take(&map, message, bytes, 0, 4, there), TRI_OK);
    assert_memory_equal(there + 8, slot + 8, 1208 + 4 * N + 12 - 8);
    assert_memory_equal(there + MARKS, slot + MARKS, topk_mark_bytes(N));
    for (int i = 1208 + 4 * N + 12; i < MARKS; i++) assert_int_equal(there[i], 0x5a);
    message[bytes - 13] ^= 1; /* the last byte of indices */
    assert_int_equal(wire_take(&map, message, bytes, 0, 4, there), TRI_FAILED);
    assert_non_null(strstr(tri_message(), "topk"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept),     cmocka_unit_test(digits),   cmocka_unit_test(how_many),
        cmocka_unit_test(refused), cmocka_unit_test(in_a_map),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
