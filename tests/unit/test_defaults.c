/* SPDX-License-Identifier: Apache-2.0
 * Options that ask for the default count as not given; others have an effect or are refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <trireme.h>

#include "unit/mesh_net.h"
#include "unit/scratch.h"

#define SELF ((tri_optimizer){.name = "momentum"})

static void plain(struct net *n) { (void)n; }
static void staged(struct net *n) { tri_stage(n->g, "second", 1); }
static void trains(struct net *n) { tri_minimize(n->g->loss, SELF); }

/* `usual` is a default, `other` is none. */
static const struct {
    const char *name;
    void (*make)(struct net *n);
    tri_options usual, other;
} pairs[] = {
    {"pipeline", staged, {.stages = 1, .pipeline = "1f1b"}, {.stages = 1, .pipeline = "gpipe"}},
    {"pipeline without stages", plain, {.pipeline = "1f1b"}, {.pipeline = "zero-bubble"}},
    {"steal", plain, {.steal = "late"}, {.steal = "never"}},
    {"chunks", plain, {.chunks = 2}, {.chunks = 3}},
    {"chunks of 1f1b", staged, {.chunks = 2, .lanes = 2}, {.chunks = 3, .lanes = 2}},
    {"unset", plain, {.unset = "follow"}, {.unset = "whole"}},
    {"bucket", plain, {.bucket = 4 << 20, .zero = "1"}, {.bucket = 5 << 20, .zero = "1"}},
    {"epochs", plain, {.epochs = 1, .steps = 1}, {.epochs = 2, .steps = 1}},
    {"sampler", plain, {.sampler = "shuffled", .no_shuffle = true},
     {.sampler = "stratified", .no_shuffle = true}},
    {"tokenizer", plain, {.tokenizer = "bytes"}, {.tokenizer = "gpt2:/none"}},
    {"fed sampler", plain, {.data = "feed", .steps = 1, .sampler = "shuffled"},
     {.data = "feed", .steps = 1, .sampler = "sequential"}},
    {"fed tail", plain, {.data = "feed", .steps = 1, .tail = "drop"},
     {.data = "feed", .steps = 1, .tail = "keep"}},
    {"fed epochs", plain, {.data = "feed", .steps = 1, .epochs = 1},
     {.data = "feed", .epochs = 2}},
    {"fed tokenizer", plain, {.data = "feed", .steps = 1, .tokenizer = "bytes"},
     {.data = "feed", .steps = 1, .tokenizer = "gpt2:/none"}},
    {"loss scale", trains, {.optimizer.loss_scale = "off"}, {.optimizer.loss_scale = "2"}},
};

static tri_run *open_with(size_t i, const tri_options *how) {
    struct net n = network();
    tri_options o = *how;
    o.quiet = true;
    pairs[i].make(&n);
    return tri_open(n.g, &o);
}

static void test_open(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(pairs); i++) {
        tri_run *run = open_with(i, &pairs[i].usual);
        if (!run) fail_msg("%s: the default is refused: %s", pairs[i].name, tri_message());
        tri_close(run);
        if (open_with(i, &pairs[i].other)) fail_msg("%s: another is taken", pairs[i].name);
    }
}

/* A program may read its options after it has parsed a command line. */
static void test_plan(void **state) {
    char plan[80];
    char *words[] = {"program", "--plan", plan, "--stages", "1", NULL};
    int argc = 5;
    tri_options o = {.pipeline = "1f1b", .amp = "O0", .conv = "auto", .tail = "drop", .chunks = 2};
    (void)state;
    snprintf(plan, sizeof plan, "%s", at("plan"));
    FILE *f = fopen(plan, "w");
    assert_non_null(f);
    fputs("[grain]\namp O1\nbatch 8\n[placement]\nstages 2\npipeline gpipe\n", f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(tri_options_parse(&o, &argc, words), TRI_OK);
    assert_string_equal(o.amp, "O1"); /* the plan's */
    assert_string_equal(o.pipeline, "1f1b");
    assert_string_equal(o.conv, "auto");
    assert_string_equal(o.tail, "drop");
    assert_int_equal(o.chunks, 2);

    char *other[] = {"program", "--plan", plan, "--amp", "O0", NULL};
    argc = 5;
    o = (tri_options){.pipeline = "1f1b"};
    assert_int_equal(tri_options_parse(&o, &argc, other), TRI_USAGE);
    assert_non_null(strstr(tri_message(), "amp O1, but --amp O0"));

    char *placed[] = {"program", "--plan", plan, NULL};
    argc = 3;
    o = (tri_options){.pipeline = "1f1b"};
    assert_int_equal(tri_options_parse(&o, &argc, placed), TRI_OK);
    assert_string_equal(o.pipeline, "gpipe");
}

/* Values that a command line cannot have are refused of a program, too. */
static void test_wrong(void **state) {
    (void)state;
    static const struct {
        tri_options o;
        const char *said;
    } wrong[] = {
        {{.batch = -1}, "batch is -1; it must be at least 1"},
        {{.bucket = -1}, "bucket is -1"},
        {{.memory_limit = -1}, "memory_limit is -1"},
        {{.memory_limit = 640}, "640 bytes, less than any run needs; do you mean 640M?"},
        {{.memory_limit = 3072}, "3072 bytes, less than any run needs; do you mean 3M?"},
        {{.save_every = -1}, "save_every is -1"},
        {{.keep = -2}, "keep is -2"},
        {{.keep_every = -1}, "keep_every is -1"},
        {{.sink_size = -1}, "sink_size is -1"},
        {{.max_time = -1}, "max_time and save_minutes (tri_options) must be at least 0"},
        {{.save_minutes = -1}, "max_time and save_minutes (tri_options) must be at least 0"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tri_options o = wrong[i].o;
        o.quiet = true;
        o.ckpt = at("ckpt");
        tri_run *run = tri_open(network().g, &o);
        if (run || !strstr(tri_message(), wrong[i].said))
            fail_msg("%s: %s", wrong[i].said, run ? "is taken" : tri_message());
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_wrong),
    };
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
