/* SPDX-License-Identifier: Apache-2.0
 * run.json: what is written is read, also when it is damaged, and entries add up. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these headers */
#include <setjmp.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "observe/run_file.h"
#include "unit/scratch.h"

static char *const command[] = {(char *)(uintptr_t) "trireme", (char *)(uintptr_t) "train", NULL};
static const char *const hosts[] = {"h0", "h1"};
static const struct run_start start = {.title = "lenet5", .command = command, .host = "h1",
                                       .hosts = 2, .host_name = hosts, .workers = 3, .threads = 2,
                                       .cores = 8};

static struct run_file *begin(const char *name, bool goes_on) {
    struct run_file *f;
    assert_int_equal(run_file_begin(at(name), &start, goes_on, &f), TRI_OK);
    assert_non_null(f);
    return f;
}

static struct run_read read_back(const char *name) {
    struct run_read r;
    if (run_file_read(at(name), &r)) fail_msg("%s", tri_message());
    return r;
}

static void describe(struct run_file *f) {
    const char *const options[] = {"--batch", "64", "--ckpt", "ck"};
    const struct run_about about = {.n_options = 2, .option = options, .plan = "[grain]\n",
                                    .grain = "9a", .placement = "07", .device = "cpu",
                                    .isa = "avx2", .checkpoints = "/ck", .steps = 1000,
                                    .lanes = 8, .batch = 64, .parameters = 44426,
                                    .memory = 1 << 27};
    struct text t = {0};
    run_file_about(&about, &t);
    run_file_describe(f, t.data);
    text_free(&t);
}

static double total_of(const struct run_read *r, int worker, const char *what) {
    double sum = 0;
    size_t i;
    const json_t *one;
    json_array_foreach(json_object_get(r->root, "totals"), i, one)
        if (json_integer_value(json_object_get(one, "worker")) == worker)
            sum += json_number_value(json_object_get(one, what));
    return sum;
}

static void written(void **state) {
    (void)state;
    struct run_file *f = begin("run.json", false);
    struct stat st;
    assert_int_equal(stat(at("run.json"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    describe(f);
    struct run_read r = read_back("run.json");
    assert_string_equal(r.title, "lenet5");
    assert_int_equal(r.n_command, 2);
    assert_string_equal(r.command[1], "train");
    assert_int_equal(r.n_hosts, 2);
    assert_int_equal(r.n_options, 2);
    assert_string_equal(r.option[0], "--batch");
    assert_string_equal(r.option[3], "ck");
    assert_string_equal(r.plan, "[grain]\n");
    assert_string_equal(r.isa, "avx2");
    assert_int_equal(r.parameters, 44426);
    assert_int_equal(r.memory, 1 << 27);
    assert_int_equal(r.workers, 3);
    assert_true(isnan(r.predicted_step));
    assert_int_equal(r.n_entries, 1);
    assert_string_equal(r.entry[0].host, "h1");
    assert_int_equal(r.entry[0].pid, getpid());
    assert_true(r.entry[0].process_start > 0);
    assert_true(isnan(r.entry[0].end)); /* as if it had been killed */
    assert_int_equal(r.entry[0].first, -1);
    assert_int_equal(r.entry[0].exit, -1);
    run_file_free(&r);
    run_file_steps(f, 1, 20);
    run_file_end(f, 3);
    r = read_back("run.json");
    assert_true(r.entry[0].end >= r.entry[0].begin && r.entry[0].begin > 1.7e9);
    assert_int_equal(r.entry[0].last, 20);
    assert_int_equal(r.entry[0].exit, 3);
    run_file_free(&r);
    assert_int_equal(run_file_begin(NULL, &start, false, &f), TRI_OK);
    assert_null(f);
    run_file_total(f, 0, "compute", 1);
    run_file_fault(f, "death", 0, 1, "", 1);
    run_file_end(f, 0);
}

/* Totals and faults of two entries; in the same file, and in another. */
static void continued(void **state) {
    (void)state;
    for (int other = 0; other < 2; other++) {
        struct run_file *f = begin("a.json", false);
        describe(f);
        run_file_total(f, 1, "compute", 2);
        run_file_total(f, 1, "compute", 3); /* in place of it */
        run_file_total(f, 0, "read", 0.5);
        run_file_fault(f, "death", 1, 7, "before", 0.25);
        run_file_fault(f, "takeover", 2, 7, "", NAN);
        run_file_end(f, 1);
        f = begin(other ? "b.json" : "a.json", !other);
        const int64_t death = run_file_fault(f, "death", 0, 9, "then \x01", NAN);
        if (other) run_file_continue(f, at("a.json"));
        assert_true(!other || access(at("a.json"), F_OK));
        run_file_cost(f, death, 0.5);
        run_file_total(f, 1, "compute", 1);
        run_file_end(f, 0);
        struct run_read r = read_back(other ? "b.json" : "a.json");
        assert_int_equal(r.n_entries, 2);
        assert_int_equal(r.entry[0].exit, 1);
        assert_int_equal(r.entry[1].exit, 0);
        assert_true(total_of(&r, 1, "compute") == 4 && total_of(&r, 0, "read") == 0.5);
        assert_int_equal(r.deaths, 2);
        assert_int_equal(r.takeovers, 1);
        assert_int_equal(r.stalls, 0);
        assert_int_equal(r.n_faults, 3);
        assert_true(r.fault[0].cost == 0.25 && isnan(r.fault[1].cost) && r.fault[2].cost == 0.5);
        assert_string_equal(r.fault[2].text, "then \x01");
        assert_int_equal(r.fault[2].step, 9);
        assert_int_equal(r.batch, 64); /* this start has not described itself */
        run_file_free(&r);
    }
}

static void many_faults(void **state) {
    (void)state;
    struct run_file *f = begin("run.json", false);
    int64_t first = 0, last = 0;
    for (int i = 0; i < RUN_FAULTS + 5; i++) {
        last = run_file_fault(f, i % 2 ? "stall" : "death", 0, i, "", NAN);
        if (!i) first = last;
    }
    run_file_cost(f, first, 3); /* it is no longer there */
    run_file_cost(f, last, 4);
    run_file_end(f, 0);
    struct run_read r = read_back("run.json");
    assert_int_equal(r.deaths + r.stalls, RUN_FAULTS + 5);
    assert_int_equal(r.n_faults, RUN_FAULTS);
    assert_int_equal(r.fault[0].step, 5);
    for (int i = 0; i < RUN_FAULTS; i++)
        assert_true(i == RUN_FAULTS - 1 ? r.fault[i].cost == 4 : isnan(r.fault[i].cost));
    run_file_free(&r);
}

static void refused(const char *text, const char *message) {
    struct run_read r;
    assert_int_equal(run_file_parse("run.json", text, strlen(text), &r), TRI_FAILED);
    if (!strstr(tri_message(), message)) fail_msg("%s", tri_message());
    assert_null(r.root);
}

/* Cut at every byte it is a message; with fields of any type, what is right is read. */
static void damaged(void **state) {
    (void)state;
    struct run_file *f = begin("run.json", false);
    describe(f);
    run_file_total(f, 1, "compute", 2);
    run_file_fault(f, "death", 1, 7, "text", 0.25);
    run_file_end(f, 1);
    char *text;
    size_t bytes;
    struct run_read r;
    assert_int_equal(base_read_file(at("run.json"), &text, &bytes), TRI_OK);
    for (size_t n = 0; n < bytes - 1; n++)
        assert_int_equal(run_file_parse("run.json", text, n, &r), TRI_FAILED);
    free(text);
    refused("[]", "no run.json, or damaged");
    refused("{\"format\":\"1\"}", "no run.json, or damaged");
    refused("{\"format\":2,\"entries\":[]}", "of a later version of Trireme");
    static const char odd[] = "{\"format\":1,\"title\":7,\"command\":[1,\"a\",{}],\"hosts\":{},"
                              "\"entries\":[3,{\"pid\":\"x\",\"exit\":99999999999}],\"new\":[1],"
                              "\"totals\":[[],{\"worker\":2,\"compute\":\"x\",\"sum\":1},{\"a\":1},"
                              "{\"worker\":-5,\"sum\":1}],\"faults\":5,\"options\":[1],"
                              "\"deaths\":1.5}";
    assert_int_equal(run_file_parse("run.json", odd, strlen(odd), &r), TRI_OK);
    assert_string_equal(r.title, "");
    assert_int_equal(r.n_command, 1);
    assert_int_equal(r.n_hosts + r.n_faults + r.n_options, 0);
    assert_int_equal(r.n_entries, 1);
    assert_int_equal(r.entry[0].exit, -1);
    assert_int_equal(r.deaths, -1);
    run_file_free(&r);
}

/* What cannot be read does not stop a new entry, and is left. */
static void beside_damage(void **state) {
    (void)state;
    FILE *other = fopen(at("a.json"), "w");
    assert_non_null(other);
    fputs("{\"format\":1,", other);
    assert_int_equal(fclose(other), 0);
    struct run_file *f = begin("run.json", false);
    run_file_continue(f, at("a.json"));
    run_file_end(f, 0);
    assert_int_equal(access(at("a.json"), F_OK), 0);
    struct run_read r = read_back("run.json");
    assert_int_equal(r.n_entries, 1);
    run_file_free(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(written, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(continued, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(many_faults, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(damaged, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(beside_damage, make_directory, remove_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
