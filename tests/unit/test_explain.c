/* SPDX-License-Identifier: Apache-2.0
 * What explain says of published cases, and that the expanded lane moves what it lists. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <trireme.h>

#include "models/models.h"
#include "plan/explain.h"
#include "plan/passes.h"

/* The lane of a network, after `last`. */
struct planned {
    tri_graph *model;
    tri_options options;
    struct compilation c;
    const struct dist *d;
};

static void plan(struct planned *p, tri_graph *g, tri_options o, const char *last) {
    *p = (struct planned){.model = g, .options = o};
    if (!o.lanes) p->options.lanes = 1;
    p->c = (struct compilation){.options = &p->options, .model = g};
    if (tri_graph_status(g) || passes_run(&p->c, last)) fail_msg("%s", tri_message());
    p->d = &p->c.dist[0];
}

static void release(struct planned *p) {
    passes_free(&p->c);
    tri_graph_free(p->model);
}

/* "all-gather", as often as moves of that time are of that kind: "all-gather reduce-scatter". */
static const char *moves(const struct planned *p, enum move_when when) {
    static char text[512];
    size_t n = 0;
    *text = 0;
    for (size_t i = 0; i < p->d->n_moves; i++) {
        const struct move *m = &p->d->move[i];
        if (move_when(p->d, m) != when) continue;
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? " " : "",
                              move_kinds[move_kind(&p->d->mesh, m)]);
    }
    return text;
}

/* The kinds and bytes of the moves in which a tensor or reader of the block takes part. */
static void block_moves(const struct planned *p, const char *block, enum move_when when,
                        int n[MOVE_KINDS], size_t bytes) {
    memset(n, 0, sizeof(int) * MOVE_KINDS);
    for (size_t i = 0; i < p->d->n_moves; i++) {
        const struct move *m = &p->d->move[i];
        if (move_when(p->d, m) != when) continue;
        bool inside = strstr(explain_tensor(p->d, m)->node->name, block) ||
                      strstr(p->d->g->node[m->node]->name, block);
        if (!inside) continue;
        n[move_kind(&p->d->mesh, m)]++;
        assert_int_equal(m->bytes, bytes);
    }
}

static void assert_shape(tri_shape s, tri_shape right) {
    if (!base_shape_equal(&s, &right))
        fail_msg("the slice is [%d,%d,%d,%d]", (int)s.dim[0], (int)s.dim[1], (int)s.dim[2],
                 (int)s.dim[3]);
}

static tri_tensor *weight(tri_graph *g, const char *name, tri_shape shape) {
    return tri_param(g, name, shape, (tri_init){.kind = TRI_HE_NORMAL});
}

/* ---- published cases ---- */

/* Rows, then columns: the rows are gathered once. */
static void test_two_products(void **state) {
    (void)state;
    struct planned p;
    tri_graph *g = tri_graph_new(8);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(8, 16));
    tri_mesh(g, "4");
    tri_tensor *y = tri_matmul(x, weight(g, "w", TRI_SHAPE(16, 32)));
    tri_shard(y, "(4,1),(1,1)");
    tri_tensor *z = tri_matmul(y, weight(g, "v", TRI_SHAPE(32, 16)));
    tri_shard(z, "(1,1),(1,4)");
    tri_tensor *loss = tri_mean(z, TRI_ALL);
    tri_loss(loss);
    tri_minimize(loss, (tri_optimizer){.lr = 0.1});
    plan(&p, g, (tri_options){0}, "dist");
    assert_string_equal(moves(&p, MOVE_FORWARD), "all-gather");
    release(&p);
}

/* Partial sums that rows need: scattered forward; their derivative is gathered backward, for x is
 * split over its columns: x is the data, or another product. */
static void test_product_and_relu(void **state) {
    (void)state;
    for (int two = 0; two < 2; two++) {
        struct planned p;
        tri_graph *g = tri_graph_new(8);
        tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(8, 16));
        tri_mesh(g, "2");
        if (two) x = tri_matmul(x, weight(g, "v", TRI_SHAPE(16, 16)));
        if (two) tri_shard(x, "(1,1),(1,2)");
        tri_tensor *y = tri_matmul(x, weight(g, "w", TRI_SHAPE(16, 32)));
        tri_shard(y, "(1,2),(2,1)");
        y = tri_relu(y);
        tri_shard(y, "(2,1)");
        tri_tensor *loss = tri_mean(y, TRI_ALL);
        tri_loss(loss);
        tri_minimize(loss, (tri_optimizer){.lr = 0.1});
        plan(&p, g, (tri_options){0}, "dist");
        assert_string_equal(moves(&p, MOVE_FORWARD), "reduce-scatter");
        assert_string_equal(moves(&p, MOVE_BACKWARD), "all-gather");
        release(&p);
    }
}

/* 1024 seats, from a product and what reads it. */
static double plan_large(struct planned *p, const char *tuples) {
    tri_graph *g = tri_graph_new(2);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(2, 4, 8, 16));
    tri_mesh(g, "1024");
    tri_tensor *y = tri_matmul(x, tri_input(g, "w", TRI_F32, TRI_SHAPE(2, 4, 16, 32)));
    tri_shard(y, tuples);
    tri_output(tri_relu(y), "y");
    double begin = base_seconds();
    plan(p, g, (tri_options){.forward = true}, "dist");
    return base_seconds() - begin;
}

static void test_1024_seats(void **state) {
    (void)state;
    struct planned p;
    double seconds = plan_large(&p, "(2,4,8,16),(2,4,16,1)");
    assert_int_equal(mesh_seats(&p.d->mesh), 1024);
    assert_string_equal(moves(&p, MOVE_FORWARD), "all-reduce");
    const tri_tensor *y = explain_tensor(p.d, &p.d->move[0]);
    assert_shape(explain_slice(p.d, y, &p.d->has[y->id], NULL), TRI_SHAPE(1, 1, 1, 32));
    assert_true(seconds < 0.1);
    release(&p);
    seconds = plan_large(&p, "(2,4,8,1),(2,4,1,16)");
    assert_string_equal(moves(&p, MOVE_FORWARD), "");
    y = p.d->g->node[p.d->g->n_nodes - 1]->out;
    assert_shape(explain_slice(p.d, y, &p.d->has[y->id], NULL), TRI_SHAPE(1, 1, 1, 2));
    assert_true(seconds < 0.1);
    release(&p);
}

/* ---- convolutions by height ---- */

/* Each of the two seats needs one row of the other's: for the second convolution forward, for the
 * derivative by its input backward. */
static void test_height(void **state) {
    (void)state;
    struct planned p;
    tri_graph *g = tri_graph_new(2);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(2, 16, 8, 8));
    tri_mesh(g, "2");
    for (int i = 0; i < 2; i++) {
        x = tri_conv2d(x, weight(g, i ? "second" : "first", TRI_SHAPE(16, 16, 3, 3)), .pad = 1);
        tri_shard(x, "(1,1,2,1),(1,1,1,1)");
    }
    tri_loss(tri_mean(x, TRI_SHAPE(0, 1, 2, 3)));
    plan(&p, g, (tri_options){0}, "dist");
    assert_string_equal(moves(&p, MOVE_FORWARD), "halo exchange");
    assert_string_equal(moves(&p, MOVE_BACKWARD), "halo exchange");
    const struct move *m = &p.d->move[0];
    assert_int_equal(m->bytes, 2 * 2 * 16 * 8 * 4);
    tri_shape slice = explain_slice(p.d, explain_tensor(p.d, m), &m->to, NULL);
    assert_int_equal(slice.dim[2], 5);
    release(&p);
}

/* ---- a user's operator without factors ---- */

static int same_infer(const tri_node *n, tri_spec *out) {
    out[0] = n->in[0]->spec;
    return 1;
}

static void assert_warning(const struct planned *p, const struct target *target,
                           const tri_node *n, const char *right) {
    struct text t = {0};
    explain_warning(p->d, target, n, &t);
    assert_string_equal(t.data ? t.data : "", right);
    text_free(&t);
}

#define LOST "a seat's channels are no multiple of 8, so that it leaves the fast kernels"

/* It is computed whole, and its input is gathered; explain says so. */
static void test_without_factors(void **state) {
    (void)state;
    static const char *const examples[] = {"f32[2,3]", NULL};
    static const tri_op row = {.name = "opaque", .inputs = 1, .infer = same_infer,
                               .gradient = tri_grad_none, .examples = examples};
    struct planned p;
    if (tri_register(&row)) fail_msg("%s", tri_message());
    tri_graph *g = tri_graph_new(8);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(8, 16));
    tri_mesh(g, "2");
    tri_tensor *y = tri_matmul(x, weight(g, "w", TRI_SHAPE(16, 32)));
    tri_shard(y, "(1,1),(1,2)");
    tri_output(tri_apply(g, "opaque", &y, 1, NULL, 0), "y");
    plan(&p, g, (tri_options){.forward = true}, "dist");
    assert_string_equal(moves(&p, MOVE_FORWARD), "all-gather");
    const tri_node *n = p.d->g->node[p.d->move[0].node];
    assert_warning(&p, NULL, n, "its row does not say how it may be split: it is computed whole, "
                   "and its inputs are gathered");
    release(&p);
}

static void blocks_of_8(const tri_node *n, struct format *in, struct format *out) {
    if (!node_is(n, "conv2d")) return;
    in[0].block = n->in[0]->spec.shape.dim[1] % 8 ? 0 : 8;
    out[0].block = n->out->spec.shape.dim[1] % 8 ? 0 : 8;
}

/* Blocks are what the target wants: without one, none are lost. */
static void test_blocks(void **state) {
    (void)state;
    static const struct target target = {.formats = blocks_of_8};
    struct planned p;
    tri_graph *g = tri_graph_new(8);
    tri_tensor *y = tri_input(g, "x", TRI_F32, TRI_SHAPE(8, 16, 4, 4));
    tri_mesh(g, "2");
    static const struct {
        const char *weight, *shard, *right;
        int64_t channels;
    } conv[] = {{"u", "(1,1,1,1),(2,1,1,1)", "", 16},
                {"v", "(1,1,1,1),(2,1,1,1)", LOST, 24},
                {"w", "(1,2,1,1),(1,2,1,1)", LOST, 12}};
    for (size_t i = 0; i < COUNT(conv); i++) {
        tri_shape shape = TRI_SHAPE(conv[i].channels, y->spec.shape.dim[1], 1, 1);
        y = tri_conv2d(y, weight(g, conv[i].weight, shape));
        tri_shard(y, conv[i].shard);
    }
    tri_output(y, "y");
    plan(&p, g, (tri_options){.forward = true}, "dist");
    size_t n = 0;
    for (size_t i = 0; i < p.d->g->n_nodes; i++) {
        if (!node_is(p.d->g->node[i], "conv2d")) continue;
        assert_warning(&p, NULL, p.d->g->node[i], "");
        assert_warning(&p, &target, p.d->g->node[i], conv[n++].right);
    }
    assert_int_equal(n, COUNT(conv));
    release(&p);
}

/* ---- a layer of Megatron ---- */

#define TINY "gpt2-tiny:seq=32,vocab=200,heads=4,layers=1"

static void test_megatron(void **state) {
    (void)state;
    struct planned p;
    int n[MOVE_KINDS];
    tri_options o = {.mesh = "model=2", .strategy = "megatron"};
    tri_graph *g = tri_model_open(TINY, 8);
    assert_non_null(g);
    plan(&p, g, o, "dist");
    for (enum move_when w = MOVE_FORWARD; w <= MOVE_BACKWARD; w++) {
        block_moves(&p, ".h.0.", w, n, 8 * 32 * 128 * 4);
        assert_int_equal(n[MOVE_ALL_REDUCE], 2);
        assert_int_equal(n[MOVE_ALL_GATHER] + n[MOVE_REDUCE_SCATTER] + n[MOVE_ALL_TO_ALL], 0);
    }
    release(&p);
}

static void test_megatron_sequence(void **state) {
    (void)state;
    struct planned p;
    int n[MOVE_KINDS];
    tri_options o = {.mesh = "model=2", .strategy = "megatron-sp"};
    tri_graph *g = tri_model_open(TINY, 8);
    assert_non_null(g);
    plan(&p, g, o, "dist");
    for (enum move_when w = MOVE_FORWARD; w <= MOVE_BACKWARD; w++) {
        block_moves(&p, ".h.0.", w, n, 8 * 32 * 128 * 4);
        assert_int_equal(n[MOVE_ALL_REDUCE] + n[MOVE_ALL_TO_ALL], 0);
        assert_int_equal(n[MOVE_ALL_GATHER], 2);
        assert_int_equal(n[MOVE_REDUCE_SCATTER], 2);
    }
    release(&p);
}

/* ---- what is executed ---- */

/* Whether the tensor belongs to other seats than those that the node runs on: to another along an
 * axis, or to one of those that share the node. */
static bool is_elsewhere(const tri_node *n, const tri_tensor *t, int axes) {
    for (int a = 0; a < axes; a++)
        if (t->node->owner[a] >= 0 && n->owner[a] != t->node->owner[a]) return true;
    return false;
}

static void check_executed(const char *model, tri_options o, const char *convolutions) {
    struct planned p;
    size_t reads = 0;
    tri_graph *g = tri_model_open(model, 8);
    assert_non_null(g);
    if (convolutions) tri_strategy(g, "*conv2d", convolutions);
    plan(&p, g, o, "expand");
    const tri_graph *lane = p.c.lane[0];
    bool *done = calloc(p.d->n_moves + 1, sizeof *done);
    assert_non_null(done);
    for (size_t i = 0; i < lane->n_nodes; i++) {
        const tri_node *n = lane->node[i];
        for (int k = 0; k < n->n_in; k++) {
            if (!node_reads(n, k) || !is_elsewhere(n, n->in[k], p.d->mesh.n)) continue;
            if (!n->move)
                fail_msg("%s, %s: %s reads %s, which no move lists", model, o.mesh, n->name,
                         n->in[k]->node->name);
            done[n->move - 1] = true;
            reads++;
        }
    }
    for (size_t i = 0; i < p.d->n_moves; i++)
        if (!done[i])
            fail_msg("%s, %s: %s is said to move, and does not", model, o.mesh,
                     explain_tensor(p.d, &p.d->move[i])->node->name);
    if (mesh_seats(&p.d->mesh) > 1) assert_true(reads >= p.d->n_moves);
    free(done);
    release(&p);
}

static void test_executed(void **state) {
    (void)state;
#define GPT2 "gpt2-tiny:seq=32,vocab=200,heads=4"
    static const struct {
        const char *model;
        tri_options o;
        const char *convolutions; /* how they are split; null: as o.strategy says */
    } rows[] = {
        {GPT2, {.mesh = "model=2", .strategy = "megatron"}, NULL},
        {GPT2, {.mesh = "model=4", .strategy = "megatron"}, NULL},
        {GPT2, {.mesh = "model=2", .strategy = "megatron-sp"}, NULL},
        {GPT2, {.mesh = "model=2", .strategy = "megatron-sp", .amp = "O1", .recompute = "*"}, NULL},
        {GPT2, {.mesh = "a=2,b=2", .unset = "batch"}, NULL},
        {"gpt2-tiny:seq=33,vocab=201,heads=4", {.mesh = "model=2", .strategy = "megatron-sp"},
         NULL},
        {"bert-tiny", {.mesh = "model=2", .strategy = "megatron"}, NULL},
        {"resnet18:form=small", {.mesh = "model=2", .strategy = "channels"}, NULL},
        {"resnet18:form=small", {.mesh = "model=3", .strategy = "channels"}, NULL},
        {"resnet18:form=small", {.mesh = "m=2"}, "height=m"},
        {"resnet18:form=small", {.mesh = "m=3"}, "height=m"},
        {"resnet18:form=small", {.mesh = "m=2,n=2"}, "height=m,width=n"},
        {"lenet5", {.mesh = "m=2"}, "height=m"},
        {"mlp", {.mesh = "model=2", .strategy = "channels"}, NULL},
        {"mlp", {.mesh = "model=2,data=2", .strategy = "channels", .unset = "batch"}, NULL},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        tri_options o = rows[i].o;
        o.lanes = 2;
        check_executed(rows[i].model, o, rows[i].convolutions);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_products),  cmocka_unit_test(test_product_and_relu),
        cmocka_unit_test(test_1024_seats),    cmocka_unit_test(test_height),
        cmocka_unit_test(test_without_factors),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_megatron),      cmocka_unit_test(test_megatron_sequence),
        cmocka_unit_test(test_executed),
    };
    return cmocka_run_group_tests_name("explain", tests, NULL, NULL);
}
