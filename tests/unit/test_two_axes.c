/* SPDX-License-Identifier: Apache-2.0
 * Splits along two axes: no assignment costs less than the bound, and what is found by turns costs
 * no less than the best of all. All assignments along the one axis are tried, each with the best
 * along the other. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "search/splits.h"

#define NODES_MOST 64
#define SETTINGS 12

static uint64_t state = 1;
static double draw(void) { /* 0 to 1 */
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 40) / (double)(1 << 24);
}

struct rates {
    double flops, bytes, launch, wait, moved;
};

static double node_seconds(const void *of, const tri_node *n, double flops, double bytes) {
    const struct rates *r = of;
    assert_true(n->n_in > 0);
    return r->launch + flops * r->flops + bytes * r->bytes;
}

static double move_seconds(const void *of, int rounds, double bytes) {
    const struct rates *r = of;
    return rounds * r->wait + bytes * r->moved;
}

static tri_tensor *weight(tri_graph *g, const char *name, int64_t in, int64_t out) {
    return tri_param(g, name, TRI_SHAPE(in, out), (tri_init){.kind = TRI_HE_NORMAL});
}

/* A feed-forward layer; the same with a tensor that two operators read; one that is cut by windows;
 * and one with a derivative. */
static tri_graph *network(int which) {
    tri_graph *g = tri_graph_new(8);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(8, 16)), *y = NULL;
    if (which == 0) {
        y = tri_matmul(tri_gelu(tri_matmul(x, weight(g, "w", 16, 32))), weight(g, "v", 32, 16));
    } else if (which == 1) {
        tri_tensor *h = tri_matmul(x, weight(g, "w", 16, 16));
        y = tri_matmul(tri_add(tri_tanh(h), h), weight(g, "v", 16, 8));
    } else if (which == 2) {
        tri_tensor *image = tri_reshape(x, TRI_SHAPE(2, 4, 4, 4));
        tri_tensor *k = tri_param(g, "k", TRI_SHAPE(4, 4, 3, 3), (tri_init){.kind = TRI_HE_NORMAL});
        y = tri_max_pool(tri_conv2d(image, k, .pad = 1), .size = 2, .stride = 2);
    } else {
        tri_tensor *w = weight(g, "w", 16, 4), *dw;
        tri_grad(tri_sum(tri_matmul(x, w), TRI_ALL), &w, 1, &dw);
        y = dw;
    }
    tri_output(y, "y");
    if (tri_graph_status(g)) fail_msg("%s", tri_message());
    return g;
}

/* Whether the candidates that add up one input's partial sums have no others. */
static bool adds_up(const struct candidates *c, const struct candidate *const *of) {
    for (size_t i = 0; i < c->g->n_nodes; i++) {
        const tri_node *n = c->g->node[i];
        for (int k = 0; k < n->n_in && of[i] && of[i]->use.kind == USE_PARTIAL; k++) {
            const struct candidate *made = of[n->in[k]->node->id];
            if (made && of[i]->split[k].kind != PARTIAL &&
                made->has[n->in[k]->index].axis[0].kind == PARTIAL)
                return false;
        }
    }
    return true;
}

/* The least along axis 1 while axis 0 is held; INT64_MAX: nothing is allowed. */
static int64_t least_of(const tri_graph *g, const struct mesh *m, const struct split_prices *p,
                        const struct candidate *const *held) {
    struct candidates c;
    struct tables t;
    struct cost_least least = {.cost = INT64_MAX};
    assert_int_equal(candidates_find(g, m, 1, held, &c), TRI_OK);
    assert_int_equal(tables_make(&c, NULL, p, (struct shares){1, 1}, &t), TRI_OK);
    t.sum.most_cells = 1 << 24;
    const bool allowed = !eliminate(&t.sum, &least);
    free(least.value);
    tables_free(&t);
    candidates_free(&c);
    return allowed ? least.cost : INT64_MAX;
}

static int64_t brute(const tri_graph *g, const struct mesh *m, const struct split_prices *p,
                     int64_t *tried) {
    struct candidates c;
    const struct candidate *held[NODES_MOST] = {NULL};
    int value[NODES_MOST] = {0};
    int64_t least = INT64_MAX;
    assert_true(g->n_nodes < NODES_MOST);
    assert_int_equal(candidates_find(g, m, 0, NULL, &c), TRI_OK);
    for (size_t i = 0; i < g->n_nodes;) {
        for (size_t k = 0; k < g->n_nodes; k++)
            held[k] = c.node[k].n ? &c.node[k].of[value[k]] : NULL;
        const int64_t cost = adds_up(&c, held) ? least_of(g, m, p, held) : INT64_MAX;
        if (cost < least) least = cost;
        ++*tried;
        for (i = 0; i < g->n_nodes && (!c.node[i].n || ++value[i] == c.node[i].n); i++)
            value[i] = 0;
    }
    candidates_free(&c);
    return least;
}

static void bounds_hold(void **unused) {
    int64_t tried = 0;
    int cases = 0, best = 0;
    double apart = 1, gap = 1;
    (void)unused;
    for (int which = 0; which < 4; which++)
        for (int i = 0; i < SETTINGS; i++) {
            tri_graph *g = network(which);
            const struct mesh m = {.n = 2, .axis = {{"a", 2}, {"b", i % 2 ? 2 : 4}}};
            const struct rates r = {1e-9 * draw(), 1e-9 * draw(), 1e-7 * draw(),
                                    i % 3 ? 1e-7 * draw() : 0, 1e-9 * draw()};
            const struct split_prices p = {.of = &r, .node = node_seconds, .move = move_seconds,
                                           .one_store = i % 4 == 3, .states = 2,
                                           .keep = i % 5 ? 0 : 1e-10};
            struct splits s;
            if (splits_find(g, NULL, &m, &p, false, &s)) fail_msg("%s", tri_message());
            const int64_t least = brute(g, &m, &p, &tried);
            if (s.bound < 0 || s.bound > least || least > s.cost)
                fail_msg("network %d, setting %d: bound %lld, least %lld, found %lld", which, i,
                         (long long)s.bound, (long long)least, (long long)s.cost);
            cases++;
            best += s.cost == least;
            if ((double)s.cost / (double)least > apart) apart = (double)s.cost / (double)least;
            if ((double)least / (double)s.bound > gap) gap = (double)least / (double)s.bound;
            splits_free(&s);
            tri_graph_free(g);
        }
    printf("%d cases, %lld assignments along the first axis; the best was found %d times, else at "
           "most %.3f times its cost; the best costs at most %.2f times the bound\n", cases,
           (long long)tried, best, apart, gap);
    assert_true(best > cases / 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(bounds_hold)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
