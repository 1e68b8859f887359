/* SPDX-License-Identifier: Apache-2.0
 * The tensors that nodes need in another layout than they have. */
#include "plan/dist.h"

bool layout_moves(const struct layout *from, const struct layout *to) {
    for (int a = 0; a < MESH_MOST_AXES; a++)
        if (from->axis[a].kind != WHOLE && !split_equal(&from->axis[a], &to->axis[a])) return true;
    return false;
}

static bool add_move(struct dist *d, const tri_tensor *t, int node, int input,
                     const struct layout *to) {
    const struct layout *from = &d->has[t->id];
    double bytes = (double)base_spec_bytes(&t->spec);
    if (!layout_moves(from, to)) return true;
    for (size_t i = 0; i < d->n_moves; i++)
        if (d->move[i].tensor == t->id && (d->move[i].node < 0) == (node < 0) &&
            layout_equal(&d->move[i].to, to))
            return true;
    if (!ARRAY_GROW(d->move, d->n_moves, d->capacity)) return false;
    for (int a = 0; a < d->mesh.n; a++)
        if (from->axis[a].kind == SPLIT && split_equal(&from->axis[a], &to->axis[a]))
            bytes /= (double)d->mesh.axis[a].size;
    d->move[d->n_moves++] = (struct move){t->id, node, input, *from, *to, (size_t)bytes};
    return true;
}

/* Nodes name the same places by different factors; layouts that are compared do not. */
static void make_normal(struct dist *d) {
    size_t inputs = 0;
    for (size_t i = 0; i < d->g->n_nodes; i++) inputs += (size_t)d->g->node[i]->n_in;
    for (size_t i = 0; i < inputs; i++) layout_normal(&d->mesh, &d->need[i]);
    for (int i = 0; i < d->g->n_tensors; i++) layout_normal(&d->mesh, &d->has[i]);
}

bool dist_find_moves(struct dist *d) {
    static const struct layout all_whole;
    bool ok = true;
    make_normal(d);
    for (size_t i = 0; i < d->g->n_nodes; i++) {
        const tri_node *n = d->g->node[i];
        for (int k = 0; k < n->n_in && ok; k++)
            if (node_reads(n, k)) ok = add_move(d, n->in[k], (int)i, k, dist_need(d, n, k));
    }
    for (size_t i = 0; i < d->g->n_outputs && ok; i++)
        ok = add_move(d, d->g->output[i].tensor, -1, 0, &all_whole);
    return ok;
}

void move_text(const struct mesh *m, const struct layout *from, const struct layout *to,
               struct text *out) {
    static const char *const kinds[3][3] = {[SPLIT] = {"all-gather", "all-to-all", ""},
                                            [PARTIAL] = {"all-reduce", "reduce-scatter", ""}};
    bool any = false;
    for (int a = 0; a < m->n; a++) {
        const struct split *f = &from->axis[a], *t = &to->axis[a];
        if (f->kind == WHOLE || split_equal(f, t)) continue;
        text_add(out, "%s%s over %s", any ? ", " : "", kinds[f->kind][t->kind], m->axis[a].name);
        any = true;
    }
}
