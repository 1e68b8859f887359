/* SPDX-License-Identifier: Apache-2.0
 * Names of factors: every row of the table has one for each factor, and mistakes in a row. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check/trial.h"
#include "plan/strategy.h"

/* Marks the factors of the operands. */
static void mark(const struct factor_operand *o, int n, bool *present) {
    for (int i = 0; i < n; i++)
        for (int d = 0; d < o[i].rank; d++)
            for (int k = 0; k < o[i].dim[d].n; k++) present[o[i].dim[d].f[k]] = true;
}

static void check_names(const tri_node *n, const char *example) {
    struct factors f;
    bool present[MAX_FACTORS] = {false};
    if (!factors_of(n, &f)) fail_msg("%s", tri_message());
    mark(f.in, f.n_in, present);
    mark(f.out, f.n_out, present);
    for (int c = 1; c < MAX_FACTORS; c++) {
        const char *name = factor_name(n, &f, (uint8_t)c);
        if (!present[c] && name) fail_msg("%s: factor %d is absent, but named", example, c);
        if (!present[c]) continue;
        if (!name) fail_msg("%s, \"%s\": factor %d has no name", n->entry->op->name, example, c);
        if (factor_named(n, &f, name) != c)
            fail_msg("%s, \"%s\": two factors are named %s", n->entry->op->name, example, name);
    }
    assert_int_equal(factor_named(n, &f, "bananas"), 0);
    factors_free(&f);
}

static void every_row(void **state) {
    (void)state;
    for (int i = 0; registry_at(i); i++) {
        const tri_op *op = registry_at(i)->op;
        for (int k = 0; op->examples[k]; k++) {
            struct example e;
            struct trial t;
            if (!op->factors && !op->factor_fn && !op->samplewise) continue;
            assert_int_equal(example_read(op, op->examples[k], &e), TRI_OK);
            if (trial_begin(&e, 1, &t)) fail_msg("%s", tri_message());
            if (e.n) check_names(t.node, op->examples[k]);
            trial_free(&t);
        }
    }
}

/* The name of a letter (or 128 and more) of an example. */
static void expect(const char *row, const char *example, int c, const char *name) {
    struct example e;
    struct trial t;
    struct factors f;
    assert_int_equal(example_read(tri_op_find(row), example, &e), TRI_OK);
    if (trial_begin(&e, 1, &t)) fail_msg("%s", tri_message());
    assert_true(factors_of(t.node, &f));
    const char *is = factor_name(t.node, &f, (uint8_t)c);
    if (!is || strcmp(is, name)) fail_msg("%s: %d is %s, not %s", row, c, is ? is : "-", name);
    factors_free(&f);
    trial_free(&t);
}

static void documented(void **state) {
    (void)state;
    expect("matmul", "f32[3,4], f32[4,5]", 'm', "rows");
    expect("matmul", "f32[3,4], f32[4,5]", 'k', "in");
    expect("matmul", "f32[3,4], f32[4,5]", 'n', "out");
    expect("matmul", "f32[2,3,4], f32[4,5]", 129, "batch");
    expect("matmul", "f32[2,6,3,4], f32[2,6,4,5]", 129, "heads");
    expect("matmul", "f32[2,6,3,4], f32[2,6,4,5]", 130, "batch");
    expect("conv2d", "f32[2,3,5,6], f32[4,3,3,3]", 'i', "in");
    expect("conv2d", "f32[2,3,5,6], f32[4,3,3,3]", 'n', "batch");
    expect("attention", "f32[2,4,12] {head=2, scale=0.7}", 'h', "heads");
    expect("gather", "f32[5,3], i64[2,4]@0:5", 'a', "vocab");
    expect("gather", "f32[5,3], i64[2,4]@0:5", 'b', "features");
    expect("gather", "f32[5,3], i64[2,4]@0:5", 'j', "seq");
    expect("add", "f32[4], f32[2,3,4]", 129, "features");
    expect("add", "f32[4], f32[2,3,4]", 130, "seq");
    expect("sum", "f32[2,3,4,5] {axes=[1]}", 'c', "height");
    expect("layer_norm", "f32[2,3,5], f32[5]@0.5:2, f32[5]", 'b', "seq");
    expect("batch_norm", "f32[2,3,5], f32[3]@0.5:2, f32[3], f32[3], f32[3]@0.5:2", 'b', "features");
    expect("cross_entropy", "f32[2,3,7]@-3:3, i32[2,3]@0:7", 'k', "vocab");
}

static int own_infer(const tri_node *n, tri_spec *out) {
    out[0] = n->in[0]->spec;
    return 1;
}

static void refuse(const char *names, const char *follows, const char *word) {
    static const char *const examples[] = {"f32[2,3]", NULL};
    tri_op op = {.name = "own", .inputs = 1, .attributes = "first:int=0 p:float=0",
                 .infer = own_infer, .gradient = tri_grad_none, .factors = "mn->mn",
                 .examples = examples, .names = names, .follows = follows};
    assert_int_equal(tri_register(&op), TRI_USAGE);
    if (!strstr(tri_message(), word)) fail_msg("%s", tri_message());
}

static void malformed(void **state) {
    (void)state;
    refuse("m", NULL, "names \"m\"");
    refuse("m:", NULL, "names \"m:\"");
    refuse("M:rows", NULL, "names");
    refuse("m:rows,", NULL, "names");
    refuse("m:rows,cols", NULL, "names");
    refuse("m:a_name_of_16_char", NULL, "names");
    refuse("mn:rows", NULL, "names");
    refuse(NULL, "first", "follows \"first\"");
    refuse(NULL, "first=begin", "follows");
    refuse(NULL, "first=begin:M", "follows");
    refuse(NULL, "first=start:m", "follows");
    refuse(NULL, "last=begin:m", "follows");
    refuse(NULL, "p=begin:m", "follows");
    refuse(NULL, "first=begin:mn", "follows");
}

static void has(const char *list, const char *line) {
    if (!strstr(list, line)) fail_msg("\"%s\" is not in\n%s", line, list);
}

static void listed(void **state) {
    (void)state;
    char *list = factors_list();
    if (!list) fail_msg("%s", tri_message());
    if (getenv("SHOW")) fputs(list, stderr);
    has(list, "...mk,...kn->...mn");
    has(list, "k in (summed), m rows, n out\n");
    free(list);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row), cmocka_unit_test(documented),
                                       cmocka_unit_test(malformed), cmocka_unit_test(listed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
