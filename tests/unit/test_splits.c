/* SPDX-License-Identifier: Apache-2.0
 * Splits that are found: what they cost is what the plan costs that dist_make makes of them, move by
 * move; and they are those of experts where memory is short. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/passes.h"
#include "search/eliminate.h"
#include "search/splits.h"

struct rates {
    double flops, bytes, launch, wait, moved;
};

static double node_seconds(const void *of, const tri_node *n, double flops, double bytes) {
    const struct rates *r = of;
    (void)n;
    const double work = flops / r->flops, access = bytes / r->bytes;
    return r->launch + (work > access ? work : access);
}

static double move_seconds(const void *of, int rounds, double bytes) {
    const struct rates *r = of;
    return rounds * r->wait + bytes / r->moved;
}

/* A network's lane, before it is split or after. */
struct net {
    tri_graph *g;
    tri_options o;
    struct compilation c;
    char mesh[32];
};

static void open_net(struct net *n, const char *spec, int64_t batch, int seats,
                     const char *strategy, const char *last) {
    memset(n, 0, sizeof *n);
    snprintf(n->mesh, sizeof n->mesh, "model=%d", seats);
    n->g = tri_model_open(spec, batch);
    n->o = tri_options_default();
    n->o.batch = batch;
    n->o.lanes = 2;
    n->o.mesh = n->mesh;
    n->o.strategy = strategy;
    if (!strategy) n->o.unset = "batch";
    n->c = (struct compilation){.options = &n->o, .model = n->g, .all_threads = 1};
    if (!n->g || passes_run(&n->c, last))
        fail_msg("%s, %d seats: %s", spec, seats, tri_message());
}

static void close_net(struct net *n) {
    passes_free(&n->c);
    tri_graph_free(n->g);
}

static void show(const char *spec, int64_t batch, int seats, const struct split_prices *p) {
    struct net n;
    struct splits s;
    struct text t = {0};
    open_net(&n, spec, batch, seats, NULL, "phases");
    double begin = base_seconds();
    if (splits_find(n.c.lane[0], &n.c.cut, &n.c.strategies.mesh, p, false, &s)) fail_msg("%s", tri_message());
    printf("%s %d: %d variables, cost %.3f ms, exact %d, cells %lld computed %lld, %.0f ms\n", spec, seats,
           s.variables, 1e-9 * (double)s.cost, s.exact, (long long)s.cells, (long long)s.computed, 1e3 * (base_seconds() - begin));
    assert_int_equal(splits_print(&s, &t), TRI_OK);
    if (getenv("SHOW")) printf("%s", t.data);
    struct net m;
    if (!strstr(t.data, "=model")) { printf("whole\n"); text_free(&t); splits_free(&s); close_net(&n); return; }
    open_net(&m, spec, batch, seats, t.data, "dist");
    const struct dist *d = &m.c.dist[0];
    printf("  moves %zu, %zu\n", s.n_moves, d->n_moves);
    close_net(&m);
    text_free(&t);
    splits_free(&s);
    close_net(&n);
}

static void shows(void **unused) {
    (void)unused;
    struct rates r = {1e14, 2e12, 3e-6, 5e-6, 2e11};
    struct split_prices p = {.of = &r, .node = node_seconds, .move = move_seconds, .one_store = true};
    show("mlp", 8, 2, &p);
    show("lenet5", 8, 2, &p);
    show("gpt2-tiny", 8, 2, &p);
    show("bert-tiny", 8, 2, &p);
    show("resnet18:size=32", 8, 2, &p);
    p.one_store = false;
    p.states = 2;
    p.keep = 1e-12;
    show("gpt2-tiny", 8, 2, &p);
    show("gpt2-small:heads=16", 8, 4, &p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
