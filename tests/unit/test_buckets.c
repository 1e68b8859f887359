/* SPDX-License-Identifier: Apache-2.0
 * Which results of a lane are in which bucket, when these are open, and the slots that they
 * share. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs these headers */
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "machine/machine.h"
#include "run/open.h"
#include "run/run.h"

static tri_run *plan(tri_graph *g, int64_t lanes, int64_t bucket) {
    tri_options o = {.lanes = lanes, .bucket = bucket, .threads = 1};
    tri_run *run = run_plan(g, &o, NULL);
    assert_non_null(run);
    return run;
}

static tri_graph *network(void) {
    tri_graph *g = tri_model_open("mlp:layers=3,hidden=64,size=8", 8);
    assert_non_null(g);
    return g;
}

/* The bucket of a parameter's gradient: the lane's result that is multiplied by "lr" and subtracted
 * from it, as SGD does. */
static int bucket_of(const tri_run *run, const char *param) {
    const struct machine *m = run->machine;
    const struct tree *t = &m->tree[1];
    for (size_t i = 0; i < m->whole->n_updates; i++) {
        const struct graph_update *u = &m->whole->update[i];
        if (strcmp(source_name(u->target->node), param)) continue;
        const tri_tensor *step = u->value->node->in[1]->node->in[1];
        return t->buckets.of[step->id];
    }
    fail_msg("no parameter %s", param);
    return -1;
}

/* Every result has one bucket. A bucket is closed once, after it was opened, and nothing touches
 * its results outside of that time. */
static void check(const tri_run *run) {
    const struct machine *m = run->machine;
    const struct tree *t = &m->tree[1];
    const struct program *lane = &m->thread[0].lane[0];
    const struct bucket_events *e = &t->events[0];
    assert_int_equal(e->n, 2 * (t->buckets.n - 1));
    for (int i = 0; i < lane->n_result; i++) {
        int bucket = t->buckets.of[lane->result[i].of];
        size_t opens = 0, closes = lane->n_items;
        assert_in_range(bucket, 0, t->buckets.n - 1);
        for (int k = 0; k < e->n; k++) {
            if (e->event[k].bucket == bucket) *(e->event[k].opens ? &opens : &closes) = e->stop[k];
            assert_true(!k || e->stop[k] >= e->stop[k - 1]);
        }
        int root = lane->memory.root[lane->result[i].tensor];
        for (size_t k = 0; k < lane->n_items; k++) {
            const struct unit *u = lane->item[k].unit;
            bool touched = false;
            for (int j = 0; j < u->n_in; j++) touched |= lane->memory.root[u->in[j]->id] == root;
            for (int j = 0; j < u->n_out; j++) touched |= lane->memory.root[u->out[j]->id] == root;
            if (touched) assert_true(k >= opens && k < closes);
        }
    }
    for (int b = 0; b < t->buckets.n; b++)
        assert_true(t->class[t->bucket[b].class].bytes >= t->bucket[b].bytes);
}

static void by_size(void **state) {
    (void)state;
    static const struct {
        int64_t bytes;
        int buckets;
    } is[] = {{1, 8}, {17000, 3}, {100000, 1}, {0, 1}};
    for (size_t i = 0; i < COUNT(is); i++) {
        tri_run *run = plan(network(), 4, is[i].bytes);
        check(run);
        assert_int_equal(run->machine->tree[1].buckets.n, is[i].buckets);
        run_free(run);
    }
}

/* The gradients of the last layer are complete first. */
static void in_order(void **state) {
    (void)state;
    tri_run *run = plan(network(), 4, 1);
    assert_true(bucket_of(run, "fc4.weight") < bucket_of(run, "fc3.weight"));
    assert_true(bucket_of(run, "fc3.weight") < bucket_of(run, "fc1.weight"));
    run_free(run);
}

static void by_pattern(void **state) {
    (void)state;
    tri_graph *g = network();
    tri_bucket(g, "fc4.*", 7);
    tri_bucket(g, "fc1.*", 7);
    tri_bucket(g, "fc2.bias", 2);
    tri_run *run = plan(g, 4, 0);
    check(run);
    int own = bucket_of(run, "fc4.weight");
    assert_int_equal(bucket_of(run, "fc4.bias"), own);
    assert_int_equal(bucket_of(run, "fc1.weight"), own);
    assert_int_not_equal(bucket_of(run, "fc2.bias"), own);
    assert_int_equal(run->machine->tree[1].buckets.n, 3);
    assert_int_equal(run->machine->tree[1].most_open, 3);
    assert_int_equal(bucket_of(run, "fc3.weight"), 2);
    run_free(run);
}

static void mistakes(void **state) {
    (void)state;
    tri_graph *g = network();
    tri_bucket(g, "fc1.*", 0);
    assert_int_equal(tri_graph_status(g), TRI_USAGE);
    assert_non_null(strstr(tri_message(), "number 0; from 1 to 1000"));
    tri_graph_free(g);
    g = network();
    tri_bucket(g, "fc9.*", 1);
    tri_options o = {.lanes = 4};
    assert_null(run_plan(g, &o, NULL));
    assert_non_null(strstr(tri_message(), "no parameter's name matches \"fc9.*\", which is to be "
                                          "in a bucket of its own"));
    g = network();
    tri_freeze(g, "fc1.*");
    tri_bucket(g, "fc1.*", 3);
    assert_null(run_plan(g, &o, NULL));
    assert_non_null(strstr(tri_message(), "bucket 3, of \"fc1.*\": no parameter in it has"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(by_size), cmocka_unit_test(in_order),
                                       cmocka_unit_test(by_pattern), cmocka_unit_test(mistakes)};
    return cmocka_run_group_tests_name("buckets", tests, NULL, NULL);
}
