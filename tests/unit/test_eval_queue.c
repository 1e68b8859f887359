/* SPDX-License-Identifier: Apache-2.0
 * The evaluation queue: several workers compute a step's batches, each once, also if one of them
 * dies, fails, or is overtaken by the others. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "crew/eval_queue.h"

#define BATCHES 3
#define VALUES 2

/* Two processes' views of the same memory. */
struct two {
    void *memory;
    struct eval_queue a, b;
};

static void make(struct two *t) {
    t->memory = aligned_alloc(64, (eval_queue_bytes(BATCHES, VALUES) + 63) / 64 * 64);
    assert_non_null(t->memory);
    memset(t->memory, 0, eval_queue_bytes(BATCHES, VALUES));
    eval_queue_bind(&t->a, t->memory, BATCHES, VALUES);
    eval_queue_bind(&t->b, t->memory, BATCHES, VALUES);
    t->a.owner = 1;
    t->b.owner = 2;
}

static void begin(struct two *t, uint64_t step) {
    eval_queue_begin(&t->a, step);
    eval_queue_begin(&t->b, step);
}

static void put(const struct eval_queue *s, int64_t batch, double value) {
    const double sums[VALUES] = {value, -value};
    eval_queue_put(s, batch, sums);
}

static void each_once(void **state) {
    (void)state;
    struct two t;
    make(&t);
    assert_int_equal(eval_queue_draw(&t.a, 1), 1);
    assert_int_equal(eval_queue_draw(&t.b, 1), 0);
    assert_null(eval_queue_find(&t.b, 1));
    assert_true(eval_queue_in_flight(&t.b, 1));
    put(&t.a, 1, 5);
    assert_false(eval_queue_in_flight(&t.b, 1));
    assert_true(eval_queue_find(&t.b, 1)[0] == 5 && eval_queue_find(&t.b, 1)[1] == -5);
    assert_int_equal(eval_queue_draw(&t.a, 0), 2);
    assert_false(eval_queue_left(&t.a));
    assert_false(eval_queue_left(&t.b));
    assert_int_equal(eval_queue_draw(&t.b, 0), -1);
    free(t.memory);
}

/* Only the worker that adds up repeats a failed batch, to learn the reason. */
static void failed(void **state) {
    (void)state;
    struct two t;
    make(&t);
    assert_int_equal(eval_queue_draw(&t.a, 0), 0);
    eval_queue_put(&t.a, 0, NULL);
    assert_null(eval_queue_find(&t.b, 0));
    assert_false(eval_queue_in_flight(&t.b, 0));
    assert_int_equal(eval_queue_draw(&t.b, 0), 1);
    free(t.memory);
}

/* A worker that arrives late finds the results of a step; after the next step everything is to be
 * done again. */
static void steps(void **state) {
    (void)state;
    struct two t;
    make(&t);
    begin(&t, 7);
    for (int64_t k; (k = eval_queue_draw(&t.a, 0)) >= 0;) put(&t.a, k, 7);
    assert_false(eval_queue_left(&t.b));
    for (int k = 0; k < BATCHES; k++) assert_true(eval_queue_find(&t.b, k)[0] == 7);
    eval_queue_begin(&t.b, 9);
    for (int k = 0; k < BATCHES; k++) assert_null(eval_queue_find(&t.b, k));
    assert_int_equal(eval_queue_draw(&t.b, 2), 2);
    /* A worker that is still at an earlier step finds nothing and gets nothing. */
    assert_null(eval_queue_find(&t.a, 2));
    assert_false(eval_queue_in_flight(&t.a, 2));
    eval_queue_begin(&t.a, 7);
    assert_int_equal(eval_queue_draw(&t.a, 2), -1);
    free(t.memory);
}

/* A worker that is late keeps its place; the others continue without it. */
static void left_behind(void **state) {
    (void)state;
    struct two t;
    make(&t);
    begin(&t, 7);
    assert_int_equal(eval_queue_draw(&t.a, 1), 1);
    eval_queue_begin(&t.b, 8);
    assert_false(eval_queue_in_flight(&t.b, 1)); /* of that step: nobody waits for it */
    assert_int_equal(eval_queue_draw(&t.b, 1), 0);
    assert_int_equal(eval_queue_draw(&t.b, 1), 2);
    assert_int_equal(eval_queue_draw(&t.b, 1), -1);
    put(&t.a, 1, 5);
    assert_null(eval_queue_find(&t.b, 1));
    eval_queue_begin(&t.b, 9);
    assert_int_equal(eval_queue_draw(&t.b, 1), 1);
    free(t.memory);
}

#define MANY 20000
#define HANDS 4

struct crowd {
    struct eval_queue share;
    atomic_int *drawn;
};

static void *draw_all(void *arg) {
    struct crowd *c = arg;
    for (int64_t k; (k = eval_queue_draw(&c->share, 0)) >= 0;) {
        const double sum = (double)k;
        atomic_fetch_add(&c->drawn[k], 1);
        eval_queue_put(&c->share, k, &sum);
    }
    return NULL;
}

static void by_many(void **state) {
    (void)state;
    void *memory = calloc(1, eval_queue_bytes(MANY, 1));
    atomic_int *drawn = calloc(MANY, sizeof *drawn);
    struct crowd c[HANDS];
    pthread_t thread[HANDS];
    assert_true(memory && drawn);
    for (int i = 0; i < HANDS; i++) {
        c[i].drawn = drawn;
        eval_queue_bind(&c[i].share, memory, MANY, 1);
        c[i].share.owner = i;
    }
    for (int i = 0; i < HANDS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, draw_all, &c[i]), 0);
    for (int i = 0; i < HANDS; i++) pthread_join(thread[i], NULL);
    for (int64_t k = 0; k < MANY; k++) {
        assert_int_equal(atomic_load(&drawn[k]), 1);
        assert_true(eval_queue_find(&c[0].share, k)[0] == (double)k);
    }
    free(memory);
    free(drawn);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_once), cmocka_unit_test(failed),  cmocka_unit_test(steps),
        cmocka_unit_test(left_behind), cmocka_unit_test(by_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
