/* SPDX-License-Identifier: Apache-2.0
 * Formats of tensors: packs as text and as offsets, the pass that chooses blocked formats for a
 * device that prefers them, reorders on every device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dev/dev.h"
#include "graph/pack.h"
#include "plan/format.h"

/* ---- packs ---- */

static struct pack pack(const char *text, tri_shape shape) {
    struct pack p;
    const char *why = pack_parse(text, &shape, &p);
    if (why) fail_msg("%s: %s", text, why);
    return p;
}

static void packs_are_read(void **state) {
    static const char *const right[] = {"abcd", "acdb", "aBcd4b", "ABcd4b8a2b", "Acdb2a"};
    static const char *const wrong[] = {"", "abc", "abcde", "abca", "aBcd", "abcd4b", "aBcd3b",
                                        "aBcd4", "aBcd4b4", "aBcd-4b", "aBcd4e", "aBcd0b",
                                        "aBcd4b1b1b1b1b1b1b"};
    tri_shape s = TRI_SHAPE(16, 8, 3, 5);
    (void)state;
    for (size_t i = 0; i < COUNT(right); i++) {
        char text[PACK_TEXT];
        struct pack p = pack(right[i], s);
        assert_true(pack_print(&p, text));
        assert_string_equal(text, right[i]);
    }
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct pack p;
        if (!pack_parse(wrong[i], &s, &p)) fail_msg("\"%s\" is taken", wrong[i]);
    }
}

/* Every element has its own offset; some offsets are known. */
static void offsets_match_the_text(void **state) {
    static const struct {
        const char *text;
        int64_t of[4], place;
    } known[] = {
        {"abcd", {1, 2, 1, 3}, ((1 * 8 + 2) * 3 + 1) * 5 + 3},
        {"acdb", {1, 2, 1, 3}, ((1 * 3 + 1) * 5 + 3) * 8 + 2},
        {"aBcd4b", {1, 6, 1, 3}, (((1 * 2 + 1) * 3 + 1) * 5 + 3) * 4 + 2},
        {"ABcd4b2a2b", {3, 7, 0, 0}, (((1 * 1 + 0) * 3 * 5) * 4 + 3) * 4 + 1 * 2 + 1},
    };
    tri_shape s = TRI_SHAPE(4, 8, 3, 5);
    (void)state;
    for (size_t i = 0; i < COUNT(known); i++) {
        struct pack p = pack(known[i].text, s);
        bool seen[4 * 8 * 3 * 5] = {false};
        assert_int_equal(pack_place(&p, &s, known[i].of), known[i].place);
        for (int64_t k = 0; k < (int64_t)COUNT(seen); k++) {
            int64_t at[] = {k / 120, k / 15 % 8, k / 5 % 3, k % 5};
            int64_t place = pack_place(&p, &s, at);
            assert_true(place >= 0 && place < (int64_t)COUNT(seen) && !seen[place]);
            seen[place] = true;
        }
    }
}

static void equal_formats(void **state) {
    tri_shape s = TRI_SHAPE(4, 8, 3, 5), flat = TRI_SHAPE(4, 8, 1, 1);
    struct pack last = pack("acdb", s), block = pack("aBcd8b", s), four = pack("aBcd4b", s);
    (void)state;
    assert_true(pack_equal(&last, &block, &s));
    assert_false(pack_equal(&last, &four, &s));
    last = pack("acdb", flat);
    block = pack("abcd", flat);
    assert_true(pack_equal(&last, &block, &flat));
}

/* ---- the pass ---- */

/* A device that wants channels in blocks of 4 for convolutions, weights in its own format, and
 * takes additions, relu and batch norm in any format. */
static void likes(const tri_node *n, struct format *in, struct format *out) {
    if (node_is(n, "conv2d")) {
        in[0].block = n->in[0]->spec.shape.dim[1] % 4 ? 0 : 4;
        snprintf(in[1].pack, PACK_TEXT, "bacd");
        out->block = n->out->spec.shape.dim[1] % 4 ? 0 : 4;
    } else if (node_is(n, "add") || node_is(n, "relu")) {
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i]->spec.shape.rank == 4) in[i].block = FORMAT_ANY;
        out->block = FORMAT_ANY;
    }
}

static const struct target target = {.formats = likes};

static const char network[] =
    "graph {batch=2}\n"
    "%x = input() {name=\"x\", type=f32, shape=[2,3,6,6]}\n"
    "%w1 = param() {name=\"w1\", shape=[8,3,3,3]}\n"
    "%w2 = param() {name=\"w2\", shape=[8,8,1,1]}\n"
    "%b = param() {name=\"b\", shape=[8,1,1]}\n"
    "%a = conv2d(%x, %w1) @ \"first\"\n"
    "%r = relu(%a) @ \"r\"\n"
    "%c = conv2d(%r, %w2) @ \"second\"\n"
    "%s = add(%c, %r) @ \"s\"\n"
    "%t = add(%s, %b) @ \"t\"\n"
    "%m = mean(%t) {axes=[2,3]} @ \"m\"\n"
    "%u = neg(%t) @ \"u\"\n"
    "%v = conv2d(%x, %w1) {stride=[2,2]} @ \"third\"\n"
    "output \"m\" %m\n"
    "output \"u\" %u\n"
    "output \"v\" %v\n";

/* One reorder of each weight for each user, of %t for all users that want it plain, of the
 * output. */
static const char laid[] =
    "graph {batch=2}\n"
    "%0 = input() {name=\"x\", type=f32, shape=[2,3,6,6]} : f32[2,3,6,6] @ \"input\"\n"
    "%1 = param() {name=\"w1\", shape=[8,3,3,3]} : f32[8,3,3,3] @ \"param\"\n"
    "%2 = param() {name=\"w2\", shape=[8,8,1,1]} : f32[8,8,1,1] @ \"param_1\"\n"
    "%3 = param() {name=\"b\", shape=[8,1,1]} : f32[8,1,1] @ \"param_2\"\n"
    "%4 = reorder(%1) : f32[8,3,3,3]/\"bacd\" @ \"first.format.reorder\"\n"
    "%5 = conv2d(%0, %4) : f32[2,8,4,4]/4 @ \"first\"\n"
    "%6 = relu(%5) : f32[2,8,4,4]/4 @ \"r\"\n"
    "%7 = reorder(%2) : f32[8,8,1,1]/\"bacd\" @ \"second.format.reorder\"\n"
    "%8 = conv2d(%6, %7) : f32[2,8,4,4]/4 @ \"second\"\n"
    "%9 = add(%8, %6) : f32[2,8,4,4]/4 @ \"s\"\n"
    "%10 = add(%9, %3) : f32[2,8,4,4]/4 @ \"t\"\n"
    "%11 = reorder(%10) : f32[2,8,4,4] @ \"m.format.reorder\"\n"
    "%12 = mean(%11) {axes=[2,3]} : f32[2,8] @ \"m\"\n"
    "%13 = neg(%11) : f32[2,8,4,4] @ \"u\"\n"
    "%14 = conv2d(%0, %4) {stride=[2,2]} : f32[2,8,2,2]/4 @ \"third\"\n"
    "%15 = reorder(%14) : f32[2,8,2,2] @ \"third.format.reorder\"\n"
    "output \"m\" %12\n"
    "output \"u\" %13\n"
    "output \"v\" %15\n";

static tri_graph *parse(const char *text) {
    tri_graph *g = tri_graph_parse(text, strlen(text), "test");
    if (tri_graph_status(g)) fail_msg("%s", tri_message());
    return g;
}

static void assert_text(const tri_graph *g, const char *want) {
    char *text = tri_graph_print(g);
    assert_string_equal(text, want);
    free(text);
}

static void blocks_follow_preferences(void **state) {
    tri_graph *g = parse(network);
    (void)state;
    assert_int_equal(format_choose(g, &target), TRI_OK);
    graph_verify(g);
    assert_text(g, laid);
    /* A tensor that has a format already keeps it, also after reading back. */
    assert_int_equal(format_choose(g, &target), TRI_OK);
    assert_text(g, laid);
    tri_graph_free(g);
    g = parse(laid);
    assert_text(g, laid);
    tri_graph_free(g);
}

static void no_preferences_no_change(void **state) {
    tri_graph *g = parse(network);
    char *before = tri_graph_print(g);
    (void)state;
    assert_int_equal(format_choose(g, NULL), TRI_OK);
    assert_int_equal(format_choose(g, &(struct target){0}), TRI_OK);
    assert_text(g, before);
    free(before);
    tri_graph_free(g);
}

/* ---- formats that devices take ---- */

/* Kernels that know only plain tensors are given no others. */
static void blocks_are_declined(void **state) {
    static const char text[] = "graph {batch=2}\n"
                               "%x = state() {name=\"x\", type=f32, shape=[2,8,3]}\n"
                               "%y = reorder(%x) : f32[2,8,3]/4\n"
                               "%z = softmax(%y) {axis=1} @ \"z\"\n";
    (void)state;
    for (int i = 0; dev_at(i); i++) {
        tri_graph *g = parse(text);
        assert_null(dev_at(i)->kind->declines(g->node[1]));
        assert_non_null(dev_at(i)->kind->declines(g->node[2]));
        tri_graph_free(g);
    }
}

/* ---- reorders on devices ---- */

static void run_reorder(struct dev *dev, tri_graph *g, const void *from, void *to) {
    tri_node *n = g->node[g->n_nodes - 1];
    struct unit u = {.node = &n, .n = 1, .in = n->in, .out = &(tri_tensor *){n->out}, .n_in = 1,
                     .n_out = 1};
    struct kernel k;
    struct tri_fault fault = {0};
    const char *why = dev->kind->declines(n);
    if (why) fail_msg("%s: %s", dev->kind->name, why);
    assert_int_equal(dev->kind->prepare(dev, &u, &k), TRI_OK);
    void *scratch = dev_allocate(dev, k.scratch + 1), *shared = dev_allocate(dev, k.shared + 1);
    tri_call c = {.node = n, .in = &from, .out = &to, .state = k.state, .scratch = scratch,
                  .shared = shared, .fault = &fault};
    for (c.part = 0; c.part < (k.parts ? k.parts : 1) + k.then; c.part++) k.run(&c);
    assert_false(fault.failed);
    dev_release(dev, scratch, k.scratch + 1);
    dev_release(dev, shared, k.shared + 1);
    if (k.release) k.release(k.state);
}

/* From one format to another, on every device: the same bytes as on the reference. */
static void reorders_agree(void **state) {
    static const struct {
        const char *type, *shape, *from, *to;
    } cases[] = {
        {"f32", "[2,48,5,7]", "", "/16"},
        {"f32", "[2,48,5,7]", "/16", ""},
        {"f32", "[2,48,5,7]", "/16", "/48"},
        {"f32", "[2,48,5,7]", "/8", "/16"},
        {"f32", "[3,33,17,19]", "", "/33"},
        {"f32", "[3,33,17,19]", "/33", "/11"},
        {"bf16", "[3,32,9,9]", "", "/8"},
        {"bf16", "[3,32,9,9]", "/8", "/32"},
        {"i32", "[2,24,3,3]", "/8", "/24"},
        {"bool", "[2,24,37]", "", "/8"},
        {"i64", "[2,24,2,3,2]", "/8", "/4"},
        {"f32", "[32,48,3,3]", "", "/\"ABcd16b16a\""},
        {"f32", "[32,48,3,3]", "/\"ABcd16a16b\"", ""},
        {"f32", "[64,3,7,7]", "", "/\"Acdb16a\""},
        {"bf16", "[64,64,3,3]", "", "/\"ABcd16b32a2b\""},
        {"i64", "[48,32,3,3]", "/\"Bcda16b\"", "/8"},
        {"bool", "[32,48,5]", "/\"ABc4b16a4b\"", "/\"cba\""},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "graph {batch=1}\n%%x = given() {of=0, type=%s, shape=%s} : %s%s%s\n"
                 "%%y = reorder(%%x) : %s%s%s\n", cases[i].type, cases[i].shape, cases[i].type,
                 cases[i].shape, cases[i].from, cases[i].type, cases[i].shape, cases[i].to);
        tri_graph *g = parse(text);
        size_t bytes = base_spec_bytes(&g->node[0]->out->spec);
        uint8_t *x = malloc(bytes), *want = calloc(bytes, 1), *y = calloc(bytes, 1);
        assert_true(x && want && y);
        for (size_t k = 0; k < bytes; k++) x[k] = (uint8_t)(k * 37 % 61);
        run_reorder(dev_find("ref"), g, x, want);
        for (int d = 0; dev_at(d); d++) {
            run_reorder(dev_at(d), g, x, y);
            if (memcmp(want, y, bytes))
                fail_msg("%s: other bytes on %s", text, dev_at(d)->kind->name);
        }
        free(x);
        free(y);
        free(want);
        tri_graph_free(g);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packs_are_read),
        cmocka_unit_test(offsets_match_the_text),
        cmocka_unit_test(equal_formats),
        cmocka_unit_test(blocks_follow_preferences),
        cmocka_unit_test(no_preferences_no_change),
        cmocka_unit_test(blocks_are_declined),
        cmocka_unit_test(reorders_agree),
    };
    return cmocka_run_group_tests_name("format", tests, NULL, NULL);
}
