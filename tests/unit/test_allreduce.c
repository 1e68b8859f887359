/* SPDX-License-Identifier: Apache-2.0
 * All-reduce with threads as ranks: every result has the bits of the tree's sum, for any size;
 * between calls a rank may write its inputs and results; a rank that waits long is woken. */
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/allreduce.h"

#define STREAMED ((16u << 20) / sizeof(float)) /* from here on larger than the caches */

static const int rank_counts[] = {1, 2, 3, 4, 5, 6, 7, 8};

/* ---- the expected sums ---- */

static float value(int rank, size_t i, unsigned round) {
    uint32_t h = ((uint32_t)i + 1) * 0x9e3779b1u;
    h ^= (uint32_t)(rank + 1) * 0x85ebca77u ^ round * 0xc2b2ae3du;
    h = (h ^ h >> 15) * 0x2c1b3c6du;
    h ^= h >> 13;
    return (float)((int32_t)h >> 8) * (float)(1u << (h & 7));
}

/* Sums of two equal neighbours, as soon as both exist; the rest from the right. */
static float right_sum(int ranks, size_t i, unsigned round) {
    float sum[8];
    int size[8], n = 0;
    for (int r = 0; r < ranks; r++) {
        sum[n] = value(r, i, round);
        size[n++] = 1;
        for (; n > 1 && size[n - 2] == size[n - 1]; n--) {
            sum[n - 2] += sum[n - 1];
            size[n - 2] *= 2;
        }
    }
    for (; n > 1; n--) sum[n - 2] += sum[n - 1];
    return sum[0];
}

static void the_order_is_seen(void **state) {
    (void)state;
    int other = 0;
    for (size_t i = 0; i < 1000; i++) {
        float in_a_row = value(0, i, 0) + value(1, i, 0) + value(2, i, 0) + value(3, i, 0);
        other += right_sum(4, i, 0) != in_a_row;
    }
    assert_in_range(other, 100, 1000);
}

/* ---- ranks ---- */

struct group {
    void *memory;
    int ranks;
    size_t most;
    const size_t *sizes; /* one per round */
    unsigned rounds;
    bool crowded;
    useconds_t late; /* how long rank 0 delays the others in every round */
    atomic_size_t wrong;
};

struct rank {
    pthread_t thread;
    struct group *group;
    int rank;
};

static void *rank_main(void *arg) {
    struct rank *me = arg;
    struct group *g = me->group;
    struct allreduce a;
    allreduce_join(&a, g->memory, g->ranks, me->rank, g->most, g->crowded);
    float *in = allreduce_input(&a);
    const float *out = allreduce_result(&a);
    for (unsigned round = 0; round < g->rounds; round++) {
        size_t n = g->sizes[round];
        for (size_t i = 0; i < n; i++) in[i] = value(me->rank, i, round);
        if (!me->rank && g->late) usleep(g->late);
        allreduce_sum(&a, n);
        memset(in, 0xff, n * sizeof *in); /* no longer read by any rank */
        for (size_t i = 0; i < n; i++) {
            float right = right_sum(g->ranks, i, round);
            if (memcmp(&right, &out[i], sizeof right)) atomic_fetch_add(&g->wrong, 1);
        }
    }
    return NULL;
}

static void run(struct group *g) {
    size_t bytes = allreduce_bytes(g->ranks, g->most);
    struct rank rank[8];
    assert_in_range(g->ranks, 1, COUNT(rank));
    assert_int_equal(bytes % 4096, 0);
    g->memory = aligned_alloc(4096, bytes);
    assert_non_null(g->memory);
    memset(g->memory, 0, bytes);
    for (int r = 0; r < g->ranks; r++) {
        rank[r] = (struct rank){.group = g, .rank = r};
        assert_int_equal(pthread_create(&rank[r].thread, NULL, rank_main, &rank[r]), 0);
    }
    for (int r = 0; r < g->ranks; r++) pthread_join(rank[r].thread, NULL);
    free(g->memory);
    if (g->wrong)
        fail_msg("%d ranks: %zu wrong elements", g->ranks, atomic_load(&g->wrong));
}

/* Sizes around lines of 16, runs of 1024 and empty slices, in mixed order. */
static const size_t sizes[] = {1,    4099, 2,    15,  0,   16, 17,    1023, 33,   1025, 8192,
                               3,    127,  5000, 129, 100, 64, 70001, 7,    2048, 31,   12345};

static void the_same_bits(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT(rank_counts); k++)
        for (int crowded = 0; crowded < 2; crowded++)
            run(&(struct group){.ranks = rank_counts[k], .most = 70001, .sizes = sizes,
                                .rounds = COUNT(sizes), .crowded = crowded || rank_counts[k] > 2});
}

static void larger_than_the_caches(void **state) {
    (void)state;
    static const size_t large[] = {STREAMED - 1, STREAMED, STREAMED + 17};
    for (int ranks = 2; ranks <= 3; ranks++)
        run(&(struct group){.ranks = ranks, .most = STREAMED + 17, .sizes = large,
                            .rounds = COUNT(large), .crowded = true});
}

static void many_small_sums(void **state) {
    (void)state;
    static size_t small[3000];
    for (size_t i = 0; i < COUNT(small); i++) small[i] = 1 + i % 40;
    run(&(struct group){.ranks = 2, .most = 64, .sizes = small, .rounds = COUNT(small)});
    run(&(struct group){.ranks = 4, .most = 64, .sizes = small, .rounds = 300, .crowded = true});
}

/* Longer than any rank spins and yields. */
static void sleepers_are_woken(void **state) {
    (void)state;
    run(&(struct group){.ranks = 4, .most = 70001, .sizes = sizes, .rounds = 5, .late = 30000});
}

/* The counts of barriers may overflow. */
static void *two_hundred(void *arg) {
    struct barrier *b = arg;
    for (int i = 0; i < 200; i++) barrier_wait(b);
    return NULL;
}

static void counts_overflow(void **state) {
    (void)state;
    static struct barrier_line line[2];
    struct barrier b[2];
    pthread_t other;
    for (int r = 0; r < 2; r++) {
        atomic_init(&line[r].arrived, 0u - 100);
        b[r] = (struct barrier){.line = line, .ranks = 2, .rank = r, .arrived = 0u - 100};
    }
    assert_int_equal(pthread_create(&other, NULL, two_hundred, &b[1]), 0);
    two_hundred(&b[0]);
    pthread_join(other, NULL);
    assert_int_equal(b[0].arrived, 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_is_seen), cmocka_unit_test(the_same_bits),
        cmocka_unit_test(larger_than_the_caches),   cmocka_unit_test(many_small_sums),
        cmocka_unit_test(sleepers_are_woken), cmocka_unit_test(counts_overflow),
    };
    return cmocka_run_group_tests_name("allreduce", tests, NULL, NULL);
}
