/* SPDX-License-Identifier: Apache-2.0
 * Chains of elementwise operators against the same operators one by one: random graphs, with shapes
 * around the borders of tiles and rows, operands broadcast in every way, all types, results used
 * inside, outside or both; alone, or after a product or a norm. The bits are the same, with one
 * thread and with several. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "machine/budget.h"
#include "run/run.h"

#define MOST 40
#define HEADED 1000 /* seeds from here on: after another operator */

struct net {
    tri_graph *g;
    uint64_t key, drawn;
    tri_shape shape;
    tri_tensor *value[MOST];
    int n, states;
};

static int draw(struct net *t, int below) {
    return (int)(random_uniform(t->key, 0, t->drawn++) * below);
}

static const tri_shape shapes[] = {
    {1, {1}},           {1, {1030}},       {2, {3, 1025}},     {2, {700, 7}},   {2, {5, 300}},
    {4, {2, 3, 5, 7}},  {4, {2, 8, 17, 16}}, {3, {4, 33, 60}},  {2, {64, 1024}}, {4, {3, 2, 40, 9}},
    {2, {130, 255}},    {3, {2, 2, 2048}}, {2, {1, 4099}},     {0, {0}},        {2, {900, 84}},
};

/* Some dimensions of length 1, or missing at the front. */
static tri_shape operand_shape(struct net *t) {
    tri_shape s = t->shape;
    int kind = draw(t, 4);
    if (kind == 0) return s;
    if (kind == 1) return (tri_shape){0, {0}};
    for (int d = 0; d < s.rank; d++)
        if (draw(t, 2)) s.dim[d] = 1;
    int first = kind == 2 && s.rank ? draw(t, s.rank) : 0;
    tri_shape cut = {.rank = s.rank - first};
    for (int d = first; d < s.rank; d++) cut.dim[d - first] = s.dim[d];
    return cut;
}

static tri_tensor *state(struct net *t, tri_type type, tri_shape shape) {
    char name[16];
    snprintf(name, sizeof name, "s%d", t->states++);
    tri_tensor *s = tri_state(t->g, name, TRI_F32, shape,
                              (tri_init){.kind = TRI_UNIFORM, .a = -3, .b = 3});
    return type == TRI_F32 ? s : tri_cast(s, type);
}

static tri_tensor *pick(struct net *t, tri_type type) {
    for (int tries = 0; tries < 4; tries++) {
        tri_tensor *v = t->value[draw(t, t->n)];
        if (tri_type_of(v) == type) return v;
    }
    return state(t, type, operand_shape(t));
}

static bool full(const struct net *t, const tri_tensor *v) {
    tri_shape s = tri_shape_of(v);
    return base_shape_equal(&s, &t->shape);
}

static tri_tensor *grow(struct net *t) {
    static tri_tensor *(*const one[])(tri_tensor *) = {
        (tri_neg), (tri_exp), (tri_abs), (tri_relu), (tri_gelu), (tri_tanh), (tri_sigmoid)};
    static tri_tensor *(*const two[])(tri_tensor *, tri_tensor *) = {
        (tri_add), (tri_sub), (tri_mul), (tri_maximum), (tri_minimum)};
    static const tri_type types[] = {TRI_F32, TRI_F32, TRI_F32, TRI_BF16, TRI_F16, TRI_I32,
                                     TRI_I64, TRI_U8};
    tri_tensor *a = t->value[draw(t, t->n)];
    tri_type type = tri_type_of(a);
    bool real = type == TRI_F32 || type == TRI_BF16 || type == TRI_F16;
    switch (draw(t, 8)) {
    case 0:
        return type == TRI_BOOL ? tri_not(a) : one[real ? draw(t, (int)COUNT(one)) : 0](a);
    case 1:
        return tri_cast(a, types[draw(t, (int)COUNT(types))]);
    case 2:
        return type == TRI_BOOL ? tri_and(a, pick(t, type)) : tri_greater(a, pick(t, type));
    case 3:
        return tri_where(pick(t, TRI_BOOL), a, pick(t, type));
    case 4:
        return full(t, a) ? a : tri_expand(a, t->shape);
    default:
        if (type == TRI_BOOL) return tri_or(a, pick(t, type));
        return two[draw(t, (int)COUNT(two))](a, draw(t, 6) ? pick(t, type) : a);
    }
}

static const struct product {
    tri_shape a, b;
    bool trans_a, trans_b;
} products[] = {
    {{2, {300, 200}}, {2, {200, 700}}, false, false},
    {{2, {200, 300}}, {2, {200, 700}}, true, false},
    {{3, {2, 150, 96}}, {2, {1100, 96}}, false, true},
    {{3, {5, 70, 200}}, {3, {5, 200, 300}}, false, false},
    {{2, {9, 40}}, {2, {40, 30}}, false, false},      {{2, {3, 4}}, {2, {4, 5}}, false, false},
    {{2, {100, 300}}, {2, {700, 300}}, false, true},  {{2, {600, 64}}, {2, {64, 33}}, false, false},
};

static tri_tensor *product(struct net *t) {
    const struct product *p = &products[draw(t, (int)COUNT(products))];
    tri_tensor *a = state(t, TRI_F32, p->a), *b = state(t, TRI_F32, p->b);
    return tri_matmul(a, b, .trans_a = p->trans_a, .trans_b = p->trans_b);
}

/* In blocks of channels after a convolution, or plain. */
static tri_tensor *norm(struct net *t) {
    static const tri_shape x[] = {{4, {3, 16, 20, 31}}, {4, {2, 64, 9, 9}}, {4, {2, 5, 70, 90}}};
    tri_shape s = x[draw(t, (int)COUNT(x))], c = {1, {s.dim[1]}},
              w = {4, {s.dim[1], s.dim[1], 1, 1}};
    tri_tensor *v[4], *y = state(t, TRI_F32, s);
    static const char *const names[] = {"gamma", "beta", "mean", "var"};
    for (int i = 0; i < 4; i++)
        v[i] = tri_state(t->g, names[i], TRI_F32, c,
                         (tri_init){.kind = TRI_UNIFORM, .a = 1, .b = 3});
    if (draw(t, 2)) y = tri_conv2d(y, state(t, TRI_F32, w));
    return tri_batch_norm(y, v[0], v[1], v[2], v[3]);
}

/* Rows with no, one or several of the ids. */
static tri_tensor *scatter(struct net *t) {
    static const tri_shape table[] = {
        {2, {301, 170}}, {1, {9000}}, {2, {5, 5000}}, {3, {40, 3, 90}}};
    static const tri_type types[] = {TRI_F32, TRI_F32, TRI_BF16};
    tri_shape rows = table[draw(t, (int)COUNT(table))], dy = rows;
    tri_type type = types[draw(t, (int)COUNT(types))];
    dy.dim[0] = 40;
    tri_tensor *ids = tri_state(t->g, "ids", TRI_F32, (tri_shape){1, {40}},
                                (tri_init){.kind = TRI_UNIFORM, .a = 0,
                                           .b = (double)rows.dim[0] - 0.01});
    tri_tensor *x = state(t, type, dy);
    if (draw(t, 2)) x = tri_neg(tri_relu(x)); /* -0 */
    tri_tensor *in[] = {x, tri_cast(ids, TRI_I64), state(t, type, rows)};
    return tri_apply(t->g, "gather_grad", in, 3, NULL, 0);
}

static tri_tensor *begin(struct net *t, bool head) {
    static tri_tensor *(*const of[])(struct net *) = {product, norm, scatter};
    tri_tensor *y = head ? of[draw(t, (int)COUNT(of))](t) : state(t, TRI_F32, t->shape);
    t->shape = tri_shape_of(y);
    return y;
}

static tri_graph *build(uint64_t seed) {
    struct net t = {.g = tri_graph_new(1), .key = random_key(seed, 1)};
    t.shape = shapes[draw(&t, (int)COUNT(shapes))];
    int length = 3 + draw(&t, 24);
    t.value[0] = begin(&t, seed >= HEADED);
    t.n = 1;
    while (t.n < length) {
        tri_tensor *v = grow(&t);
        t.value[t.n++] = v;
    }
    char name[16];
    for (int i = 1; i < t.n; i++)
        if (i == t.n - 1 || !draw(&t, 4)) {
            snprintf(name, sizeof name, "y%d", i);
            tri_tensor *y = t.value[i];
            tri_output(tri_type_of(y) == TRI_F32 ? y : tri_cast(y, TRI_F32), name);
            if (tri_type_of(y) != TRI_F32) { /* the tensor itself, in its format */
                snprintf(name, sizeof name, "z%d", i);
                tri_output(y, name);
            }
        }
    return t.g;
}

static const char *const heads[] = {"matmul", "batch_norm", "gather_grad"};

/* All outputs as stored, one after the other. units: adds the number of units that begin with each
 * head, or of all. */
static char *run(uint64_t seed, const char *passes, int threads, size_t *bytes, int *units) {
    tri_options o = {.forward = true, .passes = passes, .threads = threads, .seed = 3};
    tri_run *run = tri_open(build(seed), &o);
    if (!run || tri_forward(run)) fail_msg("seed %d: %s", (int)seed, tri_message());
    *bytes = 0;
    for (int i = 0; i < run->machine->n_outputs; i++)
        *bytes += base_spec_bytes(&run->machine->output[i].spec);
    char *all = malloc(*bytes + 1), *at = all;
    assert_non_null(all);
    for (int i = 0; i < run->machine->n_outputs; i++) {
        size_t n = base_spec_bytes(&run->machine->output[i].spec);
        assert_int_equal(tri_read(run, run->machine->output[i].name, at, n), TRI_OK);
        at += n;
    }
    for (size_t i = 0; i < run->machine->step.n_items; i++) {
        const struct unit *u = run->machine->step.item[i].unit;
        for (size_t k = 0; k < COUNT(heads); k++)
            units[k] += u->n > 1 && (seed < HEADED || node_is(u->node[0], heads[k]));
    }
    assert_int_equal(tri_close(run), TRI_OK);
    return all;
}

/* Returns the least number of units with the same head. */
static int compare(uint64_t first, uint64_t end, const char *apart, const char *together) {
    int units[COUNT(heads)] = {0}, least = INT_MAX;
    for (uint64_t seed = first; seed < end; seed++) {
        size_t a_bytes, b_bytes;
        int none[COUNT(heads)] = {0};
        char *a = run(seed, apart, 1, &a_bytes, none);
        for (size_t k = 0; k < COUNT(heads); k++) assert_int_equal(none[k], 0);
        char *b = run(seed, together, 1 + (int)seed % 3, &b_bytes, units);
        assert_int_equal(a_bytes, b_bytes);
        if (memcmp(a, b, a_bytes)) fail_msg("seed %d: other bits in units", (int)seed);
        free(a);
        free(b);
    }
    for (size_t k = 0; k < COUNT(heads); k++) {
        print_message("%d units of %s\n", units[k], first < HEADED ? "all" : heads[k]);
        if (units[k] < least) least = units[k];
    }
    return least;
}

static void same_bits(void **unused) {
    (void)unused;
    assert_true(compare(0, 400, "-all", "-all,+fuse") > 400);
}

static void same_bits_after_an_operator(void **unused) {
    (void)unused;
    assert_true(compare(HEADED, HEADED + 120, "-all,+format", "-all,+format,+fuse") > 20);
}

/* A table whose gradient and update are one unit is overwritten, not copied: its contents are not
 * read for the gradient. */
static void a_table_is_updated_in_place(void **unused) {
    enum { ROWS = 20000, WIDTH = 128 };
    (void)unused;
    tri_graph *g = tri_graph_new(4);
    tri_tensor *table = tri_param(g, "table", (tri_shape){2, {ROWS, WIDTH}},
                                  (tri_init){.kind = TRI_UNIFORM, .a = -1, .b = 1});
    tri_tensor *ids = tri_state(g, "ids", TRI_F32, (tri_shape){1, {4}}, (tri_init){0});
    tri_tensor *rows = tri_gather(table, tri_cast(ids, TRI_I64));
    tri_loss(tri_mean(tri_mul(rows, rows), TRI_ALL));
    tri_run *run = tri_open(g, &(tri_options){.lanes = 1, .threads = 1, .optimizer.name = "sgd"});
    if (!run || !tri_step(run)) fail_msg("%s", tri_message());
    struct budget b = budget_of(run->machine, &run->store);
    size_t arena = b.arena + b.shared;
    assert_true(arena < ROWS * WIDTH * sizeof(float));
    assert_int_equal(tri_close(run), TRI_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits),
                                       cmocka_unit_test(same_bits_after_an_operator),
                                       cmocka_unit_test(a_table_is_updated_in_place)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
