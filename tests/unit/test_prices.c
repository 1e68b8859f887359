/* SPDX-License-Identifier: Apache-2.0
 * The file that keeps what units take; and what a step takes by such prices. */
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these headers */
#include <setjmp.h>

#include <cmocka.h>

#include "price/prices.h"
#include "price/step.h"
#include "unit/scratch.h"

/* ---- the file ---- */

static void what_is_written_is_read(void **state) {
    static const struct price price[] = {{"matmul f32[2,3] -> f32[2]", 2, 1.5e-6, 40},
                                         {"add f32[2] -> f32[2]", 1, 0, 7},
                                         {"matmul f32[2,3] -> f32[2]", 1, 1.25e-6, 20},
                                         {"add f32[2] -> f32[2]", 1, 3e-7, 9}};
    struct prices p, q;
    (void)state;
    assert_int_equal(prices_make(&p, 0), TRI_OK);
    for (size_t i = 0; i < COUNT(price); i++) assert_int_equal(prices_add(&p, &price[i]), TRI_OK);
    assert_int_equal(p.n, 3); /* the last one has taken the place of another */
    assert_int_equal(prices_write(&p, at("machine")), TRI_OK);
    assert_int_equal(prices_make(&q, 0), TRI_OK);
    assert_int_equal(prices_read(&q, at("machine")), TRI_OK);
    assert_int_equal(q.n, 3);
    for (size_t i = 0; i < COUNT(price); i++) {
        const struct price *is = prices_find(&q, price[i].unit, price[i].busy),
                           *want = i == 1 ? &price[3] : &price[i];
        assert_non_null(is);
        assert_true(is->seconds == want->seconds && is->calls == want->calls);
    }
    assert_null(prices_find(&q, price[0].unit, 3));
    assert_null(prices_find(&q, "matmul f32[2,3] -> f32[3]", 1));
    prices_free(&p);
    prices_free(&q);
}

static void write_file(const char *text, size_t n) {
    FILE *f = fopen(at("machine"), "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static tri_status read_text(const char *format, const char *line, struct prices *p) {
    struct text t = {0};
    assert_int_equal(prices_make(p, 0), TRI_OK);
    text_add(&t, format, p->machine, line);
    prices_seal(&t);
    write_file(t.data, t.size);
    text_free(&t);
    return prices_read(p, at("machine"));
}

/* What was written, with a change that no line shows. */
static void lines_that_lack_are_seen(void **state) {
    static const char *const changed[] = {
        "", "machine %s\n", "machine %s\nunit 1 2e-6 3 add\n",
        "machine %s\nunit 1 5e-1 3 add\nhash %016llx\n",
        "machine %s\nhash %016llx\n",
        "machine %s\nunit 1 2e-6 3 add\nhash %016llx\nunit 1 2e-6 3 mul\n",
    };
    struct prices p;
    (void)state;
    assert_int_equal(read_text("machine %s\n%s\n", "unit 1 2e-6 3 add", &p), TRI_OK);
    FILE *f = fopen(at("machine"), "r");
    char line[1024];
    unsigned long long hash = 0;
    while (fgets(line, sizeof line, f)) sscanf(line, "hash %llx", &hash);
    fclose(f);
    assert_true(hash);
    for (size_t i = 0; i < COUNT(changed); i++) {
        struct text t = {0};
        text_add(&t, changed[i], p.machine, hash);
        write_file(t.data ? t.data : "", t.size);
        struct prices q;
        assert_int_equal(prices_make(&q, 0), TRI_OK);
        if (!prices_read(&q, at("machine"))) fail_msg("\"%s\" is read", changed[i]);
        assert_message("what is measured is kept in a new one");
        prices_free(&q);
        text_free(&t);
    }
    prices_free(&p);
}

static void damaged_lines_are_named(void **state) {
    static const char *const lines[] = {
        "unit", "unit 1", "unit 1 2e-6", "unit 1 2e-6 3", "unit 1 2e-6 3 ", "unit 0 2e-6 3 add",
        "unit 1.5 2e-6 3 add", "unit 5000 2e-6 3 add", "unit 1 -2e-6 3 add", "unit 1 nan 3 add",
        "unit 1 inf 3 add", "unit 1 2e-6 0 add", "unit 1 2e-6 3.5 add", "unit 1 2e-6 1e300 add",
        "units 1 2e-6 3 add", " unit 1 2e-6 3 add", "link 1 2e-6 3 add", "unit 1,2e-6,3,add",
    };
    struct prices p;
    (void)state;
    assert_int_equal(read_text("# a comment\n\nmachine %s\n%s\n", "unit 1 2e-6 3 add", &p), TRI_OK);
    assert_int_equal(p.n, 1);
    prices_free(&p);
    for (size_t i = 0; i < COUNT(lines); i++) {
        if (!read_text("machine %s\nunit 1 2e-6 3 add\n%s\nunit 1 2e-6 3 mul\n", lines[i], &p))
            fail_msg("\"%s\" is read", lines[i]);
        assert_message("machine: line 3 is damaged; what is measured is kept in a new one");
        prices_free(&p);
    }
    assert_int_equal(read_text("machine not %s\n%s\n", "", &p), TRI_FAILED);
    assert_message("line 1 is damaged");
    prices_free(&p);
    assert_int_equal(prices_make(&p, 0), TRI_OK);
    write_file("unit 1 2e-6 3 add\n", 18);
    assert_int_equal(prices_read(&p, at("machine")), TRI_FAILED); /* of no machine */
    assert_int_equal(prices_read(&p, at("nothing")), TRI_OK);
    assert_int_equal(p.n, 0);
    prices_free(&p);
}

static void a_machine_has_a_file(void **state) {
    struct text one = {0}, other = {0}, none = {0};
    struct prices p;
    (void)state;
    setenv("XDG_CACHE_HOME", at("cache"), 1);
    unsetenv("TRIREME_ISA");
    assert_int_equal(prices_make(&p, 0), TRI_OK);
    assert_true(prices_file(&p, &one));
    assert_int_equal(prices_write(&p, one.data), TRI_OK); /* its folders are there */
    assert_int_equal(remove(one.data), 0);
    prices_free(&p);
    setenv("TRIREME_ISA", "avx2", 1);
    assert_int_equal(prices_make(&p, 0), TRI_OK);
    assert_true(prices_file(&p, &other));
    assert_string_not_equal(one.data, other.data);
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    assert_false(prices_file(&p, &none));
    prices_free(&p);
    text_free(&one);
    text_free(&other);
    text_free(&none);
    assert_int_equal(remove(at("cache/trireme")), 0);
}

/* ---- a step ---- */

#define UNITS 3

/* Lanes of three units, of which the first bucket is complete after two; lanes from `small` on have
 * the second size. Seconds. */
static const struct {
    const char *name;
    int threads, lanes, levels, small; /* levels: of sums that the step makes */
    double lane[2][UNITS], sum[2];
    int parts; /* of the units that all threads share: */
    double pre, step, want, units;
} cases[] = {
    {"one thread", 1, 4, 0, 4, {{1, 2, 3}}, {.1, .2}, 8, 1, 2, 27.9, 27.9},
    {"fewer sums", 1, 4, 1, 4, {{1, 2, 3}}, {.1, .2}, 8, 1, 2, 27.6, 27.6},
    {"no sums", 1, 2, 1, 2, {{1, 2, 3}}, {.1, .2}, 8, 0, 0, 12, 12},
    {"one lane", 1, 1, 0, 1, {{1, 2, 3}}, {.1, .2}, 8, 0, 0, 6, 6},
    {"two threads, even", 2, 4, 0, 4, {{1, 2, 3}}, {0, 0}, 8, 2, 2, 14, 14},
    {"three lanes on two", 2, 3, 0, 3, {{1, 2, 3}}, {0, 0}, 8, 0, 0, 12, 9},
    /* The second to publish makes the sum. Both end their first bucket at 3: thread 0 publishes
     * first, thread 1 sums until 4, and ends at 7 + 2. */
    {"who sums", 2, 2, 0, 2, {{1, 2, 3}}, {1, 2}, 8, 0, 0, 9, 7.5},
    {"three parts for two", 2, 1, 0, 1, {{1, 2, 3}}, {0, 0}, 3, 3, 6, 12, 7.5},
    {"one part for two", 2, 1, 0, 1, {{1, 2, 3}}, {0, 0}, 1, 3, 6, 15, 7.5},
    {"unlike lanes", 2, 3, 0, 1, {{4, 4, 4}, {1, 1, 1}}, {0, 0}, 8, 0, 0, 12, 9},
};

static void steps(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct lane_tree tree;
        uint8_t small[8] = {0};
        double seconds[2][UNITS], pre = cases[i].pre, step = cases[i].step;
        double published[2][2] = {{0}}, work[2], sum[2];
        struct step_price is;
        assert_int_equal(lane_tree_make(cases[i].lanes, cases[i].levels, &tree), TRI_OK);
        memcpy(seconds, cases[i].lane, sizeof seconds);
        int parts = cases[i].parts;
        for (int k = 0; k < 2; k++) {
            published[k][0] = seconds[k][0] + seconds[k][1];
            published[k][1] = work[k] = published[k][0] + seconds[k][2];
        }
        memcpy(sum, cases[i].sum, sizeof sum);
        for (int k = cases[i].small; k < cases[i].lanes; k++) small[k] = 1;
        const struct step_shape s = {
            .threads = cases[i].threads,
            .pre = {1, &pre, &parts}, .step = {1, &step, &parts},
            .lanes = {{.tree = NULL}, {
                .tree = &tree, .small = small, .claimers = cases[i].threads, .threads = 1,
                .buckets = 2, .at = {published[0], published[1]}, .work = {work[0], work[1]},
                .sum = sum}}};
        assert_int_equal(step_price(&s, &is), TRI_OK);
        if (!(is.seconds > cases[i].want - 1e-9 && is.seconds < cases[i].want + 1e-9))
            fail_msg("%s: %g s, not %g", cases[i].name, is.seconds, cases[i].want);
        if (!(is.units > cases[i].units - 1e-9 && is.units < cases[i].units + 1e-9))
            fail_msg("%s: %g s without waiting, not %g", cases[i].name, is.units, cases[i].units);
        lane_tree_free(&tree);
    }
}

/* Lanes of two buckets, which are complete after 3 and 6 s, with sums of .1 and .2 s. */
static const struct {
    const char *name;
    int lanes, begin[3], workers[2];
    int claimers; /* of the host with most workers */
    double transfers[2], delays[2], above, opening;
    double want, wait; /* wait: for what moves after all is computed */
} over_hosts[] = {
    /* A host has its buckets after 9.1 and 12.3 s. */
    {"moves while it computes", 4, {0, 2, 4}, {1, 1}, 1, {2, 4}, {0}, 0, 0, 16.3, 4},
    {"buckets wait for the links", 4, {0, 2, 4}, {1, 1}, 1, {5, 4}, {0}, 0, 0, 18.1, 5.8},
    {"sums of what arrives", 4, {0, 2, 4}, {1, 1}, 1, {2, 4}, {0}, .5, 0, 16.8, 4.5},
    {"a busy core", 4, {0, 2, 4}, {1, 1}, 1, {2, 4}, {1, 1}, 0, 0, 17.3, 5},
    {"the opening", 4, {0, 2, 4}, {1, 1}, 1, {0, 0}, {0}, 0, .25, 12.55, 0},
    {"the slowest host", 4, {0, 1, 4}, {1, 1}, 1, {1, 1}, {0}, 0, 0, 19.3, 1},
    /* The first host's two workers have a lane each, and the second sums. */
    {"unlike hosts", 3, {0, 2, 3}, {2, 1}, 2, {1, 1}, {0}, 0, 0, 7.3, 1},
    {"half a claimer", 3, {0, 2, 3}, {2, 1}, 1, {1, 1}, {0}, 0, 0, 13.3, 1},
    {"no lane", 1, {0, 0, 1}, {1, 1}, 1, {1, 1}, {0}, 0, 0, 7, 1},
};

static void hosts(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(over_hosts); i++) {
        struct lane_tree tree;
        uint8_t small[8] = {0};
        double at[] = {3, 6}, sum[] = {.1, .2};
        double above[] = {over_hosts[i].above, over_hosts[i].above};
        double transfers[2], delays[2];
        struct step_price is;
        assert_int_equal(lane_tree_make(over_hosts[i].lanes, 0, &tree), TRI_OK);
        memcpy(transfers, over_hosts[i].transfers, sizeof transfers);
        memcpy(delays, over_hosts[i].delays, sizeof delays);
        const struct step_shape s = {
            .threads = over_hosts[i].claimers,
            .hosts = {2, over_hosts[i].begin, over_hosts[i].workers, over_hosts[i].opening},
            .lanes = {{.tree = NULL}, {
                .tree = &tree, .small = small, .claimers = over_hosts[i].claimers, .threads = 1,
                .buckets = 2, .at = {at}, .work = {6}, .sum = sum,
                .transfers = transfers, .delays = delays, .above = above}}};
        assert_int_equal(step_price(&s, &is), TRI_OK);
        if (!(fabs(is.seconds - over_hosts[i].want) < 1e-9 &&
              fabs(is.exposed - over_hosts[i].wait) < 1e-9))
            fail_msg("%s: %g s, of which %g move, not %g and %g", over_hosts[i].name, is.seconds,
                     is.exposed, over_hosts[i].want, over_hosts[i].wait);
        lane_tree_free(&tree);
    }
}

/* Two stages of four lanes. Forward legs take 1 and 2 seconds, backward ones 3 and 2. */
static void pipelines(void **state) {
    static const struct {
        int claimers;
        double overhead, want;
    } rows[] = {{1, 0, 32}, {2, 0, 23}, {2, .5, 23.5}};
    double leg[LEGS_MOST] = {1, 2, 3, 2};
    const struct legs legs = legs_of(2, false);
    const struct pipeline_wish wish = {PIPELINE_1F1B, 0, 4, 2};
    struct pipeline p;
    struct lane_tree tree;
    (void)state;
    assert_int_equal(legs.n, 4);
    assert_int_equal(pipeline_make(&wish, &legs, &p), TRI_OK);
    assert_int_equal(lane_tree_make(4, 0, &tree), TRI_OK);
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct step_shape s = {
            .threads = rows[i].claimers, .overhead = rows[i].overhead,
            .lanes = {{.tree = NULL}, {.tree = &tree, .claimers = rows[i].claimers, .threads = 1,
                                       .pipeline = &p, .legs = &legs, .leg = leg}}};
        struct step_price is;
        assert_int_equal(step_price(&s, &is), TRI_OK);
        if (!(is.seconds > rows[i].want - 1e-9 && is.seconds < rows[i].want + 1e-9))
            fail_msg("%d claimers: %g s, not %g", rows[i].claimers, is.seconds, rows[i].want);
        assert_true(is.units > 32.0 / rows[i].claimers - 1e-9);
    }
    lane_tree_free(&tree);
    pipeline_free(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(what_is_written_is_read, empty_directory),
        cmocka_unit_test_teardown(damaged_lines_are_named, empty_directory),
        cmocka_unit_test_teardown(lines_that_lack_are_seen, empty_directory),
        cmocka_unit_test_teardown(a_machine_has_a_file, empty_directory),
        cmocka_unit_test(steps), cmocka_unit_test(hosts),
        cmocka_unit_test(pipelines),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
