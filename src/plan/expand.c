/* SPDX-License-Identifier: Apache-2.0
 * Pieces of a tensor have the shape of a box in its refined dimensions while they are cut and
 * joined; a reshape, which copies nothing, gives them the tensor's rank. */
#include "plan/expand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A tensor in another layout, at some coordinates. */
struct made {
    struct layout to;
    int16_t at[MESH_MOST_AXES];
    tri_tensor *tensor;
    int next; /* of the same tensor; -1: none */
};

struct expander {
    const struct dist *d;
    const struct mesh *mesh;
    tri_graph *g;
    tri_tensor ***instance; /* by tensor: its instances, by coordinates along axes not whole */
    struct made *made;
    size_t n_made, capacity;
    int *last; /* by tensor: the latest in `made`; -1: none */
    bool failed;
    /* While nodes are made: */
    const tri_node *for_node;
    int16_t owner[MESH_MOST_AXES];
    int move;
};

/* ---- coordinates ---- */

static int64_t instances_of(const struct mesh *m, const struct layout *l) {
    int64_t n = 1;
    for (int a = 0; a < m->n; a++)
        if (l->axis[a].kind != WHOLE) n *= m->axis[a].size;
    return n;
}

static int64_t instance_at(const struct mesh *m, const struct layout *l, const int16_t *at) {
    int64_t i = 0;
    for (int a = 0; a < m->n; a++)
        if (l->axis[a].kind != WHOLE) i = i * m->axis[a].size + at[a];
    return i;
}

/* The coordinates of instance i; -1 along axes along which the layout is whole. */
static void coordinates(const struct mesh *m, const struct layout *l, int64_t i, int16_t *at) {
    for (int a = m->n; a-- > 0;) {
        at[a] = -1;
        if (l->axis[a].kind == WHOLE) continue;
        at[a] = (int16_t)(i % m->axis[a].size);
        i /= m->axis[a].size;
    }
    for (int a = m->n; a < MESH_MOST_AXES; a++) at[a] = -1;
}

/* ---- nodes of moves ---- */

static tri_tensor *own(const struct expander *x, tri_tensor *t) {
    if (t && t->id >= 0) {
        memcpy(t->node->owner, x->owner, sizeof x->owner);
        t->node->move = x->move;
    }
    return t;
}

static tri_tensor *cut_dim(const struct expander *x, tri_tensor *t, int dim, int64_t begin,
                           int64_t end) {
    if (begin == 0 && end == t->spec.shape.dim[dim]) return t;
    return own(x, (tri_slice)(t, dim, begin, end));
}

static tri_tensor *shaped(const struct expander *x, tri_tensor *t, tri_shape shape) {
    return base_shape_equal(&t->spec.shape, &shape) ? t : own(x, (tri_reshape)(t, shape));
}

static tri_tensor *join(const struct expander *x, tri_tensor *const *part, int n, int dim) {
    return n == 1 ? part[0] : own(x, (tri_concat)(part, n, dim));
}

/* The order of a sum over the parts of an axis: neighbours of equal size first, the rest from the
 * right, as over the lanes (lane_tree.h). */
static tri_tensor *expand_tree(tri_tensor *const *part, int64_t n, int partial) {
    static const char *const op[] = {[TRI_PARTIAL_SUM] = "add", [TRI_PARTIAL_MAX] = "maximum",
                                     [TRI_PARTIAL_AND] = "and"};
    int64_t left = 1;
    if (n == 1) return part[0];
    while (2 * left < n) left *= 2;
    tri_tensor *in[2] = {expand_tree(part, left, partial),
                         expand_tree(part + left, n - left, partial)};
    return graph_apply(tri_graph_of(in[0]), op[partial], 2, in, 0, NULL);
}

/* ---- a tensor in another layout ---- */

struct moving {
    struct expander *x;
    const tri_tensor *t; /* of the logical graph */
    const struct layout *from, *to;
    struct refined r;
    int16_t at[MESH_MOST_AXES]; /* of the source, as far as it is known */
};

/* The part of one source instance, whose own box is `has`. */
static tri_tensor *take(struct moving *v, const struct box *has, const struct box *want) {
    const struct expander *x = v->x;
    tri_tensor *t = x->instance[v->t->id][instance_at(x->mesh, v->from, v->at)];
    tri_shape shape = {.rank = v->r.n};
    for (int i = 0; i < v->r.n; i++) shape.dim[i] = has->end[i] - has->begin[i];
    t = shaped(x, t, shape);
    for (int i = 0; i < v->r.n; i++)
        t = cut_dim(x, t, i, want->begin[i] - has->begin[i], want->end[i] - has->begin[i]);
    return t;
}

/* Covers the box `want` with pieces of the sources along the split axes from `axis` on. `has`: what
 * the sources have along the axes before. */
static tri_tensor *cover(struct moving *v, int axis, const struct box *has,
                         const struct box *want) {
    const struct expander *x = v->x;
    tri_tensor *part[MESH_MOST_SEATS];
    int n = 0;
    while (axis < x->mesh->n && v->from->axis[axis].kind != SPLIT) axis++;
    if (axis == x->mesh->n) return take(v, has, want);
    const struct split *s = &v->from->axis[axis];
    int dim = refined_dim(&v->r, s);
    for (int64_t i = 0; i < x->mesh->axis[axis].size; i++) {
        struct box its = *has, cut = *want;
        CHECK(layout_narrow(x->mesh, &v->r, s, axis, i, &its));
        if (its.begin[dim] > cut.begin[dim]) cut.begin[dim] = its.begin[dim];
        if (its.end[dim] < cut.end[dim]) cut.end[dim] = its.end[dim];
        if (cut.begin[dim] >= cut.end[dim]) continue;
        v->at[axis] = (int16_t)i;
        part[n++] = cover(v, axis + 1, &its, &cut);
    }
    return join(x, part, n, dim);
}

/* Combines the partial results along the axes from `axis` on that `to` wants combined. */
static tri_tensor *combine(struct moving *v, int axis, const struct box *want) {
    const struct expander *x = v->x;
    tri_tensor *part[MESH_MOST_SEATS];
    while (axis < x->mesh->n &&
           (v->from->axis[axis].kind != PARTIAL || v->to->axis[axis].kind == PARTIAL))
        axis++;
    if (axis == x->mesh->n) {
        struct box all = refined_all(&v->r);
        return cover(v, 0, &all, want);
    }
    int64_t n = x->mesh->axis[axis].size;
    size_t before = x->g->n_nodes;
    for (int64_t i = 0; i < n; i++) {
        v->at[axis] = (int16_t)i;
        part[i] = combine(v, axis + 1, want);
    }
    tri_tensor *sum = expand_tree(part, n, v->from->axis[axis].partial);
    for (size_t i = before; i < x->g->n_nodes; i++) own(x, x->g->node[i]->out);
    return sum;
}

static int find_move(const struct expander *x, int tensor, const struct layout *to, bool leaves) {
    for (size_t i = 0; i < x->d->n_moves; i++) {
        const struct move *m = &x->d->move[i];
        if (m->tensor == tensor && (m->node < 0) == leaves && layout_equal(&m->to, to))
            return (int)i + 1;
    }
    return 0;
}

/* ---- layouts without a common refinement ---- */

/* What is wanted of a tensor, as a box in the refinement of the layout it shall have. */
struct wanted {
    struct refined r;
    struct box box;
};

/* The refined dimensions [first, end) of dimension d. */
static void refined_of(const struct refined *r, int d, int *first, int *end) {
    *first = 0;
    while (r->dim[*first] != d) ++*first;
    *end = *first;
    while (*end < r->n && r->dim[*end] == d) ++*end;
}

/* Run i of dimension d: places [*begin, *end) that lie side by side. False: there are fewer. */
static bool run_of(const struct wanted *w, int d, int64_t i, int64_t *begin, int64_t *end) {
    const struct refined *r = &w->r;
    int64_t after = 1, before = 1, place = 0;
    int first, last;
    refined_of(r, d, &first, &last);
    for (last--; last > first && w->box.begin[last] == 0 && w->box.end[last] == r->extent[last];)
        after *= r->extent[last--];
    *begin = w->box.begin[last] * after;
    *end = w->box.end[last] * after;
    after *= r->extent[last];
    for (int k = last; k-- > first;) {
        const int64_t n = w->box.end[k] - w->box.begin[k];
        place += (w->box.begin[k] + i / before % n) * after;
        before *= n;
        after *= r->extent[k];
    }
    *begin += place;
    *end += place;
    return i < before;
}

/* Sets the box, in dimension d, to the places from `begin` on, at most up to `end`, that are a box
 * in the refinement. Returns where it ends. */
static int64_t set_run(const struct refined *r, int d, int64_t begin, int64_t end,
                       struct box *box) {
    int64_t after = 1, next = begin;
    int first, last;
    refined_of(r, d, &first, &last);
    for (int k = first; k < last; k++) after *= r->extent[k];
    for (int k = first; k < last; k++) {
        after /= r->extent[k];
        const int64_t at = begin / after % r->extent[k];
        box->begin[k] = at;
        box->end[k] = at + 1;
        if (next > begin) { /* an outer dimension has the range */
            box->begin[k] = 0;
            box->end[k] = r->extent[k];
        } else if (begin % after == 0 && end - begin >= after) {
            const int64_t n = (end - begin) / after, most = r->extent[k] - at;
            box->end[k] = at + (n < most ? n : most);
            next = begin + (box->end[k] - at) * after;
        }
    }
    return next;
}

/* What is wanted in the dimensions from d on; `box`: of the sources, in those before. */
static tri_tensor *in_runs(struct moving *v, const struct wanted *w, int d, struct box *box) {
    const int rank = v->t->spec.shape.rank;
    tri_tensor **part = NULL, *all = v->x->g->poison;
    size_t n = 0, capacity = 0;
    int64_t begin, end;
    if (d == rank)
        return shaped(v->x, combine(v, 0, box), box_shape(&v->r, box, rank));
    for (int64_t i = 0; run_of(w, d, i, &begin, &end) && !v->x->failed; i++)
        while (begin < end && !v->x->g->status) {
            begin = set_run(&v->r, d, begin, end, box);
            if (!ARRAY_GROW(part, n, capacity)) v->x->failed = true;
            if (v->x->failed) break;
            part[n++] = in_runs(v, w, d + 1, box);
        }
    if (!v->x->failed && !v->x->g->status) all = join(v->x, part, (int)n, d);
    free(part);
    return all;
}

#define MOST_PIECES 64 /* of a part; with more it is cut from the whole tensor */

static bool few_pieces(const struct moving *v, const struct wanted *w) {
    int64_t all = 1, begin, end;
    struct box box;
    for (int d = 0; d < v->t->spec.shape.rank && all <= MOST_PIECES; d++) {
        int64_t pieces = 0;
        for (int64_t i = 0; pieces <= MOST_PIECES && run_of(w, d, i, &begin, &end); i++)
            for (; begin < end && pieces <= MOST_PIECES; pieces++)
                begin = set_run(&v->r, d, begin, end, &box);
        all *= pieces;
    }
    return all <= MOST_PIECES;
}

static tri_tensor *moved(struct expander *x, const tri_tensor *t, const struct layout *to,
                         const int16_t *at, bool leaves);

static tri_tensor *from_whole(const struct moving *v, const struct wanted *w, const int16_t *at,
                              bool leaves) {
    struct expander *x = v->x;
    struct layout all = {{{.kind = WHOLE}}};
    int16_t owner[MESH_MOST_AXES];
    const int move = x->move;
    memcpy(owner, x->owner, sizeof owner);
    for (int a = 0; a < x->mesh->n; a++)
        if (v->to->axis[a].kind == PARTIAL) all.axis[a] = v->to->axis[a];
    tri_tensor *t = moved(x, v->t, &all, at, leaves);
    memcpy(x->owner, owner, sizeof owner);
    x->move = move;
    if (x->failed || x->g->status) return x->g->poison;
    tri_shape shape = {.rank = w->r.n};
    for (int i = 0; i < w->r.n; i++) shape.dim[i] = w->r.extent[i];
    t = shaped(x, t, shape);
    for (int i = 0; i < w->r.n; i++) t = cut_dim(x, t, i, w->box.begin[i], w->box.end[i]);
    return shaped(x, t, box_shape(&w->r, &w->box, v->t->spec.shape.rank));
}

static tri_tensor *make_moved(struct expander *x, const tri_tensor *t, const struct layout *to,
                              const int16_t *at, bool leaves) {
    const struct layout *from = &x->d->has[t->id];
    struct moving v = {.x = x, .t = t, .from = from, .to = to};
    const struct layout *both[] = {from, to};
    struct wanted w;
    memcpy(v.at, at, sizeof v.at);
    if (layout_refine(&t->spec.shape, both, 2, x->mesh, &v.r) &&
        layout_box(x->mesh, &v.r, to, at, &w.box))
        return shaped(x, combine(&v, 0, &w.box), box_shape(&v.r, &w.box, t->spec.shape.rank));
    struct box box;
    CHECK(layout_refine(&t->spec.shape, &from, 1, x->mesh, &v.r));
    CHECK(layout_refine(&t->spec.shape, &to, 1, x->mesh, &w.r));
    CHECK(layout_box(x->mesh, &w.r, to, at, &w.box));
    return few_pieces(&v, &w) ? in_runs(&v, &w, 0, &box) : from_whole(&v, &w, at, leaves);
}

/* Tensor t in the layout, for the seats at these coordinates. */
static tri_tensor *moved(struct expander *x, const tri_tensor *t, const struct layout *to,
                         const int16_t *at, bool leaves) {
    const struct layout *from = &x->d->has[t->id];
    int16_t seat[MESH_MOST_AXES];
    if (x->g->status) return x->g->poison;
    if (layout_equal(from, to)) return x->instance[t->id][instance_at(x->mesh, from, at)];
    for (int a = 0; a < MESH_MOST_AXES; a++)
        seat[a] = a < x->mesh->n && to->axis[a].kind != WHOLE ? at[a] : -1;
    for (int i = x->last[t->id]; i >= 0; i = x->made[i].next)
        if (layout_equal(&x->made[i].to, to) && !memcmp(x->made[i].at, seat, sizeof seat))
            return x->made[i].tensor;
    memcpy(x->owner, seat, sizeof seat);
    x->move = find_move(x, t->id, to, leaves);
    tri_push(x->g, "%s.%s", x->for_node->name, "move");
    x->g->backward = x->for_node->backward;
    tri_tensor *new = make_moved(x, t, to, seat, leaves);
    x->g->backward = false;
    tri_pop(x->g);
    if (x->g->status || !ARRAY_GROW(x->made, x->n_made, x->capacity)) {
        x->failed = true;
        return x->g->poison;
    }
    struct made m = {.to = *to, .tensor = new, .next = x->last[t->id]};
    memcpy(m.at, seat, sizeof seat);
    x->last[t->id] = (int)x->n_made;
    x->made[x->n_made++] = m;
    return new;
}

/* ---- instances of nodes ---- */

/* The places of factor f that the seat has, of those of the whole. */
static void factor_part(const struct expander *x, const tri_node *n, uint8_t factor,
                        int64_t extent, const int16_t *at, int64_t *begin, int64_t *end) {
    *begin = 0;
    *end = extent;
    for (int a = 0; a < x->mesh->n; a++) {
        const struct use *u = &x->d->use[n->id][a];
        int64_t b, e, unit;
        if (u->kind != USE_FACTOR || u->factor != factor || u->outer != 1) continue;
        unit = extent / u->extent;
        part_range((*end - *begin) / unit, x->mesh->axis[a].size, at[a], &b, &e);
        *end = *begin + e * unit;
        *begin += b * unit;
    }
}

/* Sets the attributes that tri_op.follows lists, and those of windows. */
static void follow_factors(const struct expander *x, const tri_node *n, const int16_t *at,
                           tri_attr *attrs) {
    const struct op_entry *e = n->entry;
    struct factors f;
    int64_t begin, end;
    if (!factors_of(n, &f)) {
        graph_fail(x->g, base_last(), "%s", tri_message());
        return;
    }
    for (int i = 0; i < e->n_follows; i++) {
        const struct factor_follow *follow = &e->follow[i];
        int64_t extent = f.extent[follow->letter], *v = &attrs[follow->attr].i;
        factor_part(x, n, follow->letter, extent, at, &begin, &end);
        if (begin == 0 && end == extent) continue;
        *v = follow->what == FOLLOW_SIZE    ? *v * (end - begin) / extent
             : follow->what == FOLLOW_BEGIN ? *v + begin
             : *v                           ? *v
                                            : extent;
    }
    for (uint8_t c = 'a'; c <= 'z'; c++) {
        int64_t extent = f.extent[c];
        if (!f.reach[c].over) continue;
        factor_part(x, n, c, extent, at, &begin, &end);
        int64_t part[2] = {begin, end}, seen[2];
        reach_range(&f.reach[c], begin, end, f.length[c], &seen[0], &seen[1]);
        if (begin > 0 || end < extent) e->op->part(n, (char)c, part, seen, attrs);
    }
    factors_free(&f);
}

/* Where the elements of a random node's result are in the whole tensor. */
static void place_attrs(const struct expander *x, const tri_node *n, const int16_t *at,
                        tri_attr *attrs) {
    const struct layout *l = &x->d->has[n->out[0].id];
    struct refined r;
    struct box b;
    CHECK(layout_refine(&n->out[0].spec.shape, &l, 1, x->mesh, &r) &&
          layout_box(x->mesh, &r, l, at, &b));
    for (int i = 0; i < n->entry->n_attrs; i++) {
        const char *name = n->entry->attr[i].name;
        bool local = !strcmp(name, "local"), origin = !strcmp(name, "origin");
        if (!local && !origin && strcmp(name, "whole")) continue;
        attrs[i].list.rank = r.n;
        for (int k = 0; k < r.n; k++)
            attrs[i].list.dim[k] = local    ? b.end[k] - b.begin[k]
                                   : origin ? b.begin[k]
                                            : r.extent[k];
    }
}

static void local_attrs(const struct expander *x, const tri_node *n, const int16_t *at,
                        tri_attr *attrs) {
    const struct op_entry *e = n->entry;
    const struct layout *l = &x->d->has[n->out[0].id];
    struct refined r;
    struct box b;
    bool shape = false;
    memcpy(attrs, n->attr, sizeof *attrs * (size_t)e->n_attrs);
    for (int i = 0; i < e->n_attrs; i++) {
        shape |= e->attr[i].kind == ATTR_SHAPE;
        if (e->op->random && !strcmp(e->attr[i].name, "key")) attrs[i].text = node_key(n);
        if (e->op->count && !strcmp(e->attr[i].name, "count")) attrs[i].i = e->op->count(n);
    }
    if (shape) {
        CHECK(layout_refine(&n->out[0].spec.shape, &l, 1, x->mesh, &r) &&
              layout_box(x->mesh, &r, l, at, &b));
        for (int i = 0; i < e->n_attrs; i++)
            if (e->attr[i].kind == ATTR_SHAPE)
                attrs[i].list = box_shape(&r, &b, n->out[0].spec.shape.rank);
    }
    if (e->op->follows || e->op->part) follow_factors(x, n, at, attrs);
    if (e->op->random && node_attr(n, "whole")) place_attrs(x, n, at, attrs);
}

/* "h.0.mlp.c_fc.matmul@1": the coordinates along the axes where the node has several instances. */
static const char *instance_name(const struct expander *x, const tri_node *n, const int16_t *at) {
    struct text t = {0};
    bool any = false;
    for (int a = 0; a < x->mesh->n; a++) {
        if (at[a] < 0) continue;
        text_add(&t, "%s%d", any ? "," : "@", at[a]);
        any = true;
    }
    if (!any && !t.failed) return n->name;
    char *name = t.failed ? NULL : arena_text(&x->g->arena, "%s%s", n->name, t.data);
    text_free(&t);
    return name;
}

static void make_instance(struct expander *x, const tri_node *n, const int16_t *at, int64_t i) {
    tri_attr attrs[MAX_ATTRS];
    tri_tensor **in = calloc((size_t)n->n_in + 1, sizeof *in);
    x->failed |= !in;
    for (int k = 0; k < n->n_in && !x->failed; k++)
        in[k] = moved(x, n->in[k], dist_need(x->d, n, k), at, false);
    const char *name = instance_name(x, n, at);
    x->failed |= !name;
    if (!x->failed) {
        local_attrs(x, n, at, attrs);
        tri_node *copy = graph_copy(x->g, n, in, attrs, name);
        if (copy != x->g->poison_node) {
            memcpy(copy->owner, at, sizeof copy->owner);
            for (int k = 0; k < n->n_out; k++) x->instance[n->out[k].id][i] = &copy->out[k];
        }
    }
    free(in);
}

static void expand_node(struct expander *x, const tri_node *n) {
    struct layout active = {{{.kind = WHOLE}}};
    int16_t at[MESH_MOST_AXES];
    x->for_node = n;
    for (int a = 0; a < x->mesh->n; a++)
        if (x->d->use[n->id][a].kind != USE_WHOLE) active.axis[a].kind = SPLIT;
    int64_t count = instances_of(x->mesh, &active);
    for (int k = 0; k < n->n_out; k++) {
        x->instance[n->out[k].id] =
            arena_alloc(&x->g->arena, sizeof(tri_tensor *) * (size_t)count);
        x->failed |= !x->instance[n->out[k].id];
    }
    for (int64_t i = 0; i < count && !x->failed && !x->g->status; i++) {
        coordinates(x->mesh, &active, i, at);
        make_instance(x, n, at, i);
    }
}

static void expand_results(struct expander *x) {
    static const struct layout whole;
    static const int16_t nowhere[MESH_MOST_AXES] = {-1, -1, -1, -1, -1, -1, -1, -1};
    const tri_graph *from = x->d->g;
    for (size_t i = 0; i < from->n_outputs && !x->failed && !x->g->status; i++) {
        struct graph_output o = from->output[i];
        x->for_node = o.tensor->node;
        o.tensor = moved(x, o.tensor, &whole, nowhere, true);
        x->failed |= !graph_put_output(x->g, o);
    }
    for (size_t i = 0; i < from->n_updates && !x->failed && !x->g->status; i++) {
        const struct graph_update *u = &from->update[i];
        x->for_node = u->value->node;
        tri_tensor *target = moved(x, u->target, &whole, nowhere, true);
        tri_tensor *value = moved(x, u->value, &whole, nowhere, true), *condition = NULL;
        if (u->condition) condition = moved(x, u->condition, &whole, nowhere, true);
        x->failed |= !graph_put_update(x->g, (struct graph_update){target, value, condition});
    }
}

tri_graph *expand(const struct dist *d) {
    struct expander x = {.d = d, .mesh = &d->mesh, .g = graph_like(d->g)};
    size_t tensors = (size_t)d->g->n_tensors + 1;
    x.instance = calloc(tensors, sizeof(tri_tensor **));
    x.last = malloc(tensors * sizeof *x.last);
    x.failed = !x.g || !x.instance || !x.last;
    for (size_t i = 0; i < tensors && x.last; i++) x.last[i] = -1;
    for (size_t i = 0; i < d->g->n_nodes && !x.failed && !x.g->status; i++)
        expand_node(&x, d->g->node[i]);
    if (!x.failed && !x.g->status) expand_results(&x);
    free(x.instance);
    free(x.made);
    free(x.last);
    tri_status status = x.g ? tri_graph_status(x.g) : TRI_OK;
    if (x.failed && !status) base_no_memory("the nodes of a mesh");
    if (!x.failed && !status) return x.g;
    tri_graph_free(x.g);
    return NULL;
}
