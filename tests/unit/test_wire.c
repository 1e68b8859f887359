/* SPDX-License-Identifier: Apache-2.0
 * The formats against a plain model in double; ranges and chunks; what is refused; whether rounding
 * at random is fair. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these headers */
#include <setjmp.h>

#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "unit/bits.h"
#include "wire/wire.h"

static const struct wire_key key = {11, 22, 33};
#define NAME 0x12345678u
#define PART(begins, numbers, is, tensor)                                                   \
    {.at = begins, .n = numbers, .format = is, .name = tensor}

static float of(uint32_t bits) { return convert_of_bits(bits); }

static void assert_floats(const char *what, int row, const float *got, const float *want, int n) {
    for (int i = 0; i < n; i++)
        if (convert_bits(got[i]) != convert_bits(want[i]))
            fail_msg("%s, row %d, number %d: %a (%08x) in place of %a (%08x)", what, row, i,
                     (double)got[i], convert_bits(got[i]), (double)want[i], convert_bits(want[i]));
}

/* ---- the model: one block of n numbers at a time ---- */

struct block {
    float x[WIRE_BLOCK];
    uint8_t bytes[4 * WIRE_BLOCK + 1];
    size_t n_bytes;
};

/* To a multiple of 2^exponent; ties to even. */
static double to_multiple(double x, int exponent) {
    return ldexp(nearbyint(ldexp(x, -exponent)), exponent);
}

static double to_digits(double x, int digits, int least) {
    if (x == 0 || !isfinite(x)) return x;
    const int last = ilogb(x) - digits + 1;
    return to_multiple(x, last > least ? last : least);
}

static double largest(const float *x, int n) {
    double most = 0;
    for (int i = 0; i < n; i++)
        if (isfinite(x[i]) && fabs((double)x[i]) > most) most = fabs((double)x[i]);
    return most;
}

static bool all_finite(const float *x, int n) {
    for (int i = 0; i < n; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

static void model_f32(struct block *b, int n, uint64_t at) {
    (void)at;
    memcpy(b->bytes, b->x, 4u * (size_t)n);
    b->n_bytes = 4u * (size_t)n;
}

static void model_fp16(struct block *b, int n, uint64_t at) {
    (void)at;
    const double most = to_digits(largest(b->x, n), 11, -1074);
    int exponent = most > 0 ? ilogb(most) : -1000;
    exponent = exponent < -111 ? -111 : exponent > 127 ? 127 : exponent;
    for (int i = 0; i < n; i++) {
        double scaled = to_digits(ldexp((double)b->x[i], 14 - exponent), 11, -24);
        b->x[i] = isnan(b->x[i]) ? of(0x7fc00000) : (float)ldexp(scaled, exponent - 14);
    }
    /* an infinite number may have been the largest */
    const double now = largest(b->x, n);
    exponent = now > 0 ? ilogb(now) : -1000;
    exponent = exponent < -111 ? -111 : exponent;
    b->bytes[0] = (uint8_t)(exponent + 127);
    for (int i = 0; i < n; i++) {
        uint16_t h = convert_f32_to_f16((float)ldexp((double)b->x[i], 14 - exponent));
        memcpy(b->bytes + 1 + 2 * i, &h, 2);
    }
    b->n_bytes = 1 + 2u * (size_t)n;
}

static void model_bf16(struct block *b, int n, uint64_t at) {
    (void)at;
    for (int i = 0; i < n; i++) {
        uint32_t bits = convert_bits(b->x[i]);
        float rounded = (float)to_digits((double)b->x[i], 8, -133);
        b->x[i] = isnan(b->x[i]) ? of((bits | 0x400000) & 0xffff0000) : rounded;
        uint16_t h = (uint16_t)(convert_bits(b->x[i]) >> 16);
        memcpy(b->bytes + 2 * i, &h, 2);
    }
    b->n_bytes = 2u * (size_t)n;
}

/* The least step, by its exponent, of which no number is more than 127. */
static int int8_step(double most) {
    int step = -103;
    while (ldexp(127, step) < most) step++;
    return step;
}

/* 24 random bits for an element of a tensor. */
static uint32_t model_draw(uint64_t element) {
    const uint64_t words[] = {key.seed, key.step, (uint64_t)key.node, NAME};
    uint64_t k = base_hash(words, sizeof words, 0);
    k += element / WIRE_BLOCK * 0x9e3779b97f4a7c15u;
    k = (k ^ k >> 30) * 0xbf58476d1ce4e5b9u;
    k = (k ^ k >> 27) * 0x94d049bb133111ebu;
    k ^= k >> 31;
    uint32_t x = (uint32_t)k + (uint32_t)(element % WIRE_BLOCK) * 0x9e3779b9u;
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15 ^ (uint32_t)(k >> 32)) * 0x846ca68bu;
    return (x ^ x >> 16) >> 8;
}

static void model_int8(struct block *b, int n, uint64_t at) {
    const double most = largest(b->x, n);
    const bool nan = !all_finite(b->x, n) || most > ldexp(127, 121);
    const int step = int8_step(most);
    for (int i = 0; i < n; i++) {
        double fixed = trunc(ldexp((double)b->x[i], 24 - step));
        fixed += model_draw(at + (uint64_t)i);
        b->x[i] = nan ? of(0x7fc00000) : (float)(ldexp(floor(ldexp(fixed, -24)), step) + 0.0);
    }
    const int now = int8_step(largest(b->x, n));
    b->bytes[0] = (uint8_t)(nan ? 255 : now + 127);
    for (int i = 0; i < n; i++)
        b->bytes[1 + i] = (uint8_t)(nan ? 0 : (int)ldexp((double)b->x[i], -now));
    b->n_bytes = 1 + (size_t)n;
}

static void (*const models[WIRE_FORMATS])(struct block *b, int n, uint64_t at) = {
    model_f32, model_fp16, model_bf16, model_int8};

/* ---- kinds of blocks ---- */

static float usual(int i) {
    (void)i;
    const int32_t x = (int32_t)next_bits();
    return (float)ldexp((double)x, -31 - (int)(next_bits() % 12));
}
static float any_bits(int i) {
    (void)i;
    return of((uint32_t)next_bits());
}
static float any_finite(int i) {
    float x = any_bits(i);
    return isfinite(x) ? x : 0;
}
static float zero(int i) { return i % 3 ? 0.0f : -0.0f; }
static float subnormal(int i) {
    return of((uint32_t)next_bits() & (i % 5 ? 0x803fffff : 0x8000001f));
}
static float tiny(int i) { return (float)ldexp((double)usual(i), -95); }
static float least(int i) { return (float)ldexp((double)usual(i), -112); }
static float huge(int i) { return i % 2 ? of(0x7f7fffff) : usual(i); }
static float almost(int i) { return i % 7 ? usual(i) : of(0x7f7e0000); }
static float beyond(int i) { return i % 9 ? usual(i) : of(0x7f7e0001); }
static float up(int i) { return i == 0 ? of(0x3fffffff) : (float)ldexp((double)usual(i), -37); }
static float half_up(int i) { return i == 0 ? of(0x3ffff000) : (float)ldexp(3, -26); }
static float infinite(int i) { return i == 0 ? -INFINITY : usual(i); }
static float mixed(int i) { return i % 11 ? usual(i) : i % 2 ? INFINITY : of(0xff812345); }
static float no_number(int i) { return of(0x7f800001u + (uint32_t)i); }
static float at_step(int i) { return (float)(127 - i % 255); }
static float over_step(int i) { return i == 0 ? of(0x42fe0001) : (float)(i % 100); }
static float ties(int i) { return 1 + (float)(i % 64) * 0x1p-12f + (float)(i % 4) * 0x1p-9f; }
static float spread(int i) { return (float)ldexp(1 + (double)(i % 3) / 4, -(i % 45)); }

static float (*const kinds[])(int i) = {
    usual, any_bits, any_finite, zero, subnormal, tiny, least, huge, almost, beyond, up,
    half_up, infinite, mixed, no_number, at_step, over_step, ties, spread};

/* One part of a format, against the model; `at` is its first number of which `x` has n. */
static void check_block(int format, int row, const float *x, int n, uint64_t block) {
    const uint64_t at = block * WIRE_BLOCK;
    const struct wire_part part = PART(0, at + (uint64_t)n, (uint32_t)format, NAME);
    const struct wire_map map = {.part = &part, .n = 1};
    const size_t bytes = 4 * (at + (uint64_t)n);
    float *slot = calloc(1, bytes), *back = calloc(1, bytes);
    struct block want = {0};
    memcpy(slot + at, x, 4u * (size_t)n);
    memcpy(want.x, x, 4u * (size_t)n);
    models[format](&want, n, at);

    wire_round(&map, &key, block, 1, (char *)slot);
    assert_floats(wire_names[format], row, slot + at, want.x, n);
    assert_int_equal(wire_bytes(&map, block, 1), want.n_bytes);
    uint8_t *wire = malloc(want.n_bytes); /* as long as that: sanitizers see what is beyond */
    wire_put(&map, (char *)slot, block, 1, wire);
    for (size_t i = 0; i < want.n_bytes; i++)
        if (wire[i] != want.bytes[i]) fail_msg("%s, row %d: byte %zu", wire_names[format], row, i);
    assert_false(wire_take(&map, wire, want.n_bytes, block, 1, (char *)back));
    assert_floats("taken", row, back + at, want.x, n);
    const struct wire_key other = {1, 2, 3};
    wire_round(&map, &other, block, 1, (char *)slot);
    assert_floats("rounded twice", row, slot + at, want.x, n);
    free(wire);
    free(back);
    free(slot);
}

static void blocks(void **state) {
    (void)state;
    static const int sizes[] = {1, 2, 13, 255, 256, 256, 256};
    float x[WIRE_BLOCK];
    for (int f = 0; f < WIRE_FORMATS; f++)
        for (int k = 0; k < (int)COUNT(kinds); k++)
            for (int s = 0; s < (int)COUNT(sizes); s++) {
                for (int i = 0; i < sizes[s]; i++) x[i] = kinds[k](i);
                check_block(f, k, x, sizes[s], (uint64_t)(s % 4));
            }
}

/* Every exponent that a block can have, and the numbers where it changes. */
static void exponents(void **state) {
    (void)state;
    static const uint32_t edges[] = {0, 1, 0x7ff000, 0x7fefff, 0x7fffff, 0x7e0000, 0x7e0001,
                                     0x001000, 0x400000};
    float x[20];
    for (int f = 0; f < WIRE_FORMATS; f++)
        for (uint32_t e = 0; e < 256; e++)
            for (int k = 0; k < (int)COUNT(edges); k++) {
                x[0] = of(e << 23 | edges[k]);
                for (int i = 1; i < 20; i++) {
                    const uint32_t below = (uint32_t)next_bits() % 30;
                    x[i] = of((e > below && e < 255 ? e - below : 0) << 23 |
                              ((uint32_t)next_bits() & 0x807fffff));
                    x[i] = fabsf(x[i]) <= fabsf(x[0]) ? x[i] : 0;
                }
                check_block(f, (int)e, x, 20, 0);
            }
}

/* ---- ranges ---- */

#define GAP 0x5a5a5a5au

/* Parts of odd sizes, with other numbers in between. */
static const struct wire_part parts[] = {
    PART(8, 1, WIRE_FP16, 1), PART(16, 700, WIRE_INT8, 2),
    PART(2824, 256, WIRE_BF16, 3), PART(3848, 0, WIRE_INT8, 4),
    PART(3856, 511, WIRE_F32, 5), PART(5900, 513, WIRE_FP16, 6),
    PART(7960, 1024, WIRE_INT8, 7), PART(12056, 3, WIRE_INT8, 8),
    PART(12068, 255, WIRE_BF16, 9),
};
#define SLOT 13100
static const struct wire_map map = {.part = parts, .n = COUNT(parts)};

/* Numbers in all parts, and GAP elsewhere. */
static void fill(char *slot) {
    const uint32_t gap = GAP;
    for (size_t i = 0; i < SLOT; i += 4) memcpy(slot + i, &gap, 4);
    for (size_t p = 0; p < COUNT(parts); p++)
        for (uint64_t i = 0; i < parts[p].n; i++) {
            float x = usual(0);
            memcpy(slot + parts[p].at + 4 * i, &x, 4);
        }
}

static void check_chunks(const char *raw, int chunks) {
    static _Alignas(4) char whole[SLOT], slot[SLOT], back[SLOT], sum[SLOT];
    const uint64_t all = wire_blocks(&map);
    const size_t bytes = wire_bytes(&map, 0, all);
    uint8_t *to_whole = malloc(bytes), *to = malloc(bytes);
    memcpy(whole, raw, SLOT);
    memcpy(slot, raw, SLOT);
    memcpy(back, raw, SLOT);
    wire_round(&map, &key, 0, all, whole);
    wire_put(&map, whole, 0, all, to_whole);
    uint64_t next = 0, first, n;
    size_t at = 0;
    for (int c = 0; c < chunks; c++) {
        wire_chunk(&map, c, chunks, &first, &n);
        assert_int_equal(first, next);
        assert_in_range(n, all / (uint64_t)chunks, all / (uint64_t)chunks + 1);
        next = first + n;
        wire_round(&map, &key, first, n, slot);
        const size_t part = wire_bytes(&map, first, n);
        uint8_t *own = malloc(part + !part);
        wire_put(&map, slot, first, n, own);
        assert_false(wire_take(&map, own, part, first, n, back));
        assert_true(wire_take(&map, own, part + 1, first, n, back));
        memcpy(to + at, own, part);
        free(own);
        at += part;
    }
    assert_int_equal(next, all);
    assert_int_equal(at, bytes);
    assert_memory_equal(slot, whole, SLOT);
    assert_memory_equal(back, whole, SLOT);
    assert_memory_equal(to, to_whole, bytes);

    /* backwards; `to` is another slot, the left or the right one */
    char *const targets[] = {sum, slot, back};
    for (size_t t = 0; t < COUNT(targets); t++) {
        memcpy(slot, raw, SLOT);
        memcpy(back, whole, SLOT);
        memcpy(sum, raw, SLOT);
        for (int c = chunks - 1; c >= 0; c--) {
            wire_chunk(&map, c, chunks, &first, &n);
            wire_add(&map, slot, back, first, n, targets[t]);
        }
        for (size_t i = 0; i < SLOT; i += 4) {
            float a, b, want, got;
            memcpy(&want, raw + i, 4);
            memcpy(&got, targets[t] + i, 4);
            bool inside = false;
            for (size_t p = 0; p < COUNT(parts); p++)
                inside |= i >= parts[p].at && i < parts[p].at + 4 * parts[p].n;
            if (inside) {
                memcpy(&a, raw + i, 4);
                memcpy(&b, whole + i, 4);
                want = a + b;
            }
            assert_int_equal(convert_bits(got), convert_bits(want));
        }
    }
    free(to);
    free(to_whole);
}

static void ranges(void **state) {
    (void)state;
    static _Alignas(4) char raw[SLOT];
    fill(raw);
    assert_int_equal(wire_blocks(&map), 1 + 3 + 1 + 0 + 2 + 3 + 4 + 1 + 1);
    assert_int_equal(wire_bytes(&map, 0, 16), 3 + 703 + 512 + 2044 + 1029 + 1028 + 4 + 510);
    for (int chunks = 1; chunks <= 20; chunks++) check_chunks(raw, chunks);
}

static void plain(void **state) {
    (void)state;
    static const struct {
        struct wire_part part[3];
        int n;
        bool plain;
    } rows[] = {
        {{PART(0, 0, 0, 0)}, 0, true},
        {{PART(8, 300, WIRE_F32, 1)}, 1, true},
        {{PART(8, 300, WIRE_F32, 1), PART(1208, 7, WIRE_F32, 2), PART(1236, 1, WIRE_F32, 3)},
         3, true},
        {{PART(8, 300, WIRE_F32, 1), PART(1212, 7, WIRE_F32, 2)}, 2, false},
        {{PART(8, 300, WIRE_F32, 1), PART(1208, 7, WIRE_BF16, 2)}, 2, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct wire_map m = {.part = rows[i].part, .n = rows[i].n};
        assert_int_equal(wire_is_plain(&m), rows[i].plain);
    }
}

/* ---- what is refused ---- */

static void refused(void **state) {
    (void)state;
    static const struct {
        int format, n; /* numbers of a part */
        uint8_t bytes[8];
        int n_bytes;
        bool good;
    } rows[] = {
        {WIRE_F32, 1, {1, 2, 129, 127}, 4, true}, /* a signalling NaN */
        {WIRE_F32, 1, {1, 2, 3}, 3, false},
        {WIRE_F32, 1, {0}, 5, false},
        {WIRE_F32, 0, {0}, 1, false},
        {WIRE_F32, 0, {0}, 0, true},
        {WIRE_FP16, 1, {16, 0, 0}, 3, true},
        {WIRE_FP16, 1, {15, 0, 0}, 3, false},
        {WIRE_FP16, 1, {17, 0, 0}, 3, false},  /* its largest is smaller */
        {WIRE_FP16, 2, {17, 0, 0xf4, 0, 0}, 5, true},
        {WIRE_FP16, 2, {17, 0xff, 0xf3, 0, 0}, 5, false},
        {WIRE_FP16, 2, {17, 0xff, 0x77, 0, 0}, 5, true},
        {WIRE_FP16, 2, {17, 0, 0x78, 0, 0}, 5, false},
        {WIRE_FP16, 2, {17, 0, 0xfc, 0, 0}, 5, false},
        {WIRE_FP16, 2, {254, 0, 0xfc, 0, 0x74}, 5, true},
        {WIRE_FP16, 2, {255, 0, 0, 0, 0x74}, 5, false},
        {WIRE_FP16, 1, {16, 0, 0x7e}, 3, true},
        {WIRE_FP16, 1, {16, 0, 0xfe}, 3, false},
        {WIRE_FP16, 1, {16, 1, 0x7e}, 3, false},
        {WIRE_FP16, 1, {16, 0}, 2, false},
        {WIRE_BF16, 1, {0x80, 0x7f}, 2, true},
        {WIRE_BF16, 1, {0x81, 0x7f}, 2, false}, /* a signalling NaN */
        {WIRE_BF16, 1, {0xc1, 0xff}, 2, true},
        {WIRE_BF16, 2, {0, 0, 0}, 3, false},
        {WIRE_INT8, 1, {24, 0}, 2, true},
        {WIRE_INT8, 1, {23, 0}, 2, false},
        {WIRE_INT8, 1, {0, 0}, 2, false},
        {WIRE_INT8, 1, {25, 63}, 2, false},
        {WIRE_INT8, 1, {25, 64}, 2, true},
        {WIRE_INT8, 2, {248, 0x81, 0}, 3, true},
        {WIRE_INT8, 2, {249, 0x81, 0}, 3, false},
        {WIRE_INT8, 2, {100, 0x80, 0}, 3, false},
        {WIRE_INT8, 2, {255, 0, 0}, 3, true},
        {WIRE_INT8, 2, {255, 0, 1}, 3, false},
        {WIRE_INT8, 2, {255, 0}, 2, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct wire_part part = PART(0, (uint64_t)rows[i].n, (uint32_t)rows[i].format, 0);
        const struct wire_map m = {.part = &part, .n = 1};
        float slot[2];
        const size_t n = (size_t)rows[i].n_bytes;
        uint8_t *bytes = malloc(n + !n), *again = malloc(n + !n);
        memcpy(bytes, rows[i].bytes, n);
        if (!wire_take(&m, bytes, n, 0, wire_blocks(&m), (char *)slot) != rows[i].good)
            fail_msg("row %zu was %s", i, rows[i].good ? "refused" : "taken");
        if (rows[i].good) {
            wire_put(&m, (char *)slot, 0, wire_blocks(&m), again);
            assert_memory_equal(again, bytes, n);
        } else {
            assert_int_equal(base_last(), TRI_FAILED);
        }
        free(again);
        free(bytes);
    }
}

/* ---- whether rounding at random is fair ---- */

/* Rounds n numbers, of which those that are not the first of their block are `x` steps of 2^0; the
 * others make the step so. */
static void round_all(const struct wire_key *k, uint32_t name, float x, float *to, size_t n) {
    const struct wire_part part = PART(0, n, WIRE_INT8, name);
    const struct wire_map m = {.part = &part, .n = 1};
    for (size_t i = 0; i < n; i++) to[i] = i % WIRE_BLOCK ? x : 100;
    wire_round(&m, k, 0, wire_blocks(&m), (char *)to);
}

#define DRAWS (1 << 18)

static void unbiased(void **state) {
    (void)state;
    static const float rows[] = {0.5f, 0.25f, 0.001f, 0.999f, 63.3f, 126.7f,
                                 1e-5f, 17,    0,      0x1p-24f};
    float *x = malloc(DRAWS * sizeof *x);
    for (int r = 0; r < 2 * (int)COUNT(rows); r++) {
        const float exact = r % 2 ? -rows[r / 2] : rows[r / 2];
        const struct wire_key k = {1, 2, r};
        const double share = (double)exact - floor((double)exact);
        double sum = 0, n = 0;
        round_all(&k, 1, exact, x, DRAWS);
        for (size_t i = 0; i < DRAWS; i++) {
            if (i % WIRE_BLOCK == 0) continue;
            assert_true(x[i] == floorf(exact) || x[i] == ceilf(exact));
            sum += (double)x[i] - floor((double)exact);
            n++;
        }
        /* a binomial distribution: 4.5 standard deviations, and one for what is rare */
        if (fabs(sum - n * share) > 4.5 * sqrt(n * share * (1 - share)) + 1)
            fail_msg("%g was rounded up %g times in place of %g", (double)exact, sum, n * share);
    }
    free(x);
}

/* Of two series of ups and downs, how often they agree. */
static void assert_independent(const char *what, const float *a, const float *b, size_t n) {
    double same = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        if (a[i] > 1 || b[i] > 1) continue; /* the first of a block */
        same += a[i] == b[i];
        all++;
    }
    if (fabs(same - all / 2) > 4.5 * sqrt(all) / 2) fail_msg("%s: %g of %g agree", what, same, all);
}

static void independent(void **state) {
    (void)state;
    static const struct {
        const char *what;
        struct wire_key key;
        uint32_t name;
    } rows[] = {{"seed", {1, 0, 0}, 0},          {"step", {0, 1, 0}, 0},
                {"node", {0, 0, 1}, 0},          {"name", {0, 0, 0}, 1},
                {"step", {0, 1u << 31, 0}, 0},   {"seed", {1ull << 60, 0, 0}, 0},
                {"node and step", {0, 1, 1}, 0}, {"seed and step", {1, 1, 0}, 0}};
    static const size_t distances[] = {1, 2, 3, 4, 7, 8, 16, 32, 64, 128, 256, 512, 1024, 65536};
    const struct wire_key none = {0, 0, 0};
    float *base = malloc(DRAWS * sizeof *base), *x = malloc(DRAWS * sizeof *x);
    float *before = malloc(DRAWS * sizeof *before);
    round_all(&none, 0, 0.5f, base, DRAWS);
    memcpy(before, base, DRAWS * sizeof *base);
    for (size_t d = 0; d < COUNT(distances); d++)
        assert_independent("distance", base, base + distances[d], DRAWS - distances[d]);
    for (size_t r = 0; r < COUNT(rows); r++) {
        round_all(&rows[r].key, rows[r].name, 0.5f, x, DRAWS);
        assert_independent(rows[r].what, base, x, DRAWS);
        assert_independent(rows[r].what, before, x, DRAWS);
        memcpy(before, x, DRAWS * sizeof *x);
    }
    round_all(&none, 0, 0.5f, x, DRAWS);
    assert_floats("again", 0, x, base, DRAWS);
    free(before);
    free(x);
    free(base);
}

/* How many of the numbers below x steps are rounded up is how many draws are above: their
 * distribution over 64 intervals, by the square of Pearson. */
static void uniform(void **state) {
    (void)state;
    float *x = malloc(DRAWS * sizeof *x);
    const struct wire_key k = {5, 6, 7};
    const double each = (double)(DRAWS - DRAWS / WIRE_BLOCK) / 64;
    double last = 0, chi = 0;
    for (int r = 1; r <= 64; r++) {
        double ups = 0;
        round_all(&k, 9, (float)r / 64, x, DRAWS);
        for (size_t i = 0; i < DRAWS; i++) ups += x[i] == 1;
        chi += (ups - last - each) * (ups - last - each) / each;
        last = ups;
    }
    assert_true(last == 64 * each);
    assert_true(chi > 30 && chi < 110); /* 63 degrees of freedom: one in 10,000 is outside */
    free(x);
}

/* ---- bits that never change ---- */

static void golden(void **state) {
    (void)state;
    static const uint64_t want[WIRE_FORMATS][2] = { /* of the slot, and of the wire */
        {0x1134a79b7ac6bf35, 0x1134a79b7ac6bf35},
        {0xf30951b210aa7004, 0x32752f28d742f40b},
        {0x7ea51dfbff866e02, 0xd17103c6a1edc604},
        {0x6489996e88610a1c, 0x6a78d117f672b330}};
    enum { N = 40 * WIRE_BLOCK - 3 };
    static float x[N];
    static uint8_t wire[4 * N];
    bool same = true;
    for (int f = 0; f < WIRE_FORMATS; f++) {
        sequence = 1;
        for (int i = 0; i < N; i++) x[i] = kinds[(size_t)i / 512 % COUNT(kinds)](i % WIRE_BLOCK);
        const struct wire_part part = PART(0, N, (uint32_t)f, NAME);
        const struct wire_map m = {.part = &part, .n = 1};
        wire_round(&m, &key, 0, 40, (char *)x);
        wire_put(&m, (char *)x, 0, 40, wire);
        const uint64_t slot = base_hash(x, sizeof x, 0);
        const uint64_t bytes = base_hash(wire, wire_bytes(&m, 0, 40), 0);
        if (slot == want[f][0] && bytes == want[f][1]) continue;
        same = false;
        print_error("%s: {0x%016" PRIx64 ", 0x%016" PRIx64 "}\n", wire_names[f], slot, bytes);
    }
    assert_true(same);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks),      cmocka_unit_test(exponents), cmocka_unit_test(ranges),
        cmocka_unit_test(plain),       cmocka_unit_test(refused),   cmocka_unit_test(unbiased),
        cmocka_unit_test(independent), cmocka_unit_test(uniform),   cmocka_unit_test(golden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
