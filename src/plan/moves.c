/* SPDX-License-Identifier: Apache-2.0
 * The tensors that nodes need in another layout than they have. */
#include "plan/dist.h"

/* ---- windows ---- */

static bool has_windows(const struct layout *l) {
    bool any = false;
    for (int a = 0; a < MESH_MOST_AXES; a++) any |= l->axis[a].reach.over > 0;
    return any;
}

/* The next seat, of those that differ in an axis along which either layout is not whole. False:
 * there is none. */
static bool next_seat(const struct mesh *m, const struct layout *a, const struct layout *b,
                      int16_t *at) {
    for (int i = m->n; i-- > 0;) {
        if (a->axis[i].kind == WHOLE && b->axis[i].kind == WHOLE) continue;
        if (++at[i] < m->axis[i].size) return true;
        at[i] = 0;
    }
    return false;
}

/* Whether the boxes of all seats are the same in both layouts. */
static bool same_boxes(const struct mesh *m, const tri_shape *shape, const struct layout *a,
                       const struct layout *b) {
    const struct layout *both[] = {a, b};
    int16_t at[MESH_MOST_AXES] = {0};
    struct refined r;
    bool same = layout_refine(shape, both, 2, m, &r);
    do {
        struct box x, y;
        same = same && layout_box(m, &r, a, at, &x) && layout_box(m, &r, b, at, &y);
        for (int i = 0; same && i < r.n; i++)
            same = x.begin[i] == y.begin[i] && x.end[i] == y.end[i];
    } while (same && next_seat(m, a, b, at));
    return same;
}

/* Windows that lie side by side need the parts of what they are windows of, and no more. */
static void drop_side_by_side(const struct mesh *m, const tri_shape *shape, struct layout *l) {
    struct layout plain = *l;
    if (!has_windows(l)) return;
    for (int a = 0; a < m->n; a++) plain.axis[a] = split_plain(&l->axis[a], shape);
    if (same_boxes(m, shape, l, &plain)) *l = plain;
}

/* The bytes that all seats need beyond what they have. False: more than borders moves. */
static bool halo_bytes(const struct mesh *m, const tri_spec *t, const struct layout *from,
                       const struct layout *to, double *bytes) {
    const struct layout *both[] = {from, to};
    int16_t at[MESH_MOST_AXES] = {0};
    struct refined r;
    double places = 0;
    for (int a = 0; a < m->n; a++) {
        const struct split *f = &from->axis[a], *s = &to->axis[a];
        if (f->kind != WHOLE && !split_equal(f, s) && !split_sees_neighbours(f, s)) return false;
    }
    if (!has_windows(to) || !layout_refine(&t->shape, both, 2, m, &r)) return false;
    do {
        struct box need, has;
        double all = 1, own = 1;
        if (!layout_box(m, &r, to, at, &need) || !layout_box(m, &r, from, at, &has)) return false;
        for (int i = 0; i < r.n; i++) {
            const int64_t begin = need.begin[i] > has.begin[i] ? need.begin[i] : has.begin[i];
            const int64_t end = need.end[i] < has.end[i] ? need.end[i] : has.end[i];
            all *= (double)(need.end[i] - need.begin[i]);
            own *= (double)(end > begin ? end - begin : 0);
        }
        places += all - own;
    } while (next_seat(m, from, to, at));
    *bytes = places * (double)tri_type_size(t->type);
    for (int a = 0; a < m->n; a++)
        if (from->axis[a].kind != WHOLE && split_equal(&from->axis[a], &to->axis[a]))
            *bytes /= (double)m->axis[a].size;
    return true;
}

/* ---- moves ---- */

bool layout_moves(const struct mesh *m, const tri_spec *t, const struct layout *from,
                  const struct layout *to, double *bytes) {
    bool any = false;
    double halo = (double)base_spec_bytes(t);
    for (int a = 0; a < m->n; a++) {
        const bool same = split_equal(&from->axis[a], &to->axis[a]);
        any |= from->axis[a].kind != WHOLE && !same;
        if (from->axis[a].kind == SPLIT && same) halo /= (double)m->axis[a].size;
    }
    if (halo_bytes(m, t, from, to, &halo)) any = halo > 0;
    *bytes = halo;
    return any;
}

bool dist_moves(const struct dist *d, const tri_tensor *t, const struct layout *to) {
    double bytes;
    return layout_moves(&d->mesh, &t->spec, &d->has[t->id], to, &bytes);
}

static bool add_move(struct dist *d, const tri_tensor *t, int node, int input,
                     const struct layout *to) {
    const struct layout *from = &d->has[t->id];
    double bytes;
    if (!layout_moves(&d->mesh, &t->spec, from, to, &bytes)) return true;
    for (size_t i = 0; i < d->n_moves; i++)
        if (d->move[i].tensor == t->id && (d->move[i].node < 0) == (node < 0) &&
            layout_equal(&d->move[i].to, to))
            return true;
    if (!ARRAY_GROW(d->move, d->n_moves, d->capacity)) return false;
    d->move[d->n_moves++] = (struct move){t->id, node, input, *from, *to, (size_t)bytes};
    return true;
}

void layout_settle(const struct mesh *m, const tri_shape *shape, struct layout *need) {
    drop_side_by_side(m, shape, need);
    layout_normal(m, need);
}

/* Nodes name the same places by different factors; layouts that are compared do not. */
static void make_normal(struct dist *d) {
    for (size_t i = 0; i < d->g->n_nodes; i++) {
        const tri_node *n = d->g->node[i];
        for (int k = 0; k < n->n_in; k++)
            layout_settle(&d->mesh, &n->in[k]->spec.shape, &d->need[d->first[i] + (size_t)k]);
    }
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

const struct layout *dist_layout(const struct dist *d, const tri_tensor *t) {
    for (size_t i = (size_t)t->node->id; i < d->g->n_nodes && !t->node->n_in; i++)
        for (int k = 0; k < d->g->node[i]->n_in; k++)
            if (d->g->node[i]->in[k] == t && node_reads(d->g->node[i], k))
                return dist_need(d, d->g->node[i], k);
    return &d->has[t->id];
}

void move_text(const struct mesh *m, const struct layout *from, const struct layout *to,
               struct text *out) {
    static const char *const kinds[3][3] = {[SPLIT] = {"all-gather", "all-to-all", ""},
                                            [PARTIAL] = {"all-reduce", "reduce-scatter", ""}};
    bool any = false;
    for (int a = 0; a < m->n; a++) {
        const struct split *f = &from->axis[a], *t = &to->axis[a];
        if (f->kind == WHOLE || split_equal(f, t)) continue;
        text_add(out, "%s%s over %s", any ? ", " : "",
                 split_sees_neighbours(f, t) ? "halo exchange" : kinds[f->kind][t->kind],
                 m->axis[a].name);
        any = true;
    }
}
