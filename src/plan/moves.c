/* SPDX-License-Identifier: Apache-2.0
 * The tensors that nodes need in another layout than they have. */
#include "plan/dist.h"

struct span {
    int64_t begin, end;
};

static struct span own_part(int64_t length, int64_t seats, int64_t i) {
    struct span s;
    part_range(length, seats, i, &s.begin, &s.end);
    return s;
}

static struct span windows_part(const struct split *s, int64_t length, int64_t seats, int64_t i) {
    struct span sees, part = own_part(s->extent, seats, i);
    const int64_t unit = s->places / s->extent;
    reach_range(&s->reach, part.begin * unit, part.end * unit, length, &sees.begin, &sees.end);
    return sees;
}

/* How much of the dimension the seats need beyond their own parts. */
static double halo_share(const struct split *s, int64_t length, int64_t seats) {
    int64_t beyond = 0;
    for (int64_t i = 0; i < seats; i++) {
        const struct span has = own_part(length, seats, i);
        const struct span sees = windows_part(s, length, seats, i);
        beyond += (sees.begin < has.begin ? has.begin - sees.begin : 0) +
                  (sees.end > has.end ? sees.end - has.end : 0);
    }
    return (double)beyond / (double)length;
}

bool dist_moves(const struct dist *d, const tri_tensor *t, const struct layout *to) {
    const struct layout *from = &d->has[t->id];
    for (int a = 0; a < d->mesh.n; a++) {
        const struct split *f = &from->axis[a], *s = &to->axis[a];
        if (f->kind == WHOLE || split_equal(f, s)) continue;
        if (!split_sees_neighbours(f, s) ||
            halo_share(s, t->spec.shape.dim[s->dim], d->mesh.axis[a].size) > 0)
            return true;
    }
    return false;
}

static bool add_move(struct dist *d, const tri_tensor *t, int node, int input,
                     const struct layout *to) {
    const struct layout *from = &d->has[t->id];
    double bytes = (double)base_spec_bytes(&t->spec);
    if (!dist_moves(d, t, to)) return true;
    for (size_t i = 0; i < d->n_moves; i++)
        if (d->move[i].tensor == t->id && (d->move[i].node < 0) == (node < 0) &&
            layout_equal(&d->move[i].to, to))
            return true;
    if (!ARRAY_GROW(d->move, d->n_moves, d->capacity)) return false;
    for (int a = 0; a < d->mesh.n; a++) {
        const struct split *f = &from->axis[a], *s = &to->axis[a];
        if (f->kind == SPLIT && split_equal(f, s)) bytes /= (double)d->mesh.axis[a].size;
        if (split_sees_neighbours(f, s))
            bytes *= halo_share(s, t->spec.shape.dim[s->dim], d->mesh.axis[a].size);
    }
    d->move[d->n_moves++] = (struct move){t->id, node, input, *from, *to, (size_t)bytes};
    return true;
}

/* Windows that lie side by side need nothing beyond the parts of what they are windows of. */
static void drop_side_by_side(const struct dist *d, const tri_shape *shape, struct layout *l) {
    for (int a = 0; a < d->mesh.n; a++) {
        const int64_t seats = d->mesh.axis[a].size;
        struct split *s = &l->axis[a];
        bool same = s->reach.over > 0;
        for (int b = 0; b < d->mesh.n; b++) same &= b == a || !split_equal(s, &l->axis[b]);
        for (int64_t i = 0; i < seats && same; i++) {
            const struct span has = own_part(shape->dim[s->dim], seats, i);
            const struct span sees = windows_part(s, shape->dim[s->dim], seats, i);
            same = has.begin == sees.begin && has.end == sees.end;
        }
        if (same) *s = split_places(s->dim, shape->dim[s->dim]);
    }
}

/* Nodes name the same places by different factors; layouts that are compared do not. */
static void make_normal(struct dist *d) {
    for (size_t i = 0; i < d->g->n_nodes; i++) {
        const tri_node *n = d->g->node[i];
        for (int k = 0; k < n->n_in; k++) {
            struct layout *need = &d->need[d->first[i] + (size_t)k];
            drop_side_by_side(d, &n->in[k]->spec.shape, need);
            layout_normal(&d->mesh, need);
        }
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
