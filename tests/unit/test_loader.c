/* SPDX-License-Identifier: Apache-2.0
 * Reading ahead: every sample once, in any thread; the same bits; failures in the right step. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <trireme.h>

#include "plan/lanes.h"
#include "run/executables.h"
#include "run/loader.h"

#define SIZE 60 /* of 12 a step */
#define EPOCHS 3

struct source {
    int64_t bad;     /* the sample that fails; -1: none */
    /* the sample that waits until another is read at the same time; -1: none */
    _Atomic int64_t waits;
    int64_t hangs;   /* the sample that never arrives; -1: none */
    atomic_int hung;
    int width;       /* of x */
    pthread_t owner; /* of the test */
    atomic_int calls, inside, most_inside, elsewhere;
    atomic_int reads[EPOCHS][SIZE];
    int64_t last;    /* samples read from a sequential source */
};

static void hang(struct source *s) {
    atomic_store(&s->hung, 1);
    for (;;) pause();
}

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    struct source *s = user;
    (void)seed;
    int now = atomic_fetch_add(&s->inside, 1) + 1, most = atomic_load(&s->most_inside);
    while (now > most && !atomic_compare_exchange_weak(&s->most_inside, &most, now)) continue;
    int calls = atomic_fetch_add(&s->calls, 1) + 1;
    while (index == atomic_load(&s->waits) && atomic_load(&s->calls) == calls) sched_yield();
    if (index == s->hangs) hang(s);
    if (!pthread_equal(pthread_self(), s->owner)) atomic_fetch_add(&s->elsewhere, 1);
    if (epoch < EPOCHS) atomic_fetch_add(&s->reads[epoch][index], 1);
    for (int i = 0; i < s->width; i++)
        ((float *)out[0])[i] = (float)((index * (3 + i) + epoch) % 17) / 8 - 1;
    *(float *)out[1] = (float)(index % 5);
    memset(out[2], (int)index, 100);
    atomic_fetch_sub(&s->inside, 1);
    return index == s->bad;
}

static void begin(struct source *s) {
    *s = (struct source){.bad = -1, .waits = -1, .hangs = -1, .width = 2, .owner = pthread_self()};
}

/* A sample has more fields than the network takes: "rest" is discarded. */
static tri_run *open_run(struct source *s, tri_options o, bool sequential, bool concurrent) {
    const tri_field fields[] = {{"x", TRI_F32, TRI_SHAPE(s->width)}, {"y", TRI_F32, TRI_SHAPE(1)},
                                {"rest", TRI_U8, TRI_SHAPE(100)}};
    tri_graph *g = tri_graph_new(12);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(12, s->width)),
               *y = tri_input(g, "y", TRI_F32, TRI_SHAPE(12, 1));
    tri_loss(tri_mse(tri_dense(x, "fc", 1), y));
    o.source = tri_data_new("counted", SIZE, fields, 3, fill, s, sequential);
    o.no_shuffle |= sequential;
    if (!o.steps) o.epochs = EPOCHS;
    if (concurrent) tri_data_concurrent(o.source);
    tri_run *run = tri_open(g, &o);
    if (!run) print_message("%s\n", tri_message());
    assert_non_null(run);
    return run;
}

static void train(struct source *s, tri_options o, bool sequential, bool concurrent,
                  char hash[65]) {
    char state[65];
    tri_run *run = open_run(s, o, sequential, concurrent);
    while (tri_step(run)) continue;
    tri_hash(run, hash, state);
    assert_int_equal(tri_close(run), TRI_OK);
}

static void each_once(const struct source *s) {
    for (int e = 0; e < EPOCHS; e++)
        for (int i = 0; i < SIZE; i++) assert_int_equal(atomic_load(&s->reads[e][i]), 1);
}

/* ---- results ---- */

static void same_bits_and_every_sample_once(void **state) {
    (void)state;
    const struct {
        int64_t data_threads, threads, lanes;
    } rows[] = {{-1, 1, 1}, {-1, 2, 3}, {1, 1, 1}, {3, 1, 1}, {2, 2, 3}, {5, 3, 3}};
    for (int sequential = 0; sequential < 2; sequential++) {
        char first[3][65] = {{0}};
        for (size_t i = 0; i < COUNT(rows); i++) {
            struct source s;
            char hash[65];
            begin(&s);
            tri_options o = {.data_threads = rows[i].data_threads,
                             .threads = rows[i].threads,
                             .lanes = rows[i].lanes};
            train(&s, o, sequential, true, hash);
            each_once(&s);
            char *of_lanes = first[rows[i].lanes - 1];
            if (!*of_lanes) memcpy(of_lanes, hash, sizeof hash);
            assert_string_equal(of_lanes, hash);
            if (sequential) assert_int_equal(atomic_load(&s.most_inside), 1);
        }
    }
}

/* Also with a smaller last step in an epoch: 16, 16, 16 and 12. */
static void a_smaller_last_step(void **state) {
    (void)state;
    for (int sequential = 0; sequential < 2; sequential++) {
        char first[65], hash[65];
        for (int64_t threads = -1; threads < 4; threads += 2) {
            struct source s;
            begin(&s);
            s.width = 3000; /* a piece has few samples */
            tri_options o = {.batch = 16,
                             .lanes = 3,
                             .tail = "keep",
                             .data_threads = threads,
                             .no_shuffle = true};
            train(&s, o, sequential, true, hash);
            each_once(&s);
            if (threads < 0 && !sequential) memcpy(first, hash, sizeof hash);
            assert_string_equal(first, hash);
        }
    }
}

/* It ends only if two samples are read at the same time; threads that compute, here one, read too
 * while they would wait. */
static void threads_read_at_the_same_time(void **state) {
    (void)state;
    struct source s;
    begin(&s);
    s.width = 30000; /* so that each is its own piece */
    tri_run *run = open_run(
        &s,
        (tri_options){.data_threads = 2, .threads = 1, .no_shuffle = true, .optimizer.lr = 1e-9},
        false, true);
    for (int i = 0; i < 2; i++) assert_true(tri_step(run));
    atomic_store(&s.waits, 50); /* of step 5, which cannot have begun */
    while (tri_step(run)) continue;
    assert_int_equal(tri_close(run), TRI_OK);
    assert_in_range(atomic_load(&s.most_inside), 2, 3);
}

/* A source that is not declared concurrent is called only by the loop's thread. */
static void simple_source_in_one_thread(void **state) {
    (void)state;
    for (int64_t n = 0; n < 3; n += 2) {
        struct source s;
        char hash[65];
        begin(&s);
        train(&s, (tri_options){.data_threads = n, .threads = 3, .lanes = 3}, false, false, hash);
        each_once(&s);
        assert_int_equal(atomic_load(&s.most_inside), 1);
        assert_int_equal(atomic_load(&s.elsewhere), 0);
    }
}

/* ---- failures ---- */

/* A sample that fails makes its own step fail, even if it was read ahead. */
static void a_failure_belongs_to_its_step(void **state) {
    (void)state;
    for (int64_t n = -1; n < 3; n++)
        for (int sequential = 0; sequential < 2; sequential++) {
            struct source s;
            begin(&s);
            s.bad = 40;
            tri_options o = {.data_threads = n, .steps = 5, .no_shuffle = true};
            tri_run *run = open_run(&s, o, sequential, true);
            int steps = 0;
            while (tri_step(run))
                if (++steps == 2 && n > 0) /* reading ahead has failed before step 3 begins */
                    while (!atomic_load(&s.reads[0][40])) sched_yield();
            assert_int_equal(steps, 3);
            assert_int_equal(tri_run_status(run), TRI_FAILED);
            assert_non_null(strstr(tri_message(), "sample 40 of epoch 0"));
            assert_int_equal(tri_close(run), TRI_FAILED);
        }
}

/* A run that ends early leaves no thread that reads freed memory. */
static void leaving_early(void **state) {
    (void)state;
    for (int steps = 1; steps < 8; steps++) {
        struct source s;
        begin(&s);
        tri_run *run = open_run(&s, (tri_options){.data_threads = 3}, false, true);
        for (int i = 0; i < steps; i++) assert_true(tri_step(run));
        assert_int_equal(tri_close(run), TRI_OK);
        int reads = 0;
        for (int e = 0; e < EPOCHS; e++)
            for (int i = 0; i < SIZE; i++) reads += atomic_load(&s.reads[e][i]);
        assert_in_range(reads, steps * 12, (steps + MACHINE_BUFFERS) * 12);
    }
}

/* Row by row, the samples that the sampler gives for a step. */
static void has_samples(tri_run *run, struct source *s, int64_t step, int64_t first, int64_t n,
                        const char *buffer) {
    const struct machine *m = executables_at(run, step);
    uint64_t index[16];
    sampler_seek(&run->sampler, step - 1);
    sampler_take(&run->sampler, first, n, index);
    for (int64_t i = 0; i < n; i++) {
        float x[30], y;
        char rest[100];
        fill(s, (int64_t)index[i], run->sampler.epoch, 0, (void *[]){x, &y, rest});
        for (int k = 0; k < m->n_inputs; k++) {
            const struct run_input *in = &m->input[k];
            const void *right = strcmp(in->name, "x") ? (void *)&y : (void *)x;
            assert_memory_equal(buffer + in->offset + (size_t)(first + i) * in->sample_bytes, right,
                                in->sample_bytes);
        }
    }
}

/* Another worker is late with a lane of step 2 and still writes when another step has that buffer:
 * none of its data is used, even if that step is smaller, so that its samples are at other offsets
 * of the buffer. */
static void a_late_reader_of_another_shape(void **state) {
    (void)state;
    for (int64_t late = 0; late < 4; late++) {
        struct source s;
        begin(&s);
        s.width = 30;
        tri_run *run =
            open_run(&s, (tri_options){.batch = 16, .lanes = 4, .tail = "keep"}, false, true);
        assert_int_equal(run->n_executables, 2);
        claim_word *word =
            calloc((size_t)loader_words(run->executable, run->n_executables), sizeof *word);
        wait_queue queue = 0;
        _Atomic uint64_t done = 3;
        const struct loader_place place = {
            .word = word, .queue = &queue, .done = &done, .owner = 1, .of = 1};
        struct loader l;
        assert_int_equal(loader_make(&l, run, &place), TRI_OK);
        struct claim c = claim_look(&word[late], 2);
        assert_true(claim_try(&word[late], &c, 9));
        for (int64_t step = 4; step <= 6; step += 2) { /* 12 samples, 16 */
            const struct machine *m = executables_at(run, step), *usual = run->executable;
            char *buffer[4];
            atomic_store(&done, (uint64_t)step - 1);
            assert_int_equal(m->batch, step == 4 ? 12 : 16);
            for (int lane = 0; lane < m->lanes; lane++)
                assert_int_equal(
                    loader_fetch(&l, &(struct loader_request){.step = step, .lane = lane},
                                 &buffer[lane]),
                    TRI_OK);
            for (int k = 0; k < usual->n_inputs; k++) {
                const struct run_input *in = &usual->input[k];
                memset(machine_buffer(usual, 0) + in->offset + (size_t)late * 4 * in->sample_bytes,
                       0x7f, 4 * in->sample_bytes);
            }
            for (int lane = 0; lane < m->lanes; lane++)
                has_samples(run, &s, step, lane_first(m->batch, m->lanes, lane), 4, buffer[lane]);
        }
        loader_free(&l);
        free(word);
        assert_int_equal(tri_close(run), TRI_OK);
    }
}

/* A run ends even if a thread that reads ahead never returns from its source. */
static void a_source_that_hangs(void **state) {
    static struct source s; /* the thread keeps it */
    (void)state;
    begin(&s);
    s.hangs = 36; /* of step 4 */
    tri_run *run = open_run(&s, (tri_options){.data_threads = 1, .no_shuffle = true}, false, true);
    for (int i = 0; i < 3; i++) assert_true(tri_step(run));
    while (!atomic_load(&s.hung)) sched_yield();
    double began = base_seconds();
    assert_int_equal(tri_close(run), TRI_OK);
    assert_true(base_seconds() - began < 60);
}

static void too_many_are_refused(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        tri_options o = {.data_threads = i ? 1000 : -2};
        tri_graph *g = tri_graph_new(12);
        tri_loss(tri_mse(tri_param(g, "a", TRI_SHAPE(1), (tri_init){0}),
                         tri_param(g, "b", TRI_SHAPE(1), (tri_init){0})));
        assert_null(tri_open(g, &o));
        assert_non_null(strstr(tri_message(), "data_threads"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_and_every_sample_once),
        cmocka_unit_test(a_smaller_last_step),
        cmocka_unit_test(threads_read_at_the_same_time),
        cmocka_unit_test(simple_source_in_one_thread),
        cmocka_unit_test(a_failure_belongs_to_its_step),
        cmocka_unit_test(leaving_early),
        cmocka_unit_test(a_late_reader_of_another_shape),
        cmocka_unit_test(a_source_that_hangs),
        cmocka_unit_test(too_many_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
