/* SPDX-License-Identifier: Apache-2.0
 * Data on top of other data: subsets, lists, repetitions, maps, shuffle windows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs these headers */
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/random.h"
#include "data/over.h"
#include "unit/scratch.h"

#define SIZE 20

/* A sample's value: its origin. */
static const tri_field fields[] = {{"index", TRI_I64, {0}}, {"epoch", TRI_I64, {0}}};
static int freed;

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)user;
    (void)seed;
    *(int64_t *)out[0] = index;
    *(int64_t *)out[1] = epoch;
    return 0;
}

static void count_free(void *user) {
    (void)user;
    freed++;
}

static int64_t label(const void *user, int64_t index) {
    (void)user;
    return index / 7;
}

static tri_data *numbers(bool sequential) {
    tri_data *d = data_make("numbers", SIZE, fields, 2, fill, NULL, sequential, count_free);
    tri_data_labels(d, 3, label);
    return d;
}

static void is(tri_data *d, int64_t index, int64_t epoch, int64_t from, int64_t of) {
    int64_t a = -1, b = -1;
    assert_int_equal(tri_data_get(d, index, epoch, 1, (void *[]){&a, &b}), TRI_OK);
    assert_int_equal(a, from);
    assert_int_equal(b, of);
}

static void fails(tri_data *d, const char *message) {
    assert_null(d);
    assert_message(message);
}

static void takes(void **state) {
    (void)state;
    tri_data *d = tri_data_take(numbers(false), 5, 10);
    assert_int_equal(tri_data_size(d), 10);
    is(d, 0, 0, 5, 0);
    is(d, 9, 3, 14, 3);
    assert_int_equal(d->about.label(d->user, 9), 2);
    assert_int_equal(d->about.classes, 3);
    d = tri_data_subset(d, (const int64_t[]){9, 0, 0}, 3);
    assert_int_equal(tri_data_size(d), 3);
    assert_int_equal(d->about.held, 3 * sizeof(int64_t));
    is(d, 0, 1, 14, 1);
    is(d, 2, 1, 5, 1);
    freed = 0;
    tri_data_free(d);
    assert_int_equal(freed, 1);
    fails(tri_data_take(numbers(false), 15, 6), "6 samples from 15 on; there are 20");
    fails(tri_data_take(numbers(false), -1, 6), "6 samples from -1 on");
    fails(tri_data_take(numbers(true), 1, 6), "only its first samples can be taken");
    fails(tri_data_subset(numbers(false), (const int64_t[]){3, 20}, 2),
          "a subset with sample 20; there are 20");
    fails(tri_data_subset(numbers(false), NULL, 0), "a subset of 0 samples");
    fails(tri_data_subset(numbers(true), (const int64_t[]){3}, 1), "with tri_data_take");
    assert_int_equal(freed, 7);
    assert_null(tri_data_take(NULL, 0, 1));
}

static void takes_by_text(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t size, first;
    } right[] = {{"5:15", 10, 5}, {":15", 15, 0}, {"5:", 15, 5}, {":", 20, 0}};
    for (size_t i = 0; i < COUNT(right); i++) {
        tri_data *d = data_subset(numbers(false), right[i].text);
        assert_int_equal(tri_data_size(d), right[i].size);
        is(d, 0, 0, right[i].first, 0);
        tri_data_free(d);
    }
    fails(data_subset(numbers(false), "5:21"), "has the samples 0 to 19");
    fails(data_subset(numbers(false), "5:5"), "has the samples 0 to 19");
    FILE *f = fopen(at("list"), "w");
    fputs("3 4\n19\n", f);
    fclose(f);
    tri_data *d = data_subset(numbers(false), at("list"));
    assert_int_equal(tri_data_size(d), 3);
    is(d, 2, 0, 19, 0);
    tri_data_free(d);
    f = fopen(at("list"), "w");
    fputs("3 4\n20\n", f);
    fclose(f);
    fails(data_subset(numbers(false), at("list")),
          "list: line 2: 20; the samples of data numbers are 0 to 19");
    f = fopen(at("list"), "w");
    fputs("3 4.5\n", f);
    fclose(f);
    fails(data_subset(numbers(false), at("list")), "list: line 1: 4.5");
    f = fopen(at("list"), "w");
    fclose(f);
    fails(data_subset(numbers(false), at("list")), "no samples are listed");
    fails(data_subset(numbers(false), at("nothing")), "No such file");
}

static void repeats(void **state) {
    (void)state;
    tri_data *d = tri_data_repeat(tri_data_take(numbers(false), 5, 10), 3);
    assert_int_equal(tri_data_size(d), 30);
    is(d, 9, 0, 14, 0);
    is(d, 10, 0, 5, 1);
    is(d, 29, 2, 14, 8);
    assert_int_equal(d->about.label(d->user, 19), 2);
    tri_data_free(d);
    /* In order, with the rest of the second epoch and the whole third one left out. */
    d = tri_data_repeat(numbers(true), 3);
    for (int64_t i = 0; i < 25; i++) is(d, i, 0, i % SIZE, i / SIZE);
    is(d, 0, 1, 0, 3);
    tri_data_free(d);
    fails(tri_data_repeat(numbers(false), 0), "0 times: 1 to 2^48 samples");
    fails(tri_data_repeat(numbers(false), INT64_MAX / 2), "1 to 2^48 samples");
}

static int doubled(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *in,
                   void *const *out) {
    (void)epoch;
    (void)seed;
    *(int64_t *)out[0] = 2 * *(int64_t *)in[0];
    return index == 13 ? *(int *)user : 0;
}

static int halves(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *in,
                  void *const *out) {
    (void)user;
    (void)index;
    (void)seed;
    assert_int_equal(*(int64_t *)in[1], epoch);
    ((float *)out[0])[0] = (float)*(int64_t *)in[0] / 2;
    ((float *)out[0])[1] = -1;
    return 0;
}

static void maps(void **state) {
    (void)state;
    int code = 0;
    tri_data *d = tri_data_map(numbers(false), NULL, 0, doubled, &code);
    is(d, 13, 2, 26, 2);
    code = 7;
    int64_t a, b;
    assert_int_equal(tri_data_get(d, 13, 0, 1, (void *[]){&a, &b}), TRI_FAILED);
    assert_message("data 'numbers': the function that maps it returned 7 for sample 13 of epoch 0");
    const tri_field other = {"half", TRI_F32, {1, {2}}};
    float x[2];
    d = tri_data_map(d, &other, 1, halves, NULL);
    const tri_field *have;
    assert_int_equal(tri_data_fields(d, &have), 1);
    assert_string_equal(have->name, "half");
    assert_int_equal(tri_data_get(d, 3, 5, 1, (void *[]){x}), TRI_OK);
    assert_true(x[0] == 3 && x[1] == -1);
    tri_data_free(d);
    fails(tri_data_map(numbers(false), NULL, 0, NULL, NULL), "there is no function to map it");
    fails(tri_data_map(numbers(false), &(tri_field){"", TRI_F32, {0}}, 1, halves, NULL),
          "field 0 has no name");
}

static atomic_int inside, met;

/* Two concurrent calls would be noticed here. */
static int one_at_a_time(void *user, int64_t index, int64_t epoch, uint64_t seed,
                         void *const *out) {
    if (atomic_fetch_add(&inside, 1)) atomic_store(&met, 1);
    for (int i = 0; i < 20; i++) sched_yield();
    int code = fill(user, index, epoch, seed, out);
    atomic_fetch_sub(&inside, 1);
    return code;
}

static void *get_many(void *user) {
    for (int64_t i = 0; i < 200; i++) {
        int64_t a = -1, b = -1;
        if (tri_data_get(user, i % SIZE, 3, 1, (void *[]){&a, &b}) || a != 2 * (i % SIZE) || b != 3)
            return "another sample";
    }
    return NULL;
}

/* That several threads may call the outer one says nothing about the inner one. */
static void inner_data_is_called_by_one_thread(void **state) {
    (void)state;
    int code = 0;
    pthread_t thread[4];
    tri_data *d = data_make("one", SIZE, fields, 2, one_at_a_time, NULL, false, NULL);
    d = tri_data_map(tri_data_repeat(d, 1), NULL, 0, doubled, &code);
    tri_data_concurrent(d);
    for (size_t i = 0; i < COUNT(thread); i++)
        assert_int_equal(pthread_create(&thread[i], NULL, get_many, d), 0);
    for (size_t i = 0; i < COUNT(thread); i++) {
        void *wrong;
        pthread_join(thread[i], &wrong);
        assert_null(wrong);
    }
    assert_int_equal(atomic_load(&met), 0);
    tri_data_free(d);
}

/* The position of each sample in an epoch of a window. */
static void read_window(tri_data *d, int64_t epoch, uint64_t seed, int64_t n, int64_t place[SIZE]) {
    for (int64_t i = 0; i < SIZE; i++) place[i] = -1;
    for (int64_t i = 0; i < n; i++) {
        int64_t a, b;
        assert_int_equal(tri_data_get(d, i, epoch, seed, (void *[]){&a, &b}), TRI_OK);
        assert_int_equal(b, epoch);
        assert_int_equal(place[a], -1);
        place[a] = i;
    }
}

static void windows(void **state) {
    (void)state;
    int64_t place[SIZE], again[SIZE], other[SIZE];
    tri_data *d = tri_data_shuffle(numbers(true), 6), *e = tri_data_shuffle(numbers(true), 6);
    int moved = 0, differ[2] = {0};
    assert_int_equal(d->about.held, 6 * data_sample_bytes(d));
    read_window(d, 0, 1, SIZE, place);
    read_window(e, 0, 1, SIZE, again);
    assert_memory_equal(place, again, sizeof place);
    for (int64_t i = 0; i < SIZE; i++) {
        assert_true(place[i] >= i - 5); /* no earlier than it is read */
        moved += place[i] != i;
    }
    assert_true(moved > SIZE / 2);
    read_window(d, 1, 1, 13, other); /* the rest of this epoch is left out */
    read_window(d, 2, 1, SIZE, again);
    for (int i = 0; i < SIZE; i++) differ[0] += again[i] != place[i];
    assert_true(differ[0] > SIZE / 2);
    tri_data_free(e);
    e = tri_data_shuffle(numbers(true), 100);
    read_window(e, 0, 2, SIZE, other);
    for (int i = 0; i < SIZE; i++) differ[1] += other[i] != place[i];
    assert_true(differ[1] > SIZE / 2);
    tri_data_free(d);
    tri_data_free(e);
    d = tri_data_shuffle(numbers(true), 1);
    for (int64_t i = 0; i < SIZE; i++) is(d, i, 0, i, 0);
    tri_data_free(d);
    fails(tri_data_shuffle(numbers(false), 6), "--shuffle on shuffles all of it");
    fails(tri_data_shuffle(numbers(true), 0), "a window of 0 samples");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes),
        cmocka_unit_test_teardown(takes_by_text, empty_directory),
        cmocka_unit_test(repeats),
        cmocka_unit_test(maps),
        cmocka_unit_test(inner_data_is_called_by_one_thread),
        cmocka_unit_test(windows),
    };
    return cmocka_run_group_tests_name("over", tests, make_directory, remove_directory);
}
