/* SPDX-License-Identifier: Apache-2.0
 * The random networks of mesh_case.h, every operator of them split as a search finds at random
 * prices: what moves is what was priced, and the expanded graph computes what the network
 * computes. */
#ifndef MESH_FOUND_H
#define MESH_FOUND_H

#include "search/splits.h"
#include "unit/mesh_case.h"

/* Any price, but the same for the same use of the same operator. */
static inline double found_node_price(const void *of, const tri_node *n, double flops,
                                      double bytes) {
    const uint64_t *seed = of;
    const uint64_t hash = base_hash(&bytes, sizeof bytes, *seed + (uint64_t)n->id);
    return 1e-6 * (double)(hash % 1000) + 1e-12 * flops;
}

static inline double found_move_price(const void *of, int rounds, double bytes) {
    const uint64_t *seed = of;
    return (double)(*seed % 4) * 1e-5 * (rounds + 1e-3 * bytes);
}

static inline bool found_same_moves(const struct splits *s, const struct dist *d) {
    bool same = s->n_moves == d->n_moves;
    for (size_t i = 0; i < d->n_moves && same; i++) {
        size_t k = 0;
        while (k < s->n_moves && (s->move[k].tensor != d->move[i].tensor ||
                                  s->move[k].result != (d->move[i].node < 0) ||
                                  s->move[k].bytes != d->move[i].bytes ||
                                  !split_equal(&s->move[k].to.axis[0], &d->move[i].to.axis[0]) ||
                                  !split_equal(&s->move[k].to.axis[1], &d->move[i].to.axis[1])))
            k++;
        same = k < s->n_moves;
    }
    return same;
}

/* The expanded graph; null: nothing is split, or *status. */
static inline tri_graph *found_expand(tri_graph *g, struct case_result *r, tri_status *status) {
    static const struct split_prices usual = {.node = found_node_price, .move = found_move_price,
                                              .one_store = true};
    struct split_prices p = usual;
    struct splits found;
    struct strategies s = {0};
    struct dist d = {0};
    struct text lines = {0};
    tri_options o = tri_options_default();
    tri_graph *expanded = NULL;
    const uint64_t seed = base_hash(r->text, strlen(r->text), 0);
    p.of = &seed;
    *status = splits_find(g, NULL, &g->mesh, &p, false, &found);
    if (!*status) *status = splits_print(&found, &lines);
    r->splits = !*status;
    for (int a = 0; a < g->mesh.n && r->splits; a++) { /* a mesh has no axis that nothing uses */
        char axis[32];
        snprintf(axis, sizeof axis, "=%s", g->mesh.axis[a].name);
        r->splits = strstr(lines.data, axis) != NULL;
    }
    if (r->splits) {
        o.strategy = lines.data;
        *status = strategies_make(g, &o, &s);
        if (!*status) *status = dist_make(g, NULL, &s, &d);
        if (!*status && !found_same_moves(&found, &d))
            *status = base_fail(TRI_FAILED, "other moves than those that were priced");
        if (!*status && !(expanded = expand(&d))) *status = base_last();
        dist_free(&d);
        strategies_free(&s);
    }
    if (expanded) expanded->mesh = (struct mesh){0};
    char *with = NULL;
    if (lines.data && asprintf(&with, "%s\n%s", r->text, lines.data) > 0) {
        free(r->text);
        r->text = with;
    }
    text_free(&lines);
    splits_free(&found);
    return expanded;
}

static inline tri_status found_run(const uint8_t *data, size_t size, struct case_result *r) {
    static const char *const mesh[] = {"a=2", "a=3", "a=4", "a=2,b=2", "a=2,b=3", "a=3,b=2"};
    struct values in = {0}, plain = {0};
    struct bytes b = {data, data + size}, from = b;
    tri_graph *g = case_network(&b), *meshed = case_network(&from), *expanded = NULL;
    (tri_mesh)(meshed, mesh[pick(&b, COUNT(mesh))]);
    *r = (struct case_result){.text = tri_graph_print(meshed)};
    tri_status status = tri_graph_status(g);
    const bool refused = status;
    case_values(g, 0, &in);
    if (!refused) status = graph_run(g, 1, &in, &plain);
    if (refused || status == TRI_USAGE) status = TRI_OK; /* too few samples for a statistic */
    else if (!status) expanded = found_expand(meshed, r, &status);
    if (!status && expanded) status = case_judge(data, size, &in, &plain, expanded, r);
    values_free(&in);
    values_free(&plain);
    tri_graph_free(g);
    tri_graph_free(meshed);
    tri_graph_free(expanded);
    return status;
}

#endif
