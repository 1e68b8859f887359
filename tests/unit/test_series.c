/* SPDX-License-Identifier: Apache-2.0 Files of the times of workers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>

#include "observe/series.h"
#include "unit/scratch.h"

#define MS 1000000
#define PLACES 3

static const struct series_column columns[] = {{"compute", SERIES_SHARE, 0},
                                               {"waits", SERIES_SHARE, 0},
                                               {"lanes", SERIES_SUM, 0},
                                               {"memory", SERIES_MOST, 0}};
#define N ((int)COUNT(columns))

/* Made-up values of the i-th frame. */
static double value_of(int64_t i, int place, int column) {
    const double x = (double)((i * 7 + place * 3 + column) % 11);
    return columns[column].kind == SERIES_SHARE ? x / 11 : x + place;
}

/* The slowest step is in frame 5. */
static struct series_frame frame_of(int64_t i) {
    return (struct series_frame){.step = 2 * i + 2,
                                 .covers = (1 + i % 3) * MS,
                                 .slowest = i == 5 ? 9 * MS : MS + i % 7,
                                 .slowest_step = 2 * i + 1,
                                 .steps = 2,
                                 .throttled = series_share((double)(i % 5) / 5),
                                 .stolen = series_share(0.25)};
}

static void add(struct series_writer *w, int64_t i) {
    double value[PLACES * N];
    const struct series_frame f = frame_of(i);
    for (int p = 0; p < PLACES; p++)
        for (int c = 0; c < N; c++) value[p * N + c] = value_of(i, p, c);
    w->offset = 0; /* the test's own clock */
    assert_int_equal(series_add(w, (i + 1) * MS, &f, value), TRI_OK);
}

static const char *made(int frames) {
    struct series_writer w;
    const char *path = at("workers.series");
    assert_int_equal(series_create(&w, path, base_now(), PLACES, columns, N), TRI_OK);
    for (int i = 0; i < frames; i++) add(&w, i);
    series_writer_close(&w);
    return path;
}

static void assert_frame(struct series *s, int64_t at_index, int64_t i) {
    assert_true(series_read(s, at_index));
    struct series_frame right = frame_of(i), is = s->frame;
    right.time = (i + 1) * MS;
    is.check = 0;
    assert_memory_equal(&is, &right, sizeof is);
    for (int p = 0; p < PLACES; p++)
        for (int c = 0; c < N; c++) {
            const double x = series_value(s, p, series_column(s, columns[c].name));
            assert_true(fabs(x - value_of(i, p, c)) < 1e-5);
        }
}

static void round_trip(void **state) {
    (void)state;
    struct series s;
    assert_int_equal(series_open(&s, made(20)), TRI_OK);
    assert_int_equal(s.n, 20);
    assert_int_equal(s.damaged, 0);
    assert_int_equal(s.layout.places, PLACES);
    assert_true(s.layout.began > 1600000000ll * 1000000000);
    for (int i = 0; i < 20; i++) assert_frame(&s, i, i);
    assert_false(series_read(&s, 20) || series_read(&s, -1));
    const int64_t steps[][2] = {{0, -1}, {1, 0}, {2, 0}, {3, 1}, {40, 19}, {41, -1}};
    for (size_t i = 0; i < COUNT(steps); i++)
        assert_int_equal(series_find_step(&s, steps[i][0]), steps[i][1]);
    const int64_t times[][2] = {{0, 0}, {MS, 0}, {MS + 1, 1}, {20 * MS, 19}, {20 * MS + 1, 20}};
    for (size_t i = 0; i < COUNT(times); i++)
        assert_int_equal(series_find_time(&s, times[i][0]), times[i][1]);
    assert_int_equal(series_column(&s, "weight"), -1);
    assert_true(series_value(&s, 0, -1) == 0 && series_value(&s, PLACES, 0) == 0);
    series_close(&s);
}

/* What a whole file says: steps, time, the slowest step, and per place and column the sum or mean
 * or the largest value. */
struct whole {
    int64_t steps, covers, slowest, slowest_step;
    double throttled, value[PLACES][N];
};

static void sum_up(const char *path, struct whole *w) {
    struct series s;
    *w = (struct whole){0};
    assert_int_equal(series_open(&s, path), TRI_OK);
    for (int64_t i = 0; series_read(&s, i); i++) {
        w->steps += s.frame.steps;
        w->covers += s.frame.covers;
        w->throttled += s.frame.throttled * (double)s.frame.covers;
        if (s.frame.slowest > w->slowest) {
            w->slowest = s.frame.slowest;
            w->slowest_step = s.frame.slowest_step;
        }
        for (int p = 0; p < PLACES; p++)
            for (int c = 0; c < N; c++) {
                const double x = series_value(&s, p, c);
                double *sum = &w->value[p][c];
                if (columns[c].kind == SERIES_MOST) *sum = x > *sum ? x : *sum;
                else *sum += columns[c].kind == SERIES_SHARE ? x * (double)s.frame.covers : x;
            }
    }
    series_close(&s);
}

static void full_is_halved(void **state) {
    (void)state;
    struct series_writer w;
    struct series s;
    struct whole before, after;
    const char *path = at("workers.series");
    const int64_t frames = 101;
    assert_int_equal(series_create(&w, path, base_now(), PLACES, columns, N), TRI_OK);
    w.layout.capacity = frames; /* of the writer alone */
    for (int64_t i = 0; i < frames; i++) add(&w, i);
    sum_up(path, &before);
    assert_int_equal(before.slowest_step, 11);
    assert_int_equal(series_open(&s, path), TRI_OK);
    add(&w, frames);
    assert_int_equal(w.frames, frames / 2 + 2);
    assert_int_equal(w.layout.period, 2 * SERIES_PERIOD);
    assert_frame(&s, 100, 100); /* a reader keeps the file that it has opened */
    series_close(&s);
    series_writer_close(&w);
    assert_int_equal(access(at("workers.series.part"), F_OK), -1);
    sum_up(path, &after);
    const struct series_frame last = frame_of(frames);
    assert_int_equal(after.steps - last.steps, before.steps);
    assert_int_equal(after.covers - last.covers, before.covers);
    assert_int_equal(after.slowest, before.slowest);
    assert_int_equal(after.slowest_step, 11);
    const double time = (double)before.covers;
    assert_true(fabs((after.throttled - last.throttled * (double)last.covers - before.throttled) /
                     time) < 1);
    for (int p = 0; p < PLACES; p++)
        for (int c = 0; c < N; c++) {
            const double own = value_of(frames, p, c), sum = before.value[p][c];
            const double is = after.value[p][c];
            if (columns[c].kind == SERIES_SHARE)
                assert_true(fabs(is - own * (double)last.covers - sum) / time < 2e-5);
            if (columns[c].kind == SERIES_SUM) assert_true(is == sum + own);
            if (columns[c].kind == SERIES_MOST) assert_true(is == fmax(sum, own));
        }
}

static void fits_its_budget(void **state) {
    (void)state;
    struct series_writer w;
    const struct series_column one[] = {{"x", SERIES_SUM, 0}};
    struct series_column many[SERIES_COLUMNS];
    for (int i = 0; i < SERIES_COLUMNS; i++) {
        many[i] = (struct series_column){.kind = i < 25 ? SERIES_SHARE : SERIES_SUM};
        base_format(many[i].name, SERIES_NAME, "a-rather-long-name-%d", i);
    }
    const struct {
        int places, n;
        int64_t least;
    } rows[] = {{1, 1, SERIES_FRAMES}, {64, 29, 15000}, {SERIES_PLACES, SERIES_COLUMNS, 50}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        assert_int_equal(series_create(&w, at("a"), base_now(), rows[i].places,
                                       rows[i].n == 1 ? one : many, rows[i].n), TRI_OK);
        assert_in_range(w.layout.capacity, rows[i].least, SERIES_FRAMES);
        assert_true(w.layout.capacity * (int64_t)w.layout.frame <= SERIES_BYTES);
        series_writer_close(&w);
    }
}

static void goes_on_from(const char *path, int64_t whole) {
    struct series_writer w;
    struct series s;
    assert_int_equal(series_continue(&w, path, base_now(), PLACES, columns, N), TRI_OK);
    assert_int_equal(w.frames, whole);
    assert_true(w.offset + base_now() >= whole * MS); /* time does not go back */
    add(&w, whole);
    series_writer_close(&w);
    assert_int_equal(series_open(&s, path), TRI_OK);
    assert_int_equal(s.n, whole + 1);
    assert_int_equal(s.damaged, 0);
    for (int i = 0; i <= whole; i++) assert_frame(&s, i, i);
    series_close(&s);
}

/* Cut at every byte, a file has the frames that are whole, and its writer goes on after them. */
static void cut_anywhere(void **state) {
    (void)state;
    char *all;
    size_t bytes;
    assert_int_equal(base_read_file(made(3), &all, &bytes), TRI_OK);
    const size_t each = (bytes - SERIES_PAGE) / 3;
    for (size_t cut = SERIES_PAGE - 3; cut <= bytes; cut++) {
        struct series s;
        FILE *f = fopen(at("cut"), "w");
        assert_int_equal(fwrite(all, 1, cut, f), cut);
        fclose(f);
        if (cut < SERIES_PAGE) {
            assert_int_equal(series_open(&s, at("cut")), TRI_FAILED);
            assert_message("cut is damaged: it ends in its first page");
            continue;
        }
        const int64_t whole = (int64_t)((cut - SERIES_PAGE) / each);
        assert_int_equal(series_open(&s, at("cut")), TRI_OK);
        assert_int_equal(s.n, whole);
        series_close(&s);
        goes_on_from(at("cut"), whole);
    }
    free(all);
}

static void change(const char *path, long where, int byte) {
    FILE *f = fopen(path, "r+");
    assert_int_equal(fseek(f, where, SEEK_SET), 0);
    assert_int_equal(fputc(byte, f), byte);
    assert_int_equal(fclose(f), 0);
}

static void damaged_frames(void **state) {
    (void)state;
    struct series s;
    const char *path = made(5);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    const long each = ((long)st.st_size - SERIES_PAGE) / 5;
    change(path, SERIES_PAGE + each + each / 2, 77);
    change(path, SERIES_PAGE + 4 * each + 1, 77);
    assert_int_equal(series_open(&s, path), TRI_OK);
    assert_int_equal(s.n, 3);
    assert_int_equal(s.damaged, 2);
    assert_frame(&s, 1, 2);
    series_close(&s);
    struct series_writer w;
    assert_int_equal(series_continue(&w, path, base_now(), PLACES, columns, N), TRI_OK);
    assert_int_equal(w.frames, 4);
    series_writer_close(&w);
}

static void damaged_page(void **state) {
    (void)state;
    struct series s;
    struct series_writer w;
    const struct {
        long where;
        const char *message;
    } rows[] = {{0, "is damaged"},
                {8, "written by a later version of Trireme (format 77, this program reads 1)"},
                {16, "is damaged"},
                {offsetof(struct series_page, columns) + 3, "is damaged"},
                {SERIES_PAGE - 1, "is damaged"}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *path = made(1);
        change(path, rows[i].where, 77);
        assert_int_equal(series_open(&s, path), TRI_FAILED);
        assert_message(rows[i].message);
        assert_int_equal(series_continue(&w, path, base_now(), PLACES, columns, N), TRI_FAILED);
        assert_message(rows[i].message);
        assert_int_equal(w.fd, -1);
    }
    assert_int_equal(series_open(&s, at("nothing")), TRI_FAILED);
    assert_message("nothing: No such file");
    assert_int_equal(series_open(&s, directory), TRI_FAILED);
    assert_message("a directory, not a regular file");
}

/* Another program's columns, in another order, and more workers. */
static void other_columns(void **state) {
    (void)state;
    struct series s;
    struct series_writer w;
    const char *path = made(4);
    const struct series_column other[] = {{"memory", SERIES_MOST, 0},
                                          {"sums", SERIES_SHARE, 0},
                                          {"compute", SERIES_SHARE, 0}};
    const double value[(PLACES + 1) * 3] = {[0] = 1e12, [1] = 0.5, [3 * PLACES] = 5, [4] = NAN};
    assert_int_equal(series_continue(&w, path, base_now(), PLACES + 1, other, 3), TRI_OK);
    assert_int_equal(series_add(&w, base_now(), &(struct series_frame){.step = 9}, value), TRI_OK);
    series_writer_close(&w);
    assert_int_equal(series_open(&s, path), TRI_OK);
    assert_int_equal(s.layout.places, PLACES + 1);
    assert_int_equal(s.n, 5);
    const int memory = series_column(&s, "memory"), compute = series_column(&s, "compute"),
              sums = series_column(&s, "sums");
    assert_int_equal(series_column(&s, "lanes"), -1);
    assert_true(series_read(&s, 3));
    assert_true(series_value(&s, 1, memory) == value_of(3, 1, 3));
    assert_true(fabs(series_value(&s, 1, compute) - value_of(3, 1, 0)) < 1e-5);
    assert_true(series_value(&s, 1, sums) == 0 && series_value(&s, PLACES, compute) == 0);
    assert_int_equal(s.frame.slowest, frame_of(3).slowest);
    assert_true(series_read(&s, 4));
    assert_true(series_value(&s, 0, memory) == UINT32_MAX); /* the most that there can be */
    assert_true(series_value(&s, 0, sums) > 0.49 && series_value(&s, 1, sums) == 0);
    assert_true(series_value(&s, PLACES, memory) == 5);
    series_close(&s);
    /* Fewer workers again: the file keeps its places. */
    assert_int_equal(series_continue(&w, path, base_now(), 1, other, 3), TRI_OK);
    assert_int_equal(w.frames, 5);
    assert_int_equal(w.layout.places, PLACES + 1);
    series_writer_close(&w);
}

static void cannot_write(void **state) {
    (void)state;
    struct series_writer w;
    assert_int_equal(series_create(&w, at("no/a"), base_now(), 1, columns, N), TRI_FAILED);
    assert_message("cannot write");
    assert_message("no/a: No such file");
    assert_int_equal(series_create(&w, at("full"), base_now(), 1, columns, N), TRI_OK);
    close(w.fd);
    w.fd = open("/dev/full", O_RDWR);
    assert_true(w.fd >= 0);
    assert_int_equal(series_add(&w, 0, &(struct series_frame){0}, (double[N]){0}), TRI_FAILED);
    assert_message("full: No space left on device");
    assert_int_equal(w.fd, -1);
}

/* tests/profile/make_run.py writes what this program reads: a step that takes 5 s, then a worker
 * that has no core. */
static void made_up_runs(void **state) {
    (void)state;
    char command[512];
    struct series s;
    const char *script = getenv("TRI_MAKE_RUN");
    if (!script) skip();
    base_format(command, sizeof command, "python3 '%s' '%s' --steps 200 --workers 3", script,
                directory);
    assert_int_equal(system(command), 0);
    assert_int_equal(series_open(&s, at("workers.series")), TRI_OK);
    assert_int_equal(s.n, 200);
    assert_int_equal(s.damaged, 0);
    for (int64_t i = 0; i < s.n; i++) {
        double sum = 0;
        assert_true(series_read(&s, i));
        assert_int_equal(s.frame.step, i + 1);
        assert_true((s.frame.slowest > 4000000000) == (i + 1 == 60));
        for (int c = 0; c < s.layout.n; c++)
            if (s.layout.column[c].kind == SERIES_SHARE) sum += series_value(&s, 2, c);
        assert_true(fabs(sum - 1) < 1e-3);
        const double without = series_value(&s, 1, series_column(&s, "no-core"));
        assert_true(i + 1 > 120 ? without > 0.28 : without == 0);
    }
    series_close(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(round_trip, empty_directory),
        cmocka_unit_test_teardown(full_is_halved, empty_directory),
        cmocka_unit_test_teardown(fits_its_budget, empty_directory),
        cmocka_unit_test_teardown(cut_anywhere, empty_directory),
        cmocka_unit_test_teardown(damaged_frames, empty_directory),
        cmocka_unit_test_teardown(damaged_page, empty_directory),
        cmocka_unit_test_teardown(other_columns, empty_directory),
        cmocka_unit_test_teardown(cannot_write, empty_directory),
        cmocka_unit_test_teardown(made_up_runs, empty_directory),
    };
    return cmocka_run_group_tests_name("series", tests, make_directory, remove_directory);
}
