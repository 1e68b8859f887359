/* SPDX-License-Identifier: Apache-2.0
 * The textual form of graphs: what is printed is read back, also what earlier versions printed;
 * messages for mistakes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <trireme.h>

#include "graph/graph.h"
#include "models/models.h"

static void assert_told(const char *part) {
    if (!strstr(tri_message(), part)) fail_msg("\"%s\" lacks \"%s\"", tri_message(), part);
    assert_null(strchr(tri_message(), '\n'));
}

static tri_graph *parse(const char *text) { return tri_graph_parse(text, strlen(text), "net.tri"); }

static void assert_round_trip(const tri_graph *g) {
    char *once = tri_graph_print(g);
    assert_non_null(once);
    tri_graph *again = parse(once);
    if (tri_graph_status(again)) fail_msg("%s", tri_message());
    graph_verify(again);
    char *twice = tri_graph_print(again);
    assert_string_equal(once, twice);
    free(once);
    free(twice);
    tri_graph_free(again);
}

static void test_zoo(void **state) {
    (void)state;
    for (int i = 0; model_at(i); i++) {
        tri_graph *g = tri_model_open(model_at(i)->name, 2);
        assert_int_equal(tri_graph_status(g), TRI_OK);
        graph_verify(g);
        assert_round_trip(g);
        if (i < 6) { /* the deeper ones add nothing */
            tri_minimize(g->loss, (tri_optimizer){.name = "adamw", .clip_norm = 1});
            assert_int_equal(tri_graph_status(g), TRI_OK);
            assert_round_trip(g);
        }
        tri_graph_free(g);
    }
}

/* Settings, ties, conditions, odd names and numbers survive printing and reading. */
static void test_round_trip(void **state) {
    (void)state;
    tri_graph *g = tri_graph_new(16);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(16, 3));
    tri_tensor *w = tri_param(g, "w \"\\\n%", TRI_SHAPE(3, 3), (tri_init){.a = 1.0 / 3});
    tri_tensor *s = tri_state(g, "s", TRI_I64, TRI_SCALAR, (tri_init){0});
    const float numbers[] = {1e-45f, -0.0f, 3.4028235e38f, 0.1f};
    tri_output(tri_array(g, TRI_F32, TRI_SHAPE(2, 2), numbers), "numbers");
    tri_output(tri_add(x, tri_constant(g, -1.0 / 7, TRI_F32)), "%d\t");
    tri_loss(tri_mean(tri_matmul(x, w), TRI_ALL));
    tri_output(g->loss, "again");
    tri_metric(g->loss, "metric");
    tri_assign_if(s, tri_add(s, s), tri_less(s, tri_constant(g, 3, TRI_I64)));
    tri_assign(w, tri_neg(w));
    tri_freeze(g, "*.x[ab]");
    tri_group_lr(g, "*", 0.1);
    tri_group_decay(g, "w*", 1e-300);
    tri_tie(w, "other");
    tri_recompute(g, "\\**");
    tri_tensor *dw;
    tri_grad(g->loss, &w, 1, &dw);
    tri_output(dw, "dw");
    tri_output(tri_neg(x), "after");
    tri_grad(tri_sum(dw, TRI_ALL), &x, 1, &dw);
    tri_output(dw, "second");
    assert_int_equal(tri_graph_status(g), TRI_OK);
    assert_round_trip(g);
    tri_graph_free(g);
}

#define TOP "graph {batch=4}\n"
#define X TOP "%x = input() {name=\"x\", type=f32, shape=[4,3]}\n"

static void test_parse_mistakes(void **state) {
    (void)state;
    static const struct {
        const char *text, *told;
    } rows[] = {
        {"", "net.tri:1: there is no \"graph {batch=N}\""},
        {"\n# nothing\n", "there is no \"graph {batch=N}\""},
        {"grap {batch=4}", "net.tri:1: the first line must be \"graph {batch=N}\""},
        {"graph {batch=0}", "net.tri:1: batch must be from 1 to"},
        {"graph {batch=9223372036854775808}", "net.tri:1: \"9223372036854775808\" is not a whole"},
        {"graph {size=4}", "net.tri:1: \"size\" is none of batch, lanes and mesh"},
        {"graph {batch=4", "net.tri:1: expected '}' before the end of the line"},
        {"graph {batch=2, lanes=3}", "net.tri:1: 3 lanes for a batch of 2"},
        {TOP "what", "net.tri:2: there is no statement \"what\""},
        {TOP "!", "net.tri:2: expected a statement"},
        {TOP "%x = inputt()", "net.tri:2: there is no operator inputt"},
        {X "%y = relu(%z)", "net.tri:3: %z is not defined above"},
        {X "%y = relu(%x", "net.tri:3: expected ')'"},
        {X "%y = relu(%x) extra", "net.tri:3: unexpected text at the end of the line"},
        {X "%x = relu(%x)", "net.tri:3: %x is defined twice"},
        {X "%y, %z = relu(%x)", "net.tri:3: operator relu gives 1 results, not 2"},
        {X "%y = relu(%x, %x)", "net.tri:3: operator relu takes 1 input, not 2"},
        {X "%y = softmax(%x)", "net.tri:3: operator softmax: attribute axis must be given"},
        {X "%y = softmax(%x) {axis=2}", "net.tri:3: softmax (softmax f32[4,3]): axis is 2"},
        {X "%y = softmax(%x) {axis=1, axis=1}", "net.tri:3: attribute axis is given twice"},
        {X "%y = softmax(%x) {axes=1}", "net.tri:3: operator softmax has no attribute axes"},
        {X "%y = softmax(%x) {axis=one}", "net.tri:3: \"one\" is not a whole number"},
        {X "%y = sum(%x) {axes=[2]}", "net.tri:3: sum (sum f32[4,3]): axes: 2"},
        {X "%y = cast(%x) {to=f31}", "net.tri:3: \"f31\" is not a type"},
        {X "%y = relu(%x) : f32[4,4]", "net.tri:3: %y is declared as f32[4,4], but is f32[4,3]"},
        {X "%y = relu(%x) : f32[4,3], f32[1]", "net.tri:3: there are 2 types for 1 results"},
        {X "%y = reshape(%x) {shape=[1,1,1,1,1,1,1,1,12]}", "net.tri:3: a list has at most 8"},
        {X "%y = reshape(%x) {shape=[4611686018427387904,4]}", "net.tri:3: reshape"},
        {X "%y = pad(%x) {before=[0,9223372036854775807], after=[0,1]}", "net.tri:3: pad"},
        {X "%y = expand(%x) {shape=[1000000,1000000,4,3]}", "net.tri:3: expand"},
        {X "\n\n%y = input() {name=\"x\", type=f32, shape=[4]}", "net.tri:5: the name \"x\""},
        {X "%y = param() {name=\"\", shape=[]}", "net.tri:3: the name is empty"},
        {X "%y = param() {name=\"w, shape=[]}", "net.tri:3: expected '\"'"},
        {X "%y = param() {name=\"w\", shape=[], init=\"norml(0,1)\"}", "net.tri:3: param"},
        {X "%y = param() {name=\"w\", shape=[], init=\"normal(,)\"}", "net.tri:3: param"},
        {X "%y = constant() {value=0.5, type=i64}", "net.tri:3: constant (constant): i64 cannot"},
        {X "loss \"loss\" %x", "net.tri:3: the loss must be one floating-point number"},
        {X "output \"y\" %x\noutput \"y\" %x", "net.tri:4: there are two outputs named \"y\""},
        {X "output y %x", "net.tri:3: expected a name between double quotes"},
        {X "output \"=7\" %x\noutput \"=7\" %x", "net.tri:4: there are two outputs named \"=7\""},
        {X "output \"=x\" %x", "net.tri:3: an output's name is \"=x\""},
        {X "metric \"=7\" %x", "net.tri:3: a metric must be one floating-point number"},
        {X "assign %x %x", "net.tri:3: tri_assign: the target must be a parameter or a state"},
        {X "assign %x %x iff %x", "net.tri:3: expected \"if\", found \"iff\""},
        {X "tie \"y\" %x", "net.tri:3: only parameters can be tied"},
        {X "lr \"*\" fast", "net.tri:3: \"fast\" is not a number"},
        {X "recompute *", "net.tri:3: expected a pattern between double quotes"},
        {X "forward", "net.tri:3: \"forward\" without \"backward\" before it"},
        {X "backward\n%y = relu(%x)\nbackward", "net.tri:5: \"backward\" within \"backward\""},
        {X "gradient %x %x", "net.tri:3: tri_grad did not make input"},
        {X "backward\n%y = relu(%x)\ngradient %x %y, %x %x",
         "net.tri:5: tri_grad did not make input"},
        {X "backward\n%y = relu(%x)\ngradient %x %y, %x", "net.tri:5: expected"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        tri_graph *g = parse(rows[i].text);
        assert_non_null(g);
        if (tri_graph_status(g) != TRI_USAGE) fail_msg("this is taken: %s", rows[i].text);
        assert_told(rows[i].told);
        assert_int_equal(strncmp(tri_message(), "net.tri:", 8), 0);
        tri_graph_free(g);
    }
}

/* Optional parts may be missing; comments and blank lines do not count. */
static void test_parse(void **state) {
    (void)state;
    tri_graph *g = parse("# a comment\n\n graph { batch = 4 , lanes = 2 } # another\r\n"
                         "\t%x = input() { name = \"x\" , type = f32, shape = [ 4, 3 ] }\n"
                         "%y=softmax(%x){axis=-1}@\"own\"\noutput\"y\"%y");
    assert_int_equal(tri_graph_status(g), TRI_OK);
    tri_tensor *y = tri_find(g, "y");
    assert_non_null(y);
    assert_string_equal(tri_name_of(y), "own");
    assert_int_equal(tri_batch(g), 4);
    assert_int_equal(g->lanes, 2);
    assert_int_equal(tri_attr_int(tri_node_of(y), "axis"), -1);
    assert_round_trip(g);
    tri_graph_free(g);
    assert_null(tri_graph_read("/nonexistent/net.tri", 0));
    assert_told("/nonexistent/net.tri");
}

/* A phase of a step, as `dump --after phases` prints it, is read back and does not run. */
static void test_phase(void **state) {
    (void)state;
    static const struct {
        const char *text, *told;
    } rows[] = {{X "output \"=13\" %x\noutput \"x\" %x\n",
                 "output \"=13\": the network is one phase"},
                {TOP "%x = given() {of=13, type=f32, shape=[4]} @ \"given_3\"\noutput \"x\" %x\n",
                 "given_3: the network is one phase"}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        tri_graph *g = parse(rows[i].text);
        assert_int_equal(tri_graph_status(g), TRI_OK);
        assert_round_trip(g);
        assert_int_equal(g->n_outputs, 2 - i);
        if (!i) assert_int_equal(graph_output_of(g, 13)->of, 13);
        assert_null(tri_open(g, &(tri_options){.forward = true}));
        assert_told(rows[i].told);
    }
}

/* What earlier versions printed after conv. Plan files have a hash of the undivided text. */
static void test_earlier(void **state) {
    (void)state;
    static const char text[] =
        TOP "%0 = input() {name=\"x\", type=f32, shape=[4,32,8,8]}\n"
        "%1 = param() {name=\"w\", shape=[32,32,3,3]}\n"
        "%2 = conv2d(%0, %1) {pad=[1,1], winograd=1} : f32[4,32,8,8] @ \"c.conv2d\"\n"
        "%3 = conv2d_dx(%2, %1, %0) {pad=[1,1], winograd=4}\noutput \"y\" %3\n";
    tri_graph *g = parse(text);
    assert_int_equal(tri_graph_status(g), TRI_OK);
    assert_int_equal(tri_attr_int(g->node[2], "way"), 1);
    assert_int_equal(tri_attr_int(g->node[3], "way"), 4);
    char *now = tri_graph_print(g), *hashed = graph_print_undivided(g);
    assert_non_null(strstr(now, "{pad=[1,1], way=1}"));
    assert_non_null(strstr(hashed, "{pad=[1,1], winograd=4}"));
    assert_null(strstr(hashed, "way"));
    free(now);
    free(hashed);
    assert_round_trip(g);
    tri_graph_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zoo),   cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_parse), cmocka_unit_test(test_parse_mistakes),
        cmocka_unit_test(test_phase), cmocka_unit_test(test_earlier),
    };
    return cmocka_run_group_tests_name("graph_text", tests, NULL, NULL);
}
