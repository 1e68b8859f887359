/* SPDX-License-Identifier: Apache-2.0
 * Splits that are found: what they cost is what the plan costs that dist_make makes of them, move
 * by move; no ready strategy is cheaper; and they are those of experts where memory is short. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/passes.h"
#include "search/eliminate.h"
#include "search/network.h"

/* ---- prices of a described device ---- */

struct rates {
    double flops, bytes, launch, wait, moved;
};

static double node_seconds(const void *of, const tri_node *n, double flops, double bytes) {
    const struct rates *r = of;
    const double work = flops / r->flops, access = bytes / r->bytes;
    assert_true(n->n_in > 0);
    return r->launch + (work > access ? work : access);
}

static double move_seconds(const void *of, int rounds, double bytes) {
    const struct rates *r = of;
    return rounds * r->wait + bytes / r->moved;
}

static const struct rates usual = {1e14, 2e12, 3e-6, 5e-6, 2e11};

static struct split_prices prices_of(const struct rates *r, bool one_store, double keep) {
    return (struct split_prices){.of = r, .node = node_seconds, .move = move_seconds,
                                 .one_store = one_store, .states = 2, .keep = keep};
}

/* ---- networks ---- */

#define LANES 2

struct net {
    tri_graph *g;
    tri_options o;
    struct compilation c;
    char mesh[32];
};

static void describe_net(struct net *n, const char *spec, int64_t samples, int seats) {
    memset(n, 0, sizeof *n);
    snprintf(n->mesh, sizeof n->mesh, "model=%d", seats);
    n->g = tri_model_open(spec, LANES * samples);
    n->o = tri_options_default();
    n->o.batch = LANES * samples;
    n->o.lanes = LANES;
    n->o.mesh = n->mesh;
    if (!n->g) fail_msg("%s", tri_message());
}

/* strategy null: split by samples or rows. False: it cannot be split so. */
static bool open_net(struct net *n, const char *spec, int64_t samples, int seats,
                     const char *strategy, const char *last) {
    describe_net(n, spec, samples, seats);
    n->o.strategy = strategy;
    if (!strategy) n->o.unset = "batch";
    n->c = (struct compilation){.options = &n->o, .model = n->g, .all_threads = 1};
    return !passes_run(&n->c, last);
}

static void close_net(struct net *n) {
    passes_free(&n->c);
    tri_graph_free(n->g);
}

/* ---- what a plan costs, from its moves ---- */

static int64_t picoseconds(double seconds) { return (int64_t)(1e12 * seconds + 0.5); }

/* shared: seats divide what is whole. */
static double part_of(const struct split *s, int64_t seats, bool shared) {
    if (s->kind == SPLIT) return (double)((s->extent + seats - 1) / seats) / (double)s->extent;
    return s->kind == WHOLE && shared ? 1 / (double)seats : 1;
}

static int64_t node_cost(const struct dist *d, const tri_node *n, const struct split_prices *p) {
    const int64_t seats = d->mesh.axis[0].size;
    const struct use *u = &d->use[n->id][0];
    const bool shared = u->kind == USE_WHOLE && p->one_store;
    double bytes = 0, kept = 0, flops = n->entry->op->flops ? n->entry->op->flops(n) : 0;
    for (int i = 0; i < n->n_in; i++)
        if (node_reads(n, i))
            bytes += (double)base_spec_bytes(&n->in[i]->spec) *
                     part_of(&dist_need(d, n, i)->axis[0], seats, shared);
    for (int i = 0; i < n->n_out; i++)
        kept += (double)base_spec_bytes(&n->out[i].spec) *
                part_of(&d->has[n->out[i].id].axis[0], seats, shared);
    if (u->kind == USE_FACTOR)
        flops *= (double)((u->extent + seats - 1) / seats) / (double)u->extent;
    if (shared) flops /= (double)seats;
    return picoseconds(p->node(p->of, n, flops, bytes + kept) + p->keep * kept +
                       (shared ? p->move(p->of, 1, 0) : 0));
}

static int64_t move_cost(const struct dist *d, const tri_tensor *t, const struct split *from,
                         const struct split *to, const struct split_prices *p) {
    const struct layout a = {{*from}}, b = {{*to}};
    const double seats = (double)d->mesh.axis[0].size;
    double all;
    if (!layout_moves(&d->mesh, &t->spec, &a, &b, &all)) return 0;
    const double seat = split_sees_neighbours(from, to)
                            ? all / seats
                            : split_move_bytes(from, to, (double)base_spec_bytes(&t->spec), seats);
    const int rounds = from->kind == PARTIAL && to->kind == WHOLE ? 2 : 1;
    return picoseconds(p->move(p->of, rounds, seat));
}

/* What the operators cost that need of a tensor what they need, each layout once. */
static int64_t reads_cost(const struct dist *d, const tri_tensor *t, const struct split *has,
                          const struct split_prices *p) {
    struct split seen[16];
    int n = 0;
    int64_t cost = 0;
    for (size_t i = 0; i < d->g->n_nodes; i++)
        for (int k = 0; k < d->g->node[i]->n_in; k++) {
            const tri_node *r = d->g->node[i];
            const struct split *need = &dist_need(d, r, k)->axis[0];
            int same = 0;
            if (r->in[k] != t || !node_reads(r, k)) continue;
            while (same < n && !split_equal(&seen[same], need)) same++;
            if (same < n) continue;
            assert_true(n < 16);
            seen[n++] = *need;
            cost += move_cost(d, t, has, need, p);
        }
    return cost;
}

/* The result of the lane that is the gradient of a parameter of its shape; null: there is none. */
static const tri_tensor *gradient_of(const struct net *n, const tri_node *param) {
    const tri_graph *g = n->c.lane[0];
    const tri_tensor *of;
    for (size_t i = 0; i < n->c.cut.whole->n_updates; i++) {
        const tri_node *target = n->c.cut.whole->update[i].target->node;
        if (strcmp(source_name(target), source_name(param)) ||
            cut_gradient(&n->c.cut, i, &of) || !of)
            continue;
        for (size_t k = 0; k < g->n_outputs; k++)
            if (g->output[k].of == of->id &&
                base_shape_equal(&g->output[k].tensor->spec.shape, &param->out->spec.shape))
                return g->output[k].tensor;
    }
    return NULL;
}

/* A parameter is kept where it costs least. */
static int64_t home_cost(const struct net *n, const tri_node *param,
                         const struct split_prices *p) {
    const struct dist *d = &n->c.dist[0];
    const int64_t seats = d->mesh.axis[0].size;
    const tri_tensor *t = param->out, *gradient = gradient_of(n, param);
    struct split home[16] = {{.kind = WHOLE}};
    int homes = 1;
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < d->g->n_nodes; i++)
        for (int k = 0; k < d->g->node[i]->n_in; k++) {
            const struct split *need = &dist_need(d, d->g->node[i], k)->axis[0];
            if (d->g->node[i]->in[k] == t && need->kind == SPLIT && !need->reach.over &&
                homes < 16)
                home[homes++] = *need;
        }
    for (int i = 0; i < t->spec.shape.rank && homes < 16; i++) {
        struct layout l = {{split_dim(&t->spec.shape, i)}};
        layout_normal(&d->mesh, &l);
        if (t->spec.shape.dim[i] >= seats) home[homes++] = l.axis[0];
    }
    for (int h = 0; h < homes; h++) {
        int64_t cost = picoseconds(p->keep * (2 + p->states) *
                                   (double)base_spec_bytes(&t->spec) *
                                   part_of(&home[h], seats, false));
        cost += reads_cost(d, t, &home[h], p);
        if (gradient)
            cost += move_cost(d, gradient, &d->has[gradient->id].axis[0], &home[h], p);
        if (cost < least) least = cost;
    }
    return least;
}

static bool is_gradient(const struct net *n, const tri_tensor *t) {
    for (size_t i = 0; i < n->c.lane[0]->n_nodes; i++)
        if (node_is_param(n->c.lane[0]->node[i]) && gradient_of(n, n->c.lane[0]->node[i]) == t)
            return true;
    return false;
}

static int64_t plan_cost(const struct net *n, const struct split_prices *p) {
    static const struct split whole;
    const struct dist *d = &n->c.dist[0];
    int64_t cost = 0;
    for (size_t i = 0; i < d->g->n_nodes; i++) {
        const tri_node *node = d->g->node[i];
        if (!node->n_in && !p->one_store && node_is_param(node)) cost += home_cost(n, node, p);
        if (!node->n_in) continue;
        cost += node_cost(d, node, p);
        for (int k = 0; k < node->n_out; k++)
            cost += reads_cost(d, &node->out[k], &d->has[node->out[k].id].axis[0], p);
    }
    for (size_t i = 0; i < d->g->n_outputs; i++) {
        const tri_tensor *t = d->g->output[i].tensor;
        bool before = false;
        for (size_t k = 0; k < i; k++) before |= d->g->output[k].tensor == t;
        if (!before && (p->one_store || !is_gradient(n, t)))
            cost += move_cost(d, t, &d->has[t->id].axis[0], &whole, p);
    }
    return cost;
}

/* ---- the moves ---- */

static void check_moves(const struct splits *s, const struct dist *d) {
    assert_int_equal(s->n_moves, d->n_moves);
    for (size_t i = 0; i < d->n_moves; i++) {
        size_t k = 0;
        while (k < s->n_moves &&
               (s->move[k].tensor != d->move[i].tensor ||
                s->move[k].result != (d->move[i].node < 0) ||
                !split_equal(&s->move[k].to.axis[0], &d->move[i].to.axis[0])))
            k++;
        if (k == s->n_moves) fail_msg("a move of tensor %d was not priced", d->move[i].tensor);
        assert_int_equal(s->move[k].bytes, d->move[i].bytes);
    }
}

/* The plan that the lines make costs what was found, and its moves are those that were priced. */
static void found_is_what_runs(const char *spec, int64_t samples, int seats) {
    for (int store = 0; store < 2; store++) {
        const struct split_prices p = prices_of(&usual, store, store ? 0 : 1e-12);
        struct net before, after;
        struct splits s, apart;
        struct text lines = {0};
        if (!open_net(&before, spec, samples, seats, NULL, "phases"))
            fail_msg("%s", tri_message());
        const struct mesh *mesh = &before.c.strategies.mesh;
        if (splits_find(before.c.lane[0], &before.c.cut, mesh, &p, false, &s) ||
            splits_find(before.c.lane[0], &before.c.cut, mesh, &p, true, &apart) ||
            splits_print(&s, &lines))
            fail_msg("%s", tri_message());
        assert_true(s.bound == s.cost && apart.cost == s.cost && apart.computed >= s.computed);
        for (size_t i = 0; i < before.c.lane[0]->n_nodes; i++) {
            const struct use *a = &apart.use[i][0], *b = &s.use[i][0];
            assert_true(a->kind == b->kind && a->factor == b->factor && a->outer == b->outer &&
                        a->extent == b->extent);
        }
        if (!strstr(lines.data, "=model")) { /* nothing is split: there is no such plan */
            assert_int_equal(s.n_moves, 0);
            printf("%s, %d seats: whole\n", spec, seats);
            close_net(&before);
            text_free(&lines);
            splits_free(&s);
            splits_free(&apart);
            continue;
        }
        if (!open_net(&after, spec, samples, seats, lines.data, "dist"))
            fail_msg("%s, %d seats: %s\n%s", spec, seats, tri_message(), lines.data);
        if (store) check_moves(&s, &after.c.dist[0]);
        const int64_t cost = plan_cost(&after, &p);
        printf("%s, %d seats%s: %d variables, %lld ps, %zu moves\n", spec, seats,
               store ? " in a store" : "", s.variables, (long long)cost, after.c.dist[0].n_moves);
        assert_true(cost == s.cost);
        close_net(&after);
        close_net(&before);
        text_free(&lines);
        splits_free(&s);
        splits_free(&apart);
    }
}

static void plans_cost_what_was_found(void **unused) {
    (void)unused;
    found_is_what_runs("mlp", 8, 2);
    found_is_what_runs("lenet5", 4, 2);
    found_is_what_runs("resnet18:size=32", 4, 2);
    found_is_what_runs("resnet18:size=64", 1, 4);
    found_is_what_runs("gpt2-tiny", 2, 2);
    found_is_what_runs("gpt2-tiny", 3, 3);
    found_is_what_runs("bert-tiny", 2, 4);
}

/* ---- experts ---- */

static int64_t found_cost(const char *spec, int64_t samples, int seats,
                          const struct split_prices *p, struct network_splits *s) {
    struct net n;
    describe_net(&n, spec, samples, seats);
    if (network_search(n.g, &n.o, NULL, 1, p, s)) fail_msg("%s: %s", spec, tri_message());
    tri_graph_free(n.g);
    return s->cost;
}

static void no_strategy_is_cheaper(void **unused) {
    static const char *const specs[] = {"gpt2-small:layers=2,heads=16",
                                        "bert-base:layers=2,heads=16"};
    static const char *const strategy[] = {"megatron", "megatron-sp", NULL};
    static const double keep[] = {0, 1e-12, 1e-11}, moved[] = {25e9, 200e9};
    int settings = 0, outside = 0;
    double most[COUNT(strategy)] = {0};
    (void)unused;
    for (size_t spec = 0; spec < COUNT(specs); spec++)
        for (int seats = 2; seats <= 8; seats *= 2)
            for (int64_t samples = 1; samples <= 8; samples *= 8) {
                struct net n[COUNT(strategy)];
                bool is[COUNT(strategy)];
                for (size_t i = 0; i < COUNT(strategy); i++)
                    is[i] = open_net(&n[i], specs[spec], samples, seats, strategy[i], "dist");
                for (size_t k = 0; k < COUNT(keep) * COUNT(moved); k++) {
                    struct rates r = usual;
                    struct network_splits s;
                    r.moved = moved[k % COUNT(moved)];
                    const struct split_prices p = prices_of(&r, false, keep[k / COUNT(moved)]);
                    const int64_t cost = found_cost(specs[spec], samples, seats, &p, &s);
                    settings++;
                    for (size_t i = 0; i < COUNT(strategy); i++) {
                        const int64_t its = is[i] ? plan_cost(&n[i], &p) : COST_NEVER;
                        outside += !is[i];
                        if (its < cost)
                            fail_msg("%s, %d seats, %d samples, %g, %g: %s costs %lld, found %lld",
                                     specs[spec], seats, (int)samples, r.moved, p.keep,
                                     strategy[i] ? strategy[i] : "batch", (long long)its,
                                     (long long)cost);
                        const double more = (double)its / (double)cost;
                        if (is[i] && more > most[i]) most[i] = more;
                    }
                    network_splits_free(&s);
                }
                for (size_t i = 0; i < COUNT(strategy); i++) close_net(&n[i]);
            }
    printf("%d settings; at most %.2f (megatron), %.2f (megatron-sp), %.2f (batch) times the cost; "
           "%d cannot be\n", settings, most[0], most[1], most[2], outside);
    assert_true(settings >= 40);
}

static void has_line(const struct network_splits *s, const char *line) {
    if (!strstr(s->lines.data, line)) fail_msg("there is no line %s in\n%s", line, s->lines.data);
}

/* From nothing but prices, where memory is short: attention by heads, the first matrix of a
 * feed-forward layer by output, the second by input. */
static void experts_are_found(void **unused) {
    static const char *const gpt2[] = {
        "use transformer.h.*.attn.c_attn.matmul out/3=model\n",
        "use transformer.h.*.attn.attention heads=model\n",
        "use transformer.h.*.attn.c_proj.matmul in=model\n",
        "use transformer.h.*.mlp.c_fc.matmul out=model\n",
        "use transformer.h.*.mlp.c_proj.matmul in=model\n"};
    static const char *const bert[] = {
        "use bert.encoder.layer.*.attention.self.query.matmul out=model\n",
        "use bert.encoder.layer.*.attention.self.value.matmul out=model\n",
        "use bert.encoder.layer.*.attention.self.attention heads=model\n",
        "use bert.encoder.layer.*.attention.output.dense.matmul in=model\n",
        "use bert.encoder.layer.*.intermediate.dense.matmul out=model\n",
        "use bert.encoder.layer.*.output.dense.matmul in=model\n"};
    /* How much a byte costs decides between ways that move as many bytes. */
    static const double keep[] = {[2] = 4e-12, [4] = 1e-12, [8] = 1e-12};
    (void)unused;
    for (int seats = 2; seats <= 8; seats *= 2) {
        struct split_prices p = prices_of(&usual, false, keep[seats]);
        struct network_splits s;
        found_cost("gpt2-small:heads=16", 1, seats, &p, &s);
        for (size_t i = 0; i < COUNT(gpt2); i++) has_line(&s, gpt2[i]);
        network_splits_free(&s);
        p.keep = 1e-12;
        found_cost("bert-base:heads=16", 1, seats, &p, &s);
        for (size_t i = 0; i < COUNT(bert); i++) has_line(&s, bert[i]);
        network_splits_free(&s);
    }
}

static tri_tensor *dense(tri_tensor *x, const char *name, int64_t in, int64_t out) {
    return tri_matmul(x, tri_param(x->node->graph, name, TRI_SHAPE(in, out),
                                   (tri_init){.kind = TRI_HE_NORMAL}));
}

/* [n, s, h d] as [n, h, s, d]. */
static tri_tensor *by_heads(tri_tensor *x, int64_t heads) {
    const tri_shape *s = &x->spec.shape;
    tri_tensor *y = tri_reshape(x, TRI_SHAPE(s->dim[0], s->dim[1], heads, s->dim[2] / heads));
    return tri_transpose(y, TRI_SHAPE(0, 2, 1, 3));
}

/* Attention of products and softmax: the parts of heads go through reshapes and transposes. */
static void heads_are_carried(void **unused) {
    enum { SEQ = 64, HEADS = 6, FEATURES = 384 };
    static const char *const wanted[] = {
        "use matmul out/1:6=model\n", "use matmul_1 out/1:6=model\n", "use matmul_3 heads=model\n",
        "use softmax features=model\n", /* its second dimension, the heads */
        "use matmul_4 heads=model\n"};
    const struct split_prices p = prices_of(&usual, false, 1e-12);
    struct net n = {.g = tri_graph_new(LANES), .mesh = "model=4"};
    struct network_splits s;
    (void)unused;
    tri_tensor *x = tri_input(n.g, "x", TRI_F32, TRI_SHAPE(LANES, SEQ, FEATURES));
    tri_tensor *q = by_heads(dense(x, "q", FEATURES, FEATURES), HEADS);
    tri_tensor *k = by_heads(dense(x, "k", FEATURES, FEATURES), HEADS);
    tri_tensor *v = by_heads(dense(x, "v", FEATURES, FEATURES), HEADS);
    tri_tensor *scores = tri_softmax(tri_matmul(q, tri_transpose(k, TRI_SHAPE(0, 1, 3, 2))), 3);
    tri_tensor *y = tri_transpose(tri_matmul(scores, v), TRI_SHAPE(0, 2, 1, 3));
    y = dense(tri_reshape(y, TRI_SHAPE(LANES, SEQ, FEATURES)), "o", FEATURES, FEATURES);
    tri_loss(tri_mean(tri_mul(y, y), TRI_ALL));
    n.o = tri_options_default();
    n.o.batch = n.o.lanes = LANES;
    n.o.mesh = n.mesh;
    if (network_search(n.g, &n.o, NULL, 1, &p, &s)) fail_msg("%s", tri_message());
    for (size_t i = 0; i < COUNT(wanted); i++) has_line(&s, wanted[i]);
    network_splits_free(&s);
    tri_graph_free(n.g);
}

/* GPT-3's lane: layers that are alike cost as much as one. */
static void layers_are_shared(void **unused) {
    const struct split_prices p = prices_of(&usual, false, 1e-12);
    struct net n;
    struct splits s;
    (void)unused;
    if (!open_net(&n, "gpt2-small:layers=96,hidden=12288,heads=96,seq=2048,positions=2048", 1, 8,
                  NULL, "phases"))
        fail_msg("%s", tri_message());
    if (splits_find(n.c.lane[0], &n.c.cut, &n.c.strategies.mesh, &p, false, &s))
        fail_msg("%s", tri_message());
    printf("%zu nodes, %d variables, %lld cells, %lld of them computed in %.0f ms\n",
           n.c.lane[0]->n_nodes, s.variables, (long long)s.cells, (long long)s.computed,
           1e3 * s.seconds);
    assert_true(s.bound == s.cost && s.computed <= 1000000);
    splits_free(&s);
    close_net(&n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_cost_what_was_found),
        cmocka_unit_test(experts_are_found),
        cmocka_unit_test(no_strategy_is_cheaper),
        cmocka_unit_test(heads_are_carried),
        cmocka_unit_test(layers_are_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
