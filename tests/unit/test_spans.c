/* SPDX-License-Identifier: Apache-2.0
 * Rings of spans and the drainer: what is put in comes out, in order, or is counted as lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka.h needs these headers */
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/base.h"
#include "crew/drain.h"
#include "profile/read.h"
#include "unit/scratch.h"

#define CAPACITY 64
#define RINGS 2

/* ---- a drainer of two rings, whose files are DIR/profile/10/spans-1-*.bin ---- */

static struct ring *ring[RINGS];
static struct drain_from from[RINGS];
static struct drain *drain;
static char folder[4096];

static void make_rings(void) {
    const size_t bytes = (ring_bytes(CAPACITY) + 4095) / 4096 * 4096;
    for (int i = 0; i < RINGS; i++) {
        ring[i] = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        assert_true(ring[i] != MAP_FAILED);
        ring_make(ring[i], CAPACITY);
        from[i] = (struct drain_from){.ring = ring[i], .capacity = CAPACITY, .place = 1,
                                      .thread = i, .pid = 100, .tid = 101 + i};
    }
}

static void open_drain(int64_t most) {
    assert_int_equal(drain_directory(directory, 10, folder), TRI_OK);
    const struct drain_plan plan = {.directory = folder, .first = 10, .last = 12, .threads = RINGS,
                                    .most = most, .from = from, .n = RINGS};
    assert_int_equal(drain_open(&plan, &drain), TRI_OK);
}

static struct drain_seen close_drain(void) {
    struct drain_seen seen;
    drain_stop(drain);
    drain_look(drain, &seen);
    if (seen.error) seen.error = "failed";
    drain_close(drain);
    return seen;
}

/* Spans k to k + n - 1; span k lasts from 10 k to 10 k + 9. */
static void put(int i, int k, int n) {
    for (; n--; k++)
        ring_put(ring[i], &(struct span){.begin = 10 * k, .end = 10 * k + 9, .item = -1,
                                         .step = 10, .lane = (int16_t)(k % 7),
                                         .whom = SPAN_NOBODY, .kind = SPAN_LANE, .leg = -1});
}

static void open_profile(struct profile *p) {
    assert_int_equal(profile_read(directory, NULL, p), TRI_OK);
}

/* Those of a thread are k, k + 1, ...; a gap of `missing` may follow the first `whole`. */
static void check_spans(const struct profile *p, int thread, int whole, int missing) {
    const struct profile_thread *t = profile_thread_at(p, 0, 1, thread);
    assert_non_null(t);
    for (size_t k = 0; k < t->n; k++) {
        const int at = (int)k + ((int)k < whole ? 0 : missing);
        assert_int_equal(t->span[k].begin, 10 * at);
        assert_int_equal(t->span[k].end, 10 * at + 9);
        assert_int_equal(t->span[k].lane, at % 7);
    }
}

static int remove_profile(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s/profile", directory);
    return system(command);
}

/* ---- rings ---- */

static void wraps(void **state) {
    (void)state;
    struct profile p;
    int total = 0;
    make_rings();
    open_drain(0);
    for (int n = 0; n <= CAPACITY; total += n++) {
        put(0, total, n);
        drain_once(drain);
    }
    const struct drain_seen seen = close_drain();
    assert_int_equal(seen.spans, total);
    assert_int_equal(seen.lost, 0);
    open_profile(&p);
    assert_int_equal(p.n_threads, 1); /* the other has no file */
    assert_int_equal(p.thread[0].n, total);
    assert_int_equal(p.thread[0].pid, 100);
    assert_int_equal(p.thread[0].tid, 101);
    assert_int_equal(p.host[0].threads, RINGS);
    assert_int_equal(p.first, 10);
    assert_int_equal(p.last, 12);
    check_spans(&p, 0, total, 0);
    profile_free(&p);
}

static void drops(void **state) {
    (void)state;
    struct profile p;
    make_rings();
    open_drain(0);
    put(0, 0, CAPACITY + 5); /* nobody drains them */
    put(1, 0, 3);
    drain_once(drain);
    put(0, CAPACITY + 5, 2);
    const struct drain_seen seen = close_drain();
    assert_int_equal(seen.spans, CAPACITY + 5);
    assert_int_equal(seen.lost, 5);
    assert_null(seen.error);
    open_profile(&p);
    assert_int_equal(p.lost, 5);
    assert_int_equal(p.cut + p.damaged, 0);
    check_spans(&p, 0, CAPACITY, 5);
    check_spans(&p, 1, 3, 0);
    profile_free(&p);
}

/* Spans lost after the last read are reported at the end. A second profile starts from zero. */
static void drops_last(void **state) {
    (void)state;
    struct profile p;
    make_rings();
    for (int round = 0; round < 2; round++) {
        open_drain(0);
        put(0, 0, CAPACITY + 1 + round);
        assert_int_equal(close_drain().lost, 1 + round);
        open_profile(&p);
        assert_string_equal(p.name, round ? "10.1" : "10");
        assert_int_equal(p.lost, 1 + round);
        profile_free(&p);
        put(0, 0, CAPACITY + 9); /* after it, before the next one */
    }
}

static void *put_many(void *arg) {
    for (int k = 0; k < *(int *)arg; k++) put(0, k, 1);
    return NULL;
}

/* A thread that puts as fast as it can: what comes out is in order and whole. */
static void beside(void **state) {
    (void)state;
    struct profile p;
    pthread_t thread;
    int n = 100000;
    make_rings();
    open_drain(0);
    assert_int_equal(pthread_create(&thread, NULL, put_many, &n), 0);
    for (int i = 0; i < 100; i++) drain_once(drain);
    pthread_join(thread, NULL);
    const struct drain_seen seen = close_drain();
    assert_int_equal(seen.spans + seen.lost, n);
    open_profile(&p);
    assert_int_equal(p.spans, seen.spans);
    assert_int_equal(p.lost, seen.lost);
    for (size_t k = 1; k < p.spans; k++) {
        const struct span *s = &p.thread[0].span[k];
        assert_true(s->begin > s[-1].begin && s->end == s->begin + 9);
        assert_int_equal(s->lane, s->begin / 10 % 7);
    }
    profile_free(&p);
}

/* Another process puts, and is killed; a third goes on with its ring. */
static void dies(void **state) {
    (void)state;
    struct profile p;
    make_rings();
    open_drain(0);
    for (int k = 0; k < 20; k += 10) {
        const pid_t pid = fork();
        if (!pid) {
            put(0, k, 10);
            raise(SIGKILL);
        }
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    }
    assert_int_equal(close_drain().spans, 20);
    open_profile(&p);
    assert_int_equal(p.spans, 20);
    check_spans(&p, 0, 20, 0);
    profile_free(&p);
}

/* Whatever is in a ring's words, the drainer neither reads outside of it nor waits. */
static void damaged_ring(void **state) {
    (void)state;
    make_rings();
    open_drain(0);
    put(0, 0, 5);
    atomic_store(&ring[0]->head, UINT64_MAX / 2);
    ring[0]->capacity = 1 << 20;
    drain_once(drain);
    put(1, 0, 5);
    assert_int_equal(close_drain().spans, 5);
}

/* ---- the drainer ---- */

static void own_thread(void **state) {
    (void)state;
    struct drain_seen seen = {0};
    make_rings();
    open_drain(0);
    assert_int_equal(drain_start(drain), TRI_OK);
    put(0, 0, CAPACITY);
    while (seen.spans < CAPACITY) drain_look(drain, &seen);
    put(0, CAPACITY, CAPACITY);
    assert_int_equal(close_drain().spans, 2 * CAPACITY);
}

/* A drainer that is stopped costs spans, and no time: a full ring takes none. */
static void stopped(void **state) {
    (void)state;
    make_rings();
    open_drain(0);
    put(0, 0, 1000000);
    const struct drain_seen seen = close_drain();
    assert_int_equal(seen.spans, CAPACITY);
    assert_int_equal(seen.lost, 1000000 - CAPACITY);
}

/* The disk is full: as far as files may be at most so large. Then there is space again. */
static void full_disk(void **state) {
    (void)state;
    struct profile p;
    struct rlimit before, small;
    getrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_IGN);
    for (rlim_t most = 0; most < 3000; most += 100) {
        make_rings();
        open_drain(0);
        small = (struct rlimit){most, before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        put(0, 0, CAPACITY);
        drain_once(drain);
        put(0, CAPACITY, CAPACITY / 2);
        drain_once(drain);
        setrlimit(RLIMIT_FSIZE, &before);
        put(0, CAPACITY * 3 / 2, CAPACITY);
        const struct drain_seen seen = close_drain();
        assert_int_equal(seen.spans + seen.lost, CAPACITY * 5 / 2);
        assert_true(seen.spans >= CAPACITY);
        assert_string_equal(seen.error, "failed");
        open_profile(&p);
        assert_int_equal(p.spans, seen.spans);
        assert_int_equal(p.lost, seen.lost);
        assert_int_equal(p.cut + p.damaged, 0);
        profile_free(&p);
        remove_profile(NULL);
    }
    signal(SIGXFSZ, SIG_DFL);
}

static void no_folder(void **state) {
    (void)state;
    make_rings();
    open_drain(0);
    remove_profile(NULL);
    put(0, 0, 3);
    const struct drain_seen seen = close_drain();
    assert_int_equal(seen.lost, 3);
    assert_string_equal(seen.error, "failed");
    char path[4096];
    assert_int_equal(drain_directory(at("none"), 10, path), TRI_FAILED);
    assert_message("none/profile: ");
}

/* The limit holds for all files together, but for what says how many spans are missing. */
static void at_most(void **state) {
    (void)state;
    struct profile p;
    const int64_t chunk = sizeof(struct span_chunk) + 10 * sizeof(struct span),
                  most = 2 * (int64_t)sizeof(struct span_header) + 3 * chunk;
    make_rings();
    open_drain(most);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < RINGS; i++) put(i, 10 * round, 10);
        drain_once(drain);
    }
    const struct drain_seen seen = close_drain();
    assert_true(seen.full);
    assert_null(seen.error);
    assert_int_equal(seen.spans, 30);
    assert_int_equal(seen.lost, 30);
    assert_int_equal(seen.bytes, most + 2 * (int64_t)sizeof(struct span_chunk));
    open_profile(&p);
    assert_int_equal(p.spans, 30);
    assert_int_equal(p.lost, 30);
    profile_free(&p);
}

/* ---- files ---- */

/* A file that ends anywhere, and one with a byte changed anywhere: what is whole before is read. */
static void every_byte(void **state) {
    (void)state;
    struct profile p;
    char *data, path[4200];
    size_t bytes;
    make_rings();
    open_drain(0);
    for (int k = 0; k < 12; k += 4) {
        put(0, k, 4);
        drain_once(drain);
    }
    close_drain();
    snprintf(path, sizeof path, "%s/spans-1-0.bin", folder);
    assert_int_equal(base_read_file(path, &data, &bytes), TRI_OK);
    assert_int_equal(bytes, 64 + 3 * (16 + 4 * 32));
    for (size_t i = 0; i < 2 * bytes; i++) {
        remove(path); /* quicker than a file that is cut, which the disk then must have */
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        const size_t at = i % bytes;
        data[at] ^= i >= bytes;
        assert_int_equal(fwrite(data, 1, i < bytes ? at : bytes, f), i < bytes ? at : bytes);
        data[at] ^= i >= bytes;
        fclose(f);
        if (profile_read(directory, NULL, &p)) {
            assert_true(i >= bytes && at < 16); /* magic, version, size of a span */
            assert_message("spans-1-0.bin: it");
        } else {
            const size_t chunks = at < 64 ? 0 : (at - 64) / 144;
            check_spans(&p, 0, (int)p.spans, 0);
            if (i < bytes) assert_int_equal(p.spans, 4 * chunks);
            if (i < bytes) assert_int_equal(p.cut, at < 64 || (at - 64) % 144 != 0);
            /* the number of spans that are missing has no check */
            if (i >= bytes && at >= 64 && (at - 64) % 144 - 8 >= 8)
                assert_int_equal(p.spans, 4 * chunks);
        }
        profile_free(&p);
    }
    free(data);
}

static void later_version(void **state) {
    (void)state;
    struct profile p;
    char path[4200];
    make_rings();
    open_drain(0);
    put(0, 0, 4);
    close_drain();
    snprintf(path, sizeof path, "%s/spans-1-0.bin", folder);
    FILE *f = fopen(path, "r+b");
    assert_non_null(f);
    fseek(f, 8, SEEK_SET);
    fputc(2, f);
    fclose(f);
    assert_int_equal(profile_read(directory, NULL, &p), TRI_FAILED);
    assert_message("its format is version 2; this program reads version 1");
    profile_free(&p);
}

#define TEST(name) cmocka_unit_test_teardown(name, remove_profile)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(wraps), TEST(drops), TEST(drops_last), TEST(beside), TEST(dies), TEST(damaged_ring),
        TEST(own_thread), TEST(stopped), TEST(full_disk), TEST(no_folder), TEST(at_most),
        TEST(every_byte), TEST(later_version)};
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
