/* SPDX-License-Identifier: Apache-2.0
 * trireme report on runs that never ran: what explains what, the order, and folders that are old,
 * damaged or of several hosts. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these headers */
#include <setjmp.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>

#include "unit/scratch.h"

#include "unit/report_judged.h"

static void clean(void **state) {
    (void)state;
    struct judged j;
    struct world w = world_clean();
    judge(&w, &j);
    assert_int_equal(j.r.n, 0);
    has(&j, "A step takes 5.0 ms; workers compute for 96 % of it and wait for 2 %, most of that "
            "for lanes that others compute; sums of gradients take 2 %. The run of lenet5 has "
            "done 1,000 of 1,000 steps in 5.0 s.");
    has(&j, "Nothing found by: slow-worker, shared-core,");
    has(&j, "Only with a profile: bubble,");
    has(&j, "--steps 5; any run with --profile steps=A..B.");
    done(&j);
}

/* ---- several at once ---- */

static void two_causes(struct world *w) {
    samples(w, 0.2);
    saving(w, 0.1);
}

static void shared_from_a_step(struct world *w) {
    w->late = 60;
    w->no_core[1] = 0.3;
    w->done[1] = 2.5;
    w->spent[0][SPENT_WAIT_LANES] = 0.2;
}

static void crowded_and_slow(struct world *w) {
    crowded(w, 1);
    w->no_core[0] = w->no_core[1] = 0.4;
    w->done[1] = 3;
}

static void evaluations_lose(struct world *w) {
    w->slowest = 2;
    w->slow_kind = SPENT_EVALUATE;
}

static void stages(struct world *w) {
    w->options = "\"--stages\":\"2\"";
    w->done[1] = 1; /* another stage */
    w->spent[1][SPENT_WAIT_LEGS] = 0.4;
}

static void start_alone(struct world *w) { w->start = 3; }

static void two_starts(struct world *w) {
    w->start = 1;
    w->goes_on = true;
    w->entries = ",{\"begin\":4000000000,\"end\":4000000001,\"exit\":0}";
}

static void copies_at_the_end(struct world *w) { one_does(w, SPENT_SAVE, 0.02); }

/* Nothing is said of workers by 80 lanes. */
static void few_lanes(struct world *w) {
    slow_worker(w, 2);
    w->step = 0.1;
    w->frames = w->late = 12;
}

static void note_beside_unknown(struct world *w) {
    not_finite(w, 1);
    memory(w, 0.97);
}

static void two_slow(struct world *w) {
    w->workers = w->cores = 4;
    w->lanes = 16;
    w->done[2] = w->done[3] = 2;
}

static void nothing_computed(struct world *w) { wait_for_all(w, SPENT_WAIT_TASKS, 0.95); }

static void waits_for_nobody(struct world *w) { wait_for_all(w, SPENT_UNKNOWN, 0.15); }

static const struct {
    const char *name;
    void (*change)(struct world *w);
    const char *order; /* rules, an effect in parentheses after its cause */
    const char *says;
} orders[] = {
    {"two causes", two_causes, "samples saving ", "wait for 27 %"},
    {"a shared core explains a slow worker", shared_from_a_step, "shared-core (slow-worker) ",
     "most of that for worker 1"},
    {"more threads than cores", crowded_and_slow, "crowded (shared-core) (slow-worker) ", ""},
    {"evaluations explain lost time", evaluations_lose, "evaluating (goodput) ", "evaluations"},
    {"stages have no slow worker", stages, "",
     "Communication is 24 % of a step: waits for lanes 2 %, waits for legs 20 %, sums 2 %"},
    {"a start is no loss", start_alone, "", ""},
    {"but a second one is", two_starts, "goodput ", "It has 2 starts, 0 deaths"},
    {"without checkpoints", copies_at_the_end, "", ""},
    {"few lanes", few_lanes, "", ""},
    {"what is not known is no note", note_beside_unknown, "memory not-finite ",
     "Notes, as they cost less than 0.5 %: 2. not-finite, 0.1 % of the run"},
    {"two slow workers", two_slow, "slow-worker ",
     "2.4 ms a lane instead of 1.2 ms. 2 workers are slow in all. The others wait"},
    {"nobody computes", nothing_computed, "", ""},
    {"unexplained time", waits_for_nobody, "", "Unexplained is 15 % of a step"},
};

static void add_order(const struct judged *j, char *text, size_t bytes) {
    *text = 0;
    for (size_t i = 0; i < j->r.n; i++) {
        const bool effect = j->r.depth[i] > 0;
        snprintf(text + strlen(text), bytes - strlen(text), "%s%s%s ", effect ? "(" : "",
                 j->r.finding[i].rule->name, effect ? ")" : "");
    }
}

static void in_order(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(orders); i++) {
        struct judged j;
        char order[512];
        struct world w = world_clean();
        orders[i].change(&w);
        judge(&w, &j);
        add_order(&j, order, sizeof order);
        if (strcmp(order, orders[i].order))
            fail_msg("%s: '%s', not '%s'", orders[i].name, order, orders[i].order);
        has(&j, orders[i].says);
        done(&j);
    }
}

/* Who had the core, as the agent saw it. A process that hardly ran is not blamed, nor one that ran
 * before the worker had no core. */
static void rivals(void **state) {
    (void)state;
    static const struct {
        int late, after, pid; /* late: frame */
        const char *text, *says, *remedy;
    } seen[] = {
        {100, 4, 0, "w; /proc shows no processes of other users, and none of this one that ran on "
         "its core, 1", "Z the agent saw: /proc shows no processes of other users",
         "End what else runs on its core"},
        {100, 4, 71, "w; ld, pid 71, ran for 0.0 s of the last second on its core, 1",
         "20 % of its time, it was ready to run and had none. End what", "leave the core out"},
        {100, 2, 71, "w; ld, pid 71, ran for 0.3 s of the last second on its core, 1",
         "Z the agent saw: ld, pid 71", "End the process on its core (pid 71)"},
        {60, 2, 71, "w; ld, pid 71, ran for 0.3 s of the last second on its core, 1",
         "and had none. End what", "leave the core out"},
    };
    for (size_t i = 0; i < COUNT(seen); i++) {
        struct judged j;
        struct world w = world_clean();
        w.late = seen[i].late;
        w.no_core[1] = 0.2;
        w.log = world_shared(seen[i].after, seen[i].pid, seen[i].text);
        judge(&w, &j);
        has(&j, seen[i].says);
        has(&j, seen[i].remedy);
        done(&j);
    }
}

/* An event of the log near to where steps become slower is named. */
static void names_events(void **state) {
    (void)state;
    struct judged j;
    char time_text[LOG_TIME], log[512];
    struct world w = world_clean();
    drift(&w, 1.5);
    log_time((int64_t)(time(NULL) + 3) * 1000000000, time_text);
    snprintf(log, sizeof log, "{\"time\":\"%s\",\"level\":\"warning\",\"event\":\"death\","
             "\"worker\":1,\"text\":\"killed\"}\n", time_text);
    w.log = log;
    w.frames = w.late = 200;
    w.late = 60;
    judge(&w, &j);
    has(&j, "Near it, the log has: death of worker 1, killed.");
    done(&j);
}

static double real(const json_t *j, const char *key) {
    return json_number_value(json_object_get(j, key));
}

static const char *word(const json_t *j, const char *key) {
    return json_string_value(json_object_get(j, key));
}

/* A part in which all is well is an exception. */
static void since_a_step(void **state) {
    (void)state;
    struct judged j;
    struct world w = world_clean();
    shared_from_a_step(&w);
    w.last_is_well = true;
    judge(&w, &j);
    has(&j, "slower than the median since step 601: ");
    done(&j);
}

static void as_json(void **state) {
    (void)state;
    struct judged j;
    struct world w = world_clean();
    shared_from_a_step(&w);
    w.title = "a\\u001b[2J\\u0007";
    judge(&w, &j);
    has(&j, "The run of a\\x1b[2J\\x07 has");
    has(&j, "slower than the median since step 601: ");
    char *text = text_of(&j, true);
    json_t *all = json_loads(text, 0, NULL), *findings = json_object_get(all, "findings");
    assert_int_equal(json_array_size(findings), 2);
    const json_t *effect = json_array_get(findings, 1);
    assert_string_equal(word(effect, "rule"), "slow-worker");
    assert_string_equal(word(effect, "effect_of"), "shared-core");
    assert_true(fabs(real(json_array_get(findings, 0), "cost") - 0.3) < 1e-4);
    assert_true(fabs(real(all, "step") - 0.005) < 1e-6);
    assert_true(fabs(real(all, "goodput") - 1) < 0.01);
    assert_true(fabs(real(all, "communication") - 0.13) < 1e-4); /* waits for lanes, and sums */
    assert_int_equal(json_array_size(json_object_get(all, "workers")), 2);
    assert_int_equal(json_array_size(json_object_get(all, "without_profile")), 8);
    json_decref(all);
    free(text);
    done(&j);
}

/* ---- folders ---- */

static void hosts(void **state) {
    (void)state;
    struct judged j;
    const char *const names[] = {"h0", "h1\033\377"};
    mkdir(at("hosts"), 0777);
    for (int i = 0; i < 2; i++) {
        char folder[256];
        struct world w = world_clean();
        snprintf(folder, sizeof folder, "%s/hosts/%s", directory, names[i]);
        mkdir(folder, 0777);
        w.hosts = "\"h0\",\"h1\"";
        if (i) w.no_core[0] = 0.4;
        world_make(&w, folder);
    }
    judge_folder(directory, &j);
    assert_int_equal(j.f.n_hosts, 2);
    assert_int_equal(j.f.n, 4);
    assert_int_equal(place_of(&j, "shared-core"), 0);
    has(&j, "The core of h1\\x1b\\xff's worker 0 is shared");
    free(text_of(&j, true));
    done(&j);
}

/* Of the version before: no run.json and no series, but times in metrics.jsonl. */
static void old(void **state) {
    (void)state;
    struct judged j;
    judge_folder(getenv("TRI_OLD_RUN"), &j);
    assert_int_equal(j.f.n, 2);
    assert_true(j.f.old && fabs(j.f.step - 32e-6) < 2e-6 && j.f.last == 20000);
    assert_true(j.f.worker[0].lanes + j.f.worker[1].lanes == 80000);
    has(&j, "Communication is 32 % of a step: waits for lanes 10 %, sums 21 %.");
    has(&j, "it is of an earlier version");
    done(&j);
}

/* Frames of lines are of the entries' time. */
static void without_series(void **state) {
    (void)state;
    struct judged j;
    struct world w = world_clean();
    w.entries = ",{\"begin\":4000000000,\"end\":4000000009,\"exit\":0}";
    w.metrics = "{\"step\":1,\"seconds\":1}\n{\"step\":2,\"seconds\":2}\n"
                "{\"step\":3,\"seconds\":1.5}\n";
    world_make(&w, directory);
    unlink(at("workers.series"));
    judge_folder(directory, &j);
    assert_int_equal(j.f.n_frames, 3);
    assert_true(fabs(j.f.frame[1].end - j.f.run->entry[0].begin - 2) < 1e-3);
    assert_true(fabs(j.f.frame[2].end - 4000000001.5) < 1e-3);
    done(&j);
    struct text many = {0};
    for (int i = 1; i <= 20001; i++)
        text_add(&many, "{\"step\":%d,\"seconds\":%d,\"workers\":[{\"worker\":0,\"compute\":0.5,"
                 "\"lanes\":2}]}\n", i, i);
    world_file(directory, "metrics.jsonl", many.data);
    text_free(&many);
    judge_folder(directory, &j);
    assert_int_equal(j.f.n_frames, 10001);
    assert_true(j.f.frame[0].steps == 2 && j.f.frame[10000].steps == 1);
    assert_true(fabs(j.f.frame[0].covers - 2) < 1e-9 && fabs(j.f.step - 1) < 1e-9);
    assert_true(fabs((double)j.f.frame[0].beside[SPENT_COMPUTE] - 0.5) < 1e-6);
    assert_true(j.f.worker[0].lanes == 40002);
    done(&j);
}

/* Killed at any byte of a file: a report or a message, never a crash. */
static void cut(void **state) {
    (void)state;
    static const char *const names[] = {"run.json", "workers.series", "metrics.jsonl",
                                        "agent.log"};
    struct world w = world_clean();
    w.frames = w.late = 8;
    not_finite(&w, 1);
    w.log = "{\"time\":\"2026-01-31T12:00:00Z\",\"level\":\"warning\",\"event\":\"x\"}\n";
    for (size_t i = 0; i < COUNT(names); i++) {
        char *text;
        size_t bytes;
        world_make(&w, directory);
        assert_int_equal(base_read_file(at(names[i]), &text, &bytes), TRI_OK);
        for (size_t n = 0; n < bytes; n += n < 64 || n > 4000 ? 1 : 61) {
            struct judged j;
            assert_int_equal(truncate(at(names[i]), (off_t)n), 0);
            if (!figures_read(directory, &j.f)) {
                report_make(&j.f, &j.r);
                free(text_of(&j, true));
                report_free(&j.r);
            }
            figures_free(&j.f);
            FILE *f = fopen(at(names[i]), "w");
            assert_true(fwrite(text, 1, bytes, f) == bytes && !fclose(f));
        }
        free(text);
    }
}

static void refused(void **state) {
    (void)state;
    struct figures f;
    assert_int_equal(figures_read(directory, &f), TRI_USAGE);
    assert_message("has no files of a run (run.json, metrics.jsonl)");
    figures_free(&f);
    assert_int_equal(figures_read(at("none"), &f), TRI_USAGE);
    assert_message("none: No such file or directory");
    figures_free(&f);
    world_file(directory, "run.json", "{\"format\":2}\n");
    assert_int_equal(figures_read(directory, &f), TRI_FAILED);
    assert_message("of a later version");
    figures_free(&f);
    assert_int_equal(figures_read(at("run.json"), &f), TRI_USAGE);
    assert_message("Not a directory");
    figures_free(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(clean, empty),
        cmocka_unit_test_teardown(in_order, empty),   cmocka_unit_test_teardown(refused, empty),
        cmocka_unit_test_teardown(as_json, empty),    cmocka_unit_test_teardown(hosts, empty),
        cmocka_unit_test_teardown(old, empty),        cmocka_unit_test_teardown(cut, empty),
        cmocka_unit_test_teardown(rivals, empty),
        cmocka_unit_test_teardown(since_a_step, empty),
        cmocka_unit_test_teardown(without_series, empty),
        cmocka_unit_test_teardown(names_events, empty),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
