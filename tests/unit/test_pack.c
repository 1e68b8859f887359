/* SPDX-License-Identifier: Apache-2.0
 * The lossless format: round trips, sizes, bytes that never change, and what is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these headers */
#include <setjmp.h>

#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "unit/bits.h"
#include "wire/pack.h"

#define GROUP 16384
#define HEAD 11 /* bytes before the lengths of the codes */
#define MARK 0xa5

static float of(uint32_t bits) { return convert_of_bits(bits); }

/* ---- kinds of numbers ---- */

/* About normal, of another scale in each row of 768; exact, so that it is the same everywhere. */
static float gradient(size_t i) {
    const uint32_t scale = (uint32_t)(i / 768) * 2654435761u >> 29;
    int32_t sum = 0;
    for (int k = 0; k < 6; k++) sum += (int32_t)(next_bits() & 0xfffff) - 0x80000;
    return (float)(sum | 1) * of((127 - 30 - scale) << 23) *
           (1 + (float)(next_bits() & 0xffff) * 0x1p-22f);
}
static float any_bits(size_t i) {
    (void)i;
    return of((uint32_t)next_bits());
}
static float constant(size_t i) {
    (void)i;
    return 3.14159f;
}
static float zero(size_t i) {
    (void)i;
    return 0;
}
static float signed_zero(size_t i) { return i % 3 ? 0.0f : -0.0f; }
static float powers(size_t i) { return of(((uint32_t)i * 2654435761u >> 29) << 23); }
static float no_number(size_t i) { return of(0x7f800001u + (uint32_t)i); }
static float subnormal(size_t i) { return of((uint32_t)next_bits() & (i % 5 ? 0x803fffff : 0x1f)); }
static float infinite(size_t i) { return i % 7 ? (float)INFINITY : -(float)INFINITY; }
static float sparse(size_t i) { return next_bits() % 8 ? 0 : gradient(i); }
static float two(size_t i) { return i % 4096 ? gradient(0) : of(0xff123456); }
/* Half of them have one exponent, a quarter another one, and so on: codes as long as can be. */
static float halves(size_t i) {
    uint32_t exponent = 1;
    while (exponent < 255 && next_bits() & 1) exponent++;
    return of(exponent << 23 | (uint32_t)(i & 0xffff));
}
static float all_exponents(size_t i) {
    return of((i % 3 ? 100 : (uint32_t)(i & 255)) << 23 | (uint32_t)(i & 0xffff));
}

static float (*const kinds[])(size_t i) = {
    gradient, any_bits, constant, zero, signed_zero, powers, no_number, subnormal, infinite, sparse,
    two, halves, all_exponents};

static float *numbers(float (*kind)(size_t i), size_t n) {
    float *x = malloc(n * sizeof *x + !n);
    for (size_t i = 0; i < n; i++) x[i] = kind(i);
    return x;
}

/* ---- round trips ---- */

struct bytes {
    uint8_t *data; /* as long as that: sanitizers see what is beyond */
    size_t n;
};

static struct bytes put(const float *x, size_t n) {
    const size_t most = pack_most(n);
    uint8_t *room = malloc(most + 16);
    memset(room + most, MARK, 16);
    struct bytes b = {NULL, pack_put(x, n, room)};
    assert_true(b.n <= most);
    for (size_t i = most; i < most + 16; i++) assert_int_equal(room[i], MARK);
    b.data = malloc(b.n + !b.n);
    if (b.n) memcpy(b.data, room, b.n);
    free(room);
    return b;
}

static bool take(const uint8_t *from, size_t bytes, float *x, size_t n) {
    uint8_t *exact = calloc(1, bytes + !bytes);
    if (bytes) memcpy(exact, from, bytes);
    const bool good = pack_take(exact, bytes, x, n);
    free(exact);
    return good;
}

/* Other bytes are refused, or they are what pack_put writes for other numbers. Returns whether they
 * were taken. */
static bool check_any(const uint8_t *from, size_t bytes, size_t n) {
    float *x = malloc(n * sizeof *x + !n);
    const bool good = take(from, bytes, x, n);
    if (good) {
        struct bytes b = put(x, n);
        assert_int_equal(b.n, bytes);
        if (bytes) assert_memory_equal(b.data, from, bytes);
        free(b.data);
    }
    free(x);
    return good;
}

/* Returns the bytes that the numbers take. */
static size_t check(const float *x, size_t n) {
    struct bytes b = put(x, n);
    float *back = malloc((n + 2) * sizeof *back);
    memset(back, MARK, (n + 2) * sizeof *back);
    assert_true(pack_take(b.data, b.n, back, n));
    if (n) assert_memory_equal(back, x, n * sizeof *x);
    const uint8_t *beyond = (const uint8_t *)(back + n);
    for (size_t i = 0; i < 2 * sizeof *back; i++) assert_int_equal(beyond[i], MARK);
    /* without planes, more or fewer numbers can have the same bytes */
    assert_false(check_any(b.data, b.n, n + 1) && b.n > 3 * n);
    assert_false(n && check_any(b.data, b.n, n - 1) && b.n > 3 * n);
    assert_false(b.n && take(b.data, b.n - 1, back, n));
    uint8_t *longer = calloc(1, b.n + 1);
    if (b.n) memcpy(longer, b.data, b.n);
    assert_false(pack_take(longer, b.n + 1, back, n));
    free(longer);
    free(back);
    free(b.data);
    return b.n;
}

static void sizes(void **state) {
    (void)state;
    static const size_t large[] = {GROUP - 5, GROUP - 1, GROUP,
                                   GROUP + 1, GROUP + 4, 2 * GROUP + 259};
    for (size_t k = 0; k < COUNT(kinds); k++) {
        float *x = numbers(kinds[k], 2 * GROUP + 259);
        for (size_t n = 0; n <= 1000; n += k && n > 40 ? 37 : 1) check(x, n);
        for (size_t i = 0; i < COUNT(large); i++) check(x, large[i]);
        free(x);
    }
}

static void most(void **state) {
    (void)state;
    assert_int_equal(pack_most(0), 0);
    assert_int_equal(pack_most(1), 5);
    assert_int_equal(pack_most(GROUP), 4 * GROUP + 1);
    assert_int_equal(pack_most(GROUP + 1), 4 * GROUP + 6);
}

/* ---- bytes ---- */

static void saves(void **state) {
    (void)state;
    static const struct {
        float (*kind)(size_t i);
        double least, most; /* of the bytes of f32 */
    } rows[] = {
        {gradient, 0.80, 0.88},       {any_bits, 1, 1.0001},  {constant, 0.75, 0.751},
        {zero, 0.0001, 0.0002},       {powers, 0.09, 0.1},    {no_number, 0.75, 0.751},
        {signed_zero, 0.75, 0.751},   {sparse, 0.75, 0.82},   {halves, 0.81, 0.82},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        const size_t n = 4 * GROUP;
        float *x = numbers(rows[i].kind, n);
        const double share = (double)check(x, n) / (double)(n * sizeof *x);
        if (share < rows[i].least || share > rows[i].most) fail_msg("row %zu: %f", i, share);
        free(x);
    }
}

/* The bits of a Huffman code, which may be as long as it likes. */
static uint64_t huffman(const float *x, size_t n) {
    uint64_t weight[256] = {0}, bits = 0;
    for (size_t i = 0; i < n; i++) weight[convert_bits(x[i]) >> 23 & 255]++;
    for (;;) {
        int a = -1, b = -1; /* the two of the least weight */
        for (int s = 0; s < 256; s++) {
            if (!weight[s]) continue;
            if (a < 0 || weight[s] < weight[a])
                b = a, a = s;
            else if (b < 0 || weight[s] < weight[b])
                b = s;
        }
        if (b < 0) return bits;
        weight[a] += weight[b];
        weight[b] = 0;
        bits += weight[a];
    }
}

/* As few bytes as any code of whole bits can have, but for the limit of 11 bits, which costs less
 * than a thousandth, and since each of four streams is rounded up. */
static void shortest(void **state) {
    (void)state;
    float (*const some[])(size_t i) = {gradient, sparse, subnormal, constant};
    for (size_t k = 0; k < COUNT(some); k++) {
        float *x = numbers(some[k], GROUP);
        struct bytes b = put(x, GROUP);
        assert_int_equal(b.data[0], 1);
        const size_t lengths = (size_t)(b.data[HEAD - 1] - b.data[HEAD - 2]) / 2 + 1;
        const size_t streams = b.n - HEAD - lengths - 3 * GROUP;
        const uint64_t want = huffman(x, GROUP);
        assert_in_range(8 * streams, want, want + want / 1000 + 4 * 7);
        free(b.data);
        free(x);
    }
}

static void golden(void **state) {
    (void)state;
    static const uint64_t want[COUNT(kinds)] = {
        0xb99a3ae198e37f5a, 0x0341039239b1d22e, 0x8977c129932ca665, 0xa55c43766da9a6ff,
        0xd7548cc810eb3272, 0xa8a491b3e4651d46, 0xac40f1c454f1cf7c, 0xce60ce8d3e9e55bf,
        0xe1f5c20dac9a4590, 0x986e1621de90921d, 0x2ff644b5d3e6c172, 0x8198738cfb648c3d,
        0xc57c03f2e811d4ac};
    bool same = true;
    sequence = 1;
    for (size_t k = 0; k < COUNT(kinds); k++) {
        float *x = numbers(kinds[k], GROUP + 1003);
        struct bytes b = put(x, GROUP + 1003);
        const uint64_t hash = base_hash(b.data, b.n, 0);
        if (hash != want[k]) {
            same = false;
            print_error("kind %zu: 0x%016" PRIx64 "\n", k, hash);
        }
        free(b.data);
        free(x);
    }
    assert_true(same);
}

/* ---- what is refused ---- */

static void damaged(void **state) {
    (void)state;
    float (*const some[])(size_t i) = {gradient, powers, sparse, all_exponents, any_bits};
    enum { N = 403 };
    for (size_t k = 0; k < COUNT(some); k++) {
        float *x = numbers(some[k], N);
        struct bytes b = put(x, N);
        assert_int_equal(b.data[0], some[k] == powers ? 2 : some[k] != any_bits);
        const size_t planes = b.data[0] == 1 ? b.n - 3 * N : b.data[0] == 2 ? b.n : 1;
        int taken = 0;
        for (size_t i = 0; i < b.n; i++) {
            for (int bit = 0; bit < 8; bit++) {
                if (i >= planes && bit != (int)i % 8) continue;
                b.data[i] ^= (uint8_t)(1 << bit);
                const bool good = check_any(b.data, b.n, N);
                if (i < HEAD && b.data[0]) assert_false(good);
                if (i >= planes && some[k] != any_bits) assert_true(good);
                taken += good;
                b.data[i] ^= (uint8_t)(1 << bit);
            }
            const uint8_t before = b.data[i];
            for (int value = 0; value < 256; value += 255) {
                b.data[i] = (uint8_t)value;
                check_any(b.data, b.n, N);
            }
            b.data[i] = before;
            assert_false(check_any(b.data, i, N));
        }
        assert_true(taken > 0);
        free(b.data);
        free(x);
    }
}

/* Heads by hand: streams of 8 zero bytes each and planes of zeros or `fill`, for 400 numbers. */
static void heads(void **state) {
    (void)state;
    enum { N = 400, SIZE = HEAD + 130 + 4 * 60 + 3 * N };
    static const struct {
        uint8_t kind, first, last, lengths; /* each byte of them */
        int stream;                         /* bytes of each */
    } rows[] = {
        {1, 100, 101, 0x11, 13}, /* but there is one exponent */
        {1, 100, 103, 0x22, 25}, {1, 100, 110, 0x11, 13}, /* more codes than there are */
        {1, 100, 101, 0xcc, 13}, {1, 100, 101, 0xff, 13}, /* too long */
        {1, 101, 100, 0x11, 13}, {1, 255, 0, 0x11, 13},   /* no range */
        {1, 0, 255, 0x88, 50},   {1, 100, 100, 0x00, 1},  {1, 100, 100, 0x55, 0},
        {3, 100, 100, 0x00, 0},  {255, 100, 100, 0, 0},   {1, 100, 101, 0x11, 60000},
        {2, 100, 101, 0x11, 13}, {2, 100, 101, 0x00, 0},
        {2, 100, 101, 0x11, 1},  {2, 0, 255, 0xbb, 1},    /* codes beyond the end */
    };
    uint8_t bytes[SIZE] = {0};
    for (size_t i = 0; i < COUNT(rows); i++)
        for (int fill = 0; fill < 2; fill++) {
            const uint16_t stream = (uint16_t)rows[i].stream;
            memset(bytes, fill ? 0xff : 0, sizeof bytes);
            bytes[0] = rows[i].kind;
            for (int k = 0; k < 4; k++) memcpy(bytes + 1 + 2 * k, &stream, 2);
            bytes[HEAD - 2] = rows[i].first;
            bytes[HEAD - 1] = rows[i].last;
            memset(bytes + HEAD, rows[i].lengths, 128);
            for (size_t n = HEAD; n <= SIZE; n += n < HEAD + 140 ? 1 : 17)
                assert_false(check_any(bytes, n, N));
        }
}

/* The same numbers in other ways than pack_put writes them. */
static void other_ways(void **state) {
    (void)state;
    enum { N = 402 };
    /* 100 with a code of one bit, 101 and 102 with codes of two */
    float *x = malloc(N * sizeof *x), *back = malloc(N * sizeof *back);
    for (size_t i = 0; i < N; i++) x[i] = of((i % 4 > 1 ? 99 + (uint32_t)i % 4 : 100) << 23 | 5);
    struct bytes b = put(x, N);
    assert_int_equal(b.n, HEAD + 2 + 2 * 19 + 2 * 19 + 3 * N);
    assert_int_equal(b.data[HEAD], 0x21);
    assert_int_equal(b.data[HEAD + 1], 0x02);
    assert_true(take(b.data, b.n, back, N));

    uint8_t *raw = malloc(N * sizeof *x + 1);
    raw[0] = 0;
    memcpy(raw + 1, x, N * sizeof *x);
    assert_false(take(raw, N * sizeof *x + 1, back, N));
    free(raw);

    b.data[HEAD + 2 + 18] ^= 0x80; /* after the last code of a stream */
    assert_false(take(b.data, b.n, back, N));
    b.data[HEAD + 2 + 18] ^= 0x80;
    b.data[HEAD + 1] |= 0x10; /* the half byte after the last length */
    assert_false(take(b.data, b.n, back, N));
    free(b.data);

    /* planes of zeros; a length that no number has */
    for (size_t i = 0; i < N; i++) x[i] = of(100u << 23);
    b = put(x, N);
    assert_int_equal(b.n, HEAD + 1);
    assert_int_equal(b.data[0], 2);
    b.data = realloc(b.data, b.n + 3 * N);
    memset(b.data + b.n, 0, 3 * N);
    b.data[0] = 1;
    assert_false(take(b.data, b.n + 3 * N, back, N));
    b.data[b.n] = 1;
    assert_true(take(b.data, b.n + 3 * N, back, N));
    b.data[HEAD] = 1;
    assert_false(take(b.data, b.n + 3 * N, back, N));
    free(b.data);
    free(back);
    free(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes),   cmocka_unit_test(most),  cmocka_unit_test(saves),
        cmocka_unit_test(shortest), cmocka_unit_test(golden), cmocka_unit_test(damaged),
        cmocka_unit_test(heads),   cmocka_unit_test(other_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
