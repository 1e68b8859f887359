/* SPDX-License-Identifier: Apache-2.0
 * The search by elimination finds the least sum that trying all assignments finds, to the unit of
 * cost, with and without sharing; and finds another one if a single cost is another by one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "search/eliminate.h"

#define GRAPHS 500
#define LARGE 20 /* of which have over 10^5 assignments; the others over 10^3 */
#define VARS 40
#define TABLES 120
#define CELLS 512

struct problem {
    struct cost_sum sum;
    int values[VARS];
    struct cost_table table[TABLES];
    int var[TABLES][3];
    int64_t cost[TABLES][CELLS];
    double assignments;
};

static uint64_t state = 1;
static int64_t draw(int64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)below);
}

static void add_table(struct problem *p, int n, const int *var) {
    const size_t i = p->sum.n_tables++;
    int64_t cells = 1;
    for (int k = 0; k < n; k++) {
        p->var[i][k] = var[k];
        cells *= p->values[var[k]];
    }
    assert_true(i < TABLES && cells <= CELLS);
    for (int64_t c = 0; c < cells; c++)
        p->cost[i][c] = draw(20) ? draw(1000000000000) : COST_NEVER; /* up to a second */
    p->table[i] = (struct cost_table){n, p->var[i], p->cost[i]};
}

/* A chain of nodes with further edges, as a network has them; and copies of the same costs. */
static void make(struct problem *p, bool large) {
    const int n = 5 + (int)draw(large ? 8 : 5);
    memset(p, 0, sizeof *p);
    p->sum = (struct cost_sum){.n_vars = n, .values = p->values, .table = p->table,
                               .most_cells = 1 << 24};
    p->assignments = 1;
    for (int v = 0; v < n; v++) {
        p->values[v] = 2 + (int)draw(large ? 4 : 3);
        p->assignments *= p->values[v];
    }
    for (int v = 0; v < n; v++) add_table(p, 1, &v);
    for (int v = 1; v < n; v++) add_table(p, 2, (const int[]){v - 1, v});
    for (int k = 0; k < n / 2; k++) {
        const int a = (int)draw(n), b = (int)draw(n), c = (int)draw(n);
        if (a != b) add_table(p, 2, (const int[]){a, b});
        if (a != b && b != c && a != c) add_table(p, 3, (const int[]){c, a, b});
    }
    for (size_t i = 0; i + 1 < p->sum.n_tables; i++) /* equal tables */
        if (!draw(3) && p->table[i].n == 1 &&
            p->values[p->var[i][0]] == p->values[p->var[i + 1][0]] && p->table[i + 1].n == 1)
            memcpy(p->cost[i + 1], p->cost[i], sizeof p->cost[i]);
}

static int64_t cost_of(const struct problem *p, const int *value) {
    int64_t sum = 0;
    for (size_t i = 0; i < p->sum.n_tables; i++) {
        int64_t at = 0;
        for (int k = 0; k < p->table[i].n; k++)
            at = at * p->values[p->var[i][k]] + value[p->var[i][k]];
        sum += p->cost[i][at];
        if (sum > COST_NEVER) return COST_NEVER;
    }
    return sum;
}

static int64_t brute(const struct problem *p) {
    int value[VARS] = {0};
    int64_t least = COST_NEVER;
    for (;;) {
        const int64_t cost = cost_of(p, value);
        if (cost < least) least = cost;
        int v = 0;
        while (v < p->sum.n_vars && ++value[v] == p->values[v]) value[v++] = 0;
        if (v == p->sum.n_vars) return least;
    }
}

static void as_brute_force(void **unused) {
    static struct problem p;
    int graphs = 0, large = 0, none = 0;
    double assignments = 0, largest = 0;
    (void)unused;
    while (graphs < GRAPHS) {
        struct cost_least out, apart;
        make(&p, large < LARGE);
        if (p.assignments <= (large < LARGE ? 1e5 : 1e3) || p.assignments > 2e6) continue;
        large += p.assignments > 1e5;
        graphs++;
        assignments += p.assignments;
        if (p.assignments > largest) largest = p.assignments;
        const int64_t least = brute(&p);
        if (least >= COST_NEVER) {
            assert_int_equal(eliminate(&p.sum, &out), TRI_USAGE);
            none++;
            continue;
        }
        assert_int_equal(eliminate(&p.sum, &out), TRI_OK);
        assert_true(out.exact);
        if (out.cost != least)
            fail_msg("graph %d: %lld, not %lld", graphs, (long long)out.cost, (long long)least);
        assert_true(cost_of(&p, out.value) == least);
        p.sum.apart = true;
        assert_int_equal(eliminate(&p.sum, &apart), TRI_OK);
        assert_true(apart.cost == least && apart.computed >= out.computed);
        assert_memory_equal(apart.value, out.value, (size_t)p.sum.n_vars * sizeof *out.value);
        /* A cost of the best assignment that is one less, and the result is one less. */
        p.sum.apart = false;
        p.cost[0][out.value[p.var[0][0]]]--;
        struct cost_least wrong;
        assert_int_equal(eliminate(&p.sum, &wrong), TRI_OK);
        assert_true(wrong.cost == least - 1);
        free(out.value);
        free(apart.value);
        free(wrong.value);
    }
    printf("%d graphs, %.3g assignments, the largest %.3g, %d of more than 1e5; %d have none\n",
           graphs, assignments, largest, large, none);
    assert_true(large >= LARGE && none < graphs / 2);
}

/* A chain of equal layers costs as much as one. */
static void layers_are_shared(void **unused) {
    enum { LAYERS = 1000 };
    static int values[LAYERS + 1], var[LAYERS][2];
    static struct cost_table table[LAYERS];
    static const int64_t cost[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
    struct cost_least out, fewer;
    (void)unused;
    for (int i = 0; i <= LAYERS; i++) values[i] = 4;
    for (int i = 0; i < LAYERS; i++) {
        var[i][0] = i, var[i][1] = i + 1;
        table[i] = (struct cost_table){2, var[i], cost};
    }
    struct cost_sum s = {.n_vars = LAYERS + 1, .values = values, .table = table,
                         .n_tables = LAYERS, .most_cells = 1 << 20};
    assert_int_equal(eliminate(&s, &out), TRI_OK);
    s.n_vars = LAYERS / 2 + 1;
    s.n_tables = LAYERS / 2;
    assert_int_equal(eliminate(&s, &fewer), TRI_OK);
    assert_true(out.cells > fewer.cells);
    printf("%lld cells of %d layers, %lld computed\n", (long long)out.cells, LAYERS,
           (long long)out.computed);
    assert_true(out.computed <= LAYERS); /* once the best way through a layer is found */
    free(out.value);
    free(fewer.value);
}

/* Where tables would be too large, the answer is one that is allowed, and not called exact. */
static void large_tables_are_not_made(void **unused) {
    static struct problem p;
    struct cost_least out, exact;
    int n = 0;
    (void)unused;
    for (int i = 0; i < 100; i++) {
        make(&p, true);
        int first[VARS] = {0};
        if (eliminate(&p.sum, &exact)) continue;
        memcpy(first, exact.value, (size_t)p.sum.n_vars * sizeof *first);
        p.sum.most_cells = 8;
        p.sum.first = first;
        assert_int_equal(eliminate(&p.sum, &out), TRI_OK);
        n += !out.exact;
        assert_true(out.cost == exact.cost); /* no worse than the first assignment */
        assert_true(cost_of(&p, out.value) == out.cost);
        free(out.value);
        free(exact.value);
    }
    assert_true(n > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_brute_force),
        cmocka_unit_test(layers_are_shared),
        cmocka_unit_test(large_tables_are_not_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
