/* SPDX-License-Identifier: Apache-2.0
 * Random numbers and permutations: published vectors, numbers that must not change, distributions,
 * and that every permutation is one. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these headers */
#include <setjmp.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/permute.h"
#include "base/random.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* From the Random123 distribution. */
static void known_answers(void **state) {
    (void)state;
    static const struct {
        uint64_t key, high, low;
        uint32_t out[4];
    } vectors[] = {
        {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88,
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < COUNT(vectors); i++) {
        uint32_t out[4];
        random_block(vectors[i].key, vectors[i].high, vectors[i].low, out);
        assert_memory_equal(out, vectors[i].out, sizeof out);
    }
}

static uint64_t permuted(uint64_t key, uint64_t n, uint64_t i) {
    struct permutation p;
    uint64_t place;
    permute_make(key, n, &p);
    permute_fill(&p, i, 1, &place);
    return place;
}

/* A change of these numbers changes every run. */
static void numbers_stay(void **state) {
    (void)state;
    uint64_t key = random_key(7, 0x123456789abcdef0);
    assert_true(key == 0x05e2f56763d0ff5c);
    assert_true(random_u32(key, 3, 1000001) == 0x93edfbd4);
    assert_true(random_uniform(key, 3, 5) == 0x1.ade9c626802dp-2);
    assert_true(random_normal(key, 3, 5) == -0x1.084ae8e562d24p+0);
    assert_true(random_truncated_normal(key, 3, 5) == -0x1.5965645e73381p-2);
    assert_true(permuted(key, 60000, 1) == 42413);
    assert_true(permuted(key, PERMUTE_MAX - 5, 12345678901) == 161697138877454);
    uint64_t sum = 0; /* of many bits, including rejected attempts */
    for (uint64_t i = 0; i < 10000; i++) {
        double x[] = {random_normal(key, 1, i), random_truncated_normal(key, i, 0)};
        uint64_t bits[2];
        memcpy(bits, x, sizeof bits);
        sum = (sum ^ bits[0]) * 0x100000001b3u + bits[1];
    }
    assert_true(sum == 0xf88bc0a1d2644547);
}

static void normals_are_the_same(void **state) {
    (void)state;
    static const uint64_t firsts[] = {0, 1, 77, 100000, ((uint64_t)1 << 62) - 40000};
    enum { MOST = 30011 };
    static double out[MOST + 1];
    for (size_t f = 0; f < COUNT(firsts); f++)
        for (size_t n = f; n <= MOST; n = 3 * n + 5) {
            out[n] = 9;
            random_normal_fill(5, (uint64_t)9 << 40, firsts[f], n, out);
            for (size_t i = 0; i < n; i++) {
                double x = random_normal(5, (uint64_t)9 << 40, firsts[f] + i);
                assert_memory_equal(&out[i], &x, sizeof x);
            }
            assert_true(out[n] == 9);
        }
}

static void fill_is_the_same(void **state) {
    (void)state;
    static const uint64_t firsts[] = {0, 1, 2, 3, 4, 63, 64, 65, ((uint64_t)1 << 34) - 6,
                                      ((uint64_t)1 << 62) - 400};
    static const size_t sizes[] = {0, 1, 2, 3, 4, 5, 63, 64, 65, 67, 128, 131, 399};
    for (size_t f = 0; f < COUNT(firsts); f++)
        for (size_t s = 0; s < COUNT(sizes); s++) {
            uint32_t out[401];
            size_t n = sizes[s];
            out[n] = 77;
            random_u32_fill(5, (uint64_t)9 << 40, firsts[f], n, out);
            for (size_t i = 0; i < n; i++)
                assert_true(out[i] == random_u32(5, (uint64_t)9 << 40, firsts[f] + i));
            assert_true(out[n] == 77);
        }
}

#define DRAWS 400000

/* Mean, variance, skewness and kurtosis, within six standard errors of the expected values. */
static void moments(const char *name, double (*draw)(uint64_t, uint64_t, uint64_t),
                    const double want[4], double low, double high) {
    double m[9] = {0}, extreme[2] = {0};
    for (uint64_t i = 0; i < DRAWS; i++) {
        /* along the index and along the stream */
        double x = i % 2 ? draw(11, 4, i) : draw(11, i, 4), power = 1;
        if (!(x >= low && x <= high)) fail_msg("%s draws %g", name, x);
        if (x < extreme[0]) extreme[0] = x;
        if (x > extreme[1]) extreme[1] = x;
        x -= want[0];
        for (int k = 1; k <= 8; k++) m[k] += (power *= x) / DRAWS;
    }
    double sigma = sqrt(want[1]);
    for (int k = 1; k <= 4; k++) {
        double got = m[k] / pow(sigma, k);
        double expected = k == 1 ? 0 : k == 2 ? 1 : want[k - 1];
        double error = sqrt((m[2 * k] - m[k] * m[k]) / DRAWS) / pow(sigma, k);
        print_message("%s moment %d: %.5f, expected %.5f +- %.5f\n", name, k, got, expected, error);
        if (fabs(got - expected) > 6 * error) fail_msg("%s: moment %d is %g", name, k, got);
    }
    print_message("%s: from %.3f to %.3f\n", name, extreme[0], extreme[1]);
}

static void distributions(void **state) {
    (void)state;
    moments("uniform", random_uniform, (const double[]){0.5, 1.0 / 12, 0, 1.8}, 0, 1 - 0x1p-53);
    moments("normal", random_normal, (const double[]){0, 1, 0, 3}, -8.6, 8.6);
    /* With q = 2 phi(2) / (Phi(2) - Phi(-2)): variance 1 - 2 q, fourth moment 3 - 14 q. */
    double q = 2 * exp(-2) / sqrt(2 * acos(-1.0)) / erf(sqrt(2)), v = 1 - 2 * q;
    moments("truncated", random_truncated_normal,
            (const double[]){0, v, 0, (3 - 14 * q) / (v * v)}, -2, 2);
}

static double normal_below(double x) { return 0.5 * erfc(-x / sqrt(2)); }
static double truncated_below(double x) {
    return (normal_below(x) - normal_below(-2)) / (normal_below(2) - normal_below(-2));
}
static double uniform_below(double x) { return x; }

/* Chi-square over cells of equal probability; the distribution function maps a number to its
 * cell. */
#define CELLS 1000
static void cells(void **state) {
    (void)state;
    static const struct {
        double (*draw)(uint64_t, uint64_t, uint64_t), (*below)(double);
    } rows[] = {{random_uniform, uniform_below},
                {random_normal, normal_below},
                {random_truncated_normal, truncated_below}};
    for (size_t k = 0; k < COUNT(rows); k++) {
        double count[CELLS] = {0}, chi = 0, expected = (double)DRAWS / CELLS;
        for (uint64_t i = 0; i < DRAWS; i++) {
            double p = rows[k].below(rows[k].draw(12, 0, i));
            count[p >= 1 ? CELLS - 1 : (int)(p * CELLS)]++;
        }
        for (int c = 0; c < CELLS; c++) chi += pow(count[c] - expected, 2) / expected;
        double deviation = (chi - (CELLS - 1)) / sqrt(2.0 * (CELLS - 1));
        print_message("row %zu: chi-square deviates by %.2f\n", k, deviation);
        assert_true(fabs(deviation) < 5);
    }
}

/* Neighbours by index, stream, key and kind are uncorrelated; every bit is set half the time. */
static void independence(void **state) {
    (void)state;
    double sum[5] = {0};
    int64_t set[32] = {0};
    int n = 100000;
    for (uint64_t i = 0; i < (uint64_t)n; i++) {
        double x = random_normal(20, 1, i);
        sum[0] += x * random_normal(20, 1, i + 1);
        sum[1] += x * random_normal(20, 2, i);
        sum[2] += x * random_normal(21, 1, i);
        sum[3] += x * (random_uniform(20, 1, i) - 0.5) * sqrt(12);
        sum[4] += x * random_truncated_normal(20, 1, i);
        uint32_t bits = random_u32(20, 1, i);
        for (int b = 0; b < 32; b++) set[b] += bits >> b & 1;
    }
    for (size_t k = 0; k < COUNT(sum); k++) assert_true(fabs(sum[k]) < 5 * sqrt(n));
    for (int b = 0; b < 32; b++) assert_true(fabs((double)set[b] - n / 2.0) < 5 * sqrt(n) / 2);
}

static int order(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void keys_differ(void **state) {
    (void)state;
    enum { N = 40000 };
    uint64_t *key = malloc(N * sizeof *key);
    assert_non_null(key);
    for (uint64_t i = 0; i < N / 4; i++) {
        key[4 * i] = random_key(i, 0);
        key[4 * i + 1] = random_key(0, i + 1);
        key[4 * i + 2] = random_key((i + 1) << 32, 5);
        key[4 * i + 3] = random_key(random_key(3, i), i + 3);
    }
    qsort(key, N, sizeof *key, order);
    int equal = 0;
    for (int i = 1; i < N; i++) equal += key[i] == key[i - 1];
    free(key);
    assert_int_equal(equal, 0);
}

/* ---- permutations -------------------------------------------------------------------------- */

static void bijective(uint64_t key, uint64_t n) {
    unsigned char *seen = calloc(n, 1);
    uint64_t *place = calloc(n, sizeof *place);
    assert_non_null(seen);
    assert_non_null(place);
    struct permutation order;
    permute_make(key, n, &order);
    permute_fill(&order, 0, n, place);
    assert_true(permuted(key, n, n / 2) == place[n / 2]);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t p = place[i];
        if (p >= n || seen[p]++) fail_msg("n = %llu, i = %llu", (unsigned long long)n,
                                          (unsigned long long)i);
    }
    free(seen);
    free(place);
}

static void permutes(void **state) {
    (void)state;
    for (uint64_t n = 1; n <= 300; n++) bijective(n * 77, n);
    static const uint64_t more[] = {1000, 1023, 1024, 1025, 4095, 4097, 50000, 60000, 65521, 65536};
    for (size_t k = 0; k < COUNT(more); k++) bijective(k, more[k]);
    /* As far as large ones can be checked: distinct places, evenly spread. */
    enum { N = 20000 };
    static const uint64_t large[] = {1281167, ((uint64_t)1 << 32) + 15, PERMUTE_MAX - 1,
                                     PERMUTE_MAX};
    static uint64_t place[N];
    for (size_t k = 0; k < COUNT(large); k++) {
        uint64_t n = large[k];
        double mean = 0;
        for (uint64_t i = 0; i < N; i++) {
            place[i] = permuted(3, n, n - 1 - i);
            assert_true(place[i] < n);
            mean += (double)place[i] / (double)n / N;
        }
        assert_true(fabs(mean - 0.5) < 5 * sqrt(1.0 / 12 / N));
        qsort(place, N, sizeof *place, order);
        for (int i = 1; i < N; i++) assert_true(place[i] != place[i - 1]);
    }
}

/* Every permutation of few elements is equally likely, over the keys. */
static void permutes_evenly(void **state) {
    (void)state;
    static const int factorial[] = {1, 1, 2, 6, 24, 120, 720};
    enum { EACH = 100 };
    for (uint64_t n = 2; n <= 6; n++) {
        int count[6 * 6 * 6 * 6 * 6 * 6] = {0}, keys = EACH * factorial[n], seen = 0;
        for (int key = 0; key < keys; key++) {
            size_t code = 0;
            for (uint64_t i = 0; i < n; i++)
                code = code * 6 + (size_t)permuted(random_key((uint64_t)key, 1), n, i);
            count[code]++;
        }
        double chi = 0;
        for (size_t c = 0; c < COUNT(count); c++)
            if (count[c]) seen++, chi += pow(count[c] - EACH, 2) / EACH;
        assert_int_equal(seen, factorial[n]);
        double deviation = (chi - (seen - 1)) / sqrt(2.0 * (seen - 1));
        print_message("permutations of %d: chi-square deviates by %.2f\n", (int)n, deviation);
        assert_true(deviation < 5);
    }
}

/* The places of two neighbours, over the keys, in 12 x 12 parts. */
static void neighbours_separate(void **state) {
    (void)state;
    static const uint64_t sizes[] = {12, 24, 120, 1020, 1032, 1200, 60000, (uint64_t)12 << 40};
    enum { KEYS = 144 * 200 };
    for (size_t k = 0; k < COUNT(sizes); k++) {
        uint64_t n = sizes[k];
        double count[12][12] = {{0}}, chi = 0, part = (double)n / 12;
        for (uint64_t key = 0; key < KEYS; key++) {
            uint64_t i = random_u32(1, k, key) % (n - 1);
            count[permuted(key, n, i) * 12 / n][permuted(key, n, i + 1) * 12 / n]++;
        }
        for (int a = 0; a < 12; a++)
            for (int b = 0; b < 12; b++) {
                /* Both in one part: the second has one place fewer. */
                double expected = KEYS / 144.0 * part / ((double)n - 1) * 12 *
                                  (a == b ? (part - 1) / part : 1);
                if (expected > 0) chi += pow(count[a][b] - expected, 2) / expected;
                else assert_true(count[a][b] == 0);
            }
        int freedom = n == 12 ? 12 * 11 - 1 : 143;
        double deviation = (chi - freedom) / sqrt(2.0 * freedom);
        print_message("neighbours of %.0f: chi-square deviates by %.2f\n", (double)n, deviation);
        assert_true(fabs(deviation) < 5);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_answers),    cmocka_unit_test(numbers_stay),
        cmocka_unit_test(fill_is_the_same),
        cmocka_unit_test(normals_are_the_same), cmocka_unit_test(distributions),
        cmocka_unit_test(cells),            cmocka_unit_test(independence),
        cmocka_unit_test(keys_differ),      cmocka_unit_test(permutes),
        cmocka_unit_test(permutes_evenly),  cmocka_unit_test(neighbours_separate),
    };
    return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
