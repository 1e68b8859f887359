/* SPDX-License-Identifier: Apache-2.0
 * A node moves if it computes something, is not random, and all its inputs have moved or are
 * parameters, states, literals or results of `pre`. Lanes of several sizes share what is moved. A
 * piece of a parameter needs no copy if it is in one piece in memory. */
#include "plan/hoist.h"

#include <stdlib.h>
#include <string.h>

#include "plan/rewrite.h"

struct mover {
    struct hoist *h;
    tri_graph *lane;
    bool *moves;       /* by node of the lane */
    bool *used;        /* by tensor of the lane: a node that stays, or a result, uses it */
    tri_tensor **there; /* by tensor of the lane: the same in `pre` */
};

/* ---- what moves ---- */

static bool in_pre(const struct mover *m, const tri_node *n) {
    return m->moves[n->id] || node_is_stored(n) || node_is_literal(n) ||
           (m->h->pre && phase_gives(m->h->pre, n));
}

static void mark(struct mover *m) {
    const tri_graph *g = m->lane;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tri_node *n = g->node[i];
        bool moves = node_runs(n) && n->n_in && !n->entry->op->random;
        for (int k = 0; k < n->n_in; k++) moves = moves && in_pre(m, n->in[k]->node);
        m->moves[i] = moves;
        for (int k = 0; k < n->n_in && !moves; k++) m->used[n->in[k]->id] = true;
    }
    graph_mark_results(g, m->used);
}

/* ---- views ---- */

/* Whether the node is a piece of a stored tensor. *first: its first element. */
static bool is_view(const tri_node *n, int64_t *first) {
    const tri_tensor *x = n->n_in ? n->in[0] : NULL;
    if (!n->entry->op->piece || !node_is_stored(x->node) || x->block || *x->pack) return false;
    *first = n->entry->op->piece(n);
    return *first >= 0;
}

static tri_tensor *view(tri_graph *g, const tri_node *n, int64_t first) {
    return graph_apply(g, "view", 0, NULL, 4,
                       (const tri_attr[]){{.name = "name", .text = source_name(n->in[0]->node)},
                                          {.name = "first", .i = first},
                                          {.name = "type", .i = n->out->spec.type},
                                          {.name = "shape", .list = n->out->spec.shape}});
}

/* ---- to `pre` ---- */

static bool same_format(const tri_tensor *a, const tri_tensor *b) {
    return a->block == b->block && !strcmp(a->pack, b->pack);
}

static bool same(const tri_node *a, const tri_node *b, tri_tensor *const *in) {
    bool same = a->entry == b->entry && a->n_in == b->n_in && a->n_out == b->n_out;
    for (int i = 0; i < a->n_in && same; i++) same = a->in[i] == in[i];
    for (int i = 0; i < a->n_out && same; i++) same = same_format(&a->out[i], &b->out[i]);
    for (int i = 0; i < a->entry->n_attrs && same; i++)
        same = attr_equal(a->entry->attr[i].kind, &a->attr[i], &b->attr[i]);
    return same;
}

static tri_node *find(const tri_graph *g, const tri_node *n, tri_tensor *const *in) {
    for (size_t i = 0; i < g->n_nodes; i++)
        if (same(g->node[i], n, in)) return g->node[i];
    return NULL;
}

static tri_tensor *bring(struct mover *m, tri_tensor *t);

/* The node in `pre`; null after a mistake. */
static tri_node *move(struct mover *m, const tri_node *n) {
    tri_graph *pre = m->h->pre;
    tri_tensor **in = calloc((size_t)n->n_in + 1, sizeof *in);
    bool ok = in != NULL;
    for (int i = 0; ok && i < n->n_in; i++) ok = (in[i] = bring(m, n->in[i])) != NULL;
    tri_node *copy = ok ? find(pre, n, in) : NULL;
    if (ok && !copy) copy = graph_copy(pre, n, in, n->attr, n->name);
    free(in);
    return ok && copy != pre->poison_node ? copy : NULL;
}

static tri_tensor *bring(struct mover *m, tri_tensor *t) {
    if (m->there[t->id]) return m->there[t->id];
    const struct graph_output *o = phase_gives(m->h->pre, t->node);
    tri_node *n = o ? NULL : move(m, t->node);
    return m->there[t->id] = o ? o->tensor : n ? &n->out[t->index] : NULL;
}

/* Its number as a result of `pre`. */
static int number_of(struct mover *m, tri_tensor *t) {
    tri_graph *pre = m->h->pre;
    int next = m->h->whole->n_tensors;
    for (size_t i = 0; i < pre->n_outputs; i++) {
        const struct graph_output *o = &pre->output[i];
        if (o->tensor == t) return o->of;
        if (o->of >= next) next = o->of + 1;
    }
    phase_put(pre, next, t);
    return next;
}

static bool needed(const struct mover *m, const tri_node *n) { return node_any(n, m->used); }

/* Makes in `pre` what the lane uses of it, while the lane's nodes still have their own inputs. */
static bool bring_all(struct mover *m) {
    bool ok = true;
    for (size_t i = 0; i < m->lane->n_nodes && ok; i++) {
        tri_node *n = m->lane->node[i];
        int64_t first;
        if (!m->moves[i] || is_view(n, &first)) continue;
        for (int k = 0; k < n->n_out && ok; k++)
            if (m->used[n->out[k].id]) ok = bring(m, &n->out[k]) != NULL;
    }
    return ok;
}

static tri_status replace(struct mover *m) {
    struct rewrite r;
    tri_node *n;
    bool ok = bring_all(m);
    rewrite_begin(&r, m->lane);
    r.failed |= !ok;
    for (size_t i = 0; (n = rewrite_next(&r, i)); i++) {
        if (!m->moves[n->id]) {
            if (n->n_in || node_is(n, "input") || needed(m, n)) rewrite_keep(&r, n);
            continue;
        }
        int64_t first;
        if (is_view(n, &first)) {
            if (m->used[n->out->id]) rewrite_replace(&r, n->out, view(m->lane, n, first));
            continue;
        }
        for (int k = 0; k < n->n_out; k++) {
            tri_tensor *t = m->used[n->out[k].id] ? m->there[n->out[k].id] : NULL;
            if (t) rewrite_replace(&r, &n->out[k], phase_given(m->lane, t, number_of(m, t), 0));
        }
    }
    return rewrite_end(&r);
}

tri_status hoist(struct hoist *h, tri_graph *lane) {
    struct mover m = {.h = h, .lane = lane, .moves = calloc(lane->n_nodes + 1, sizeof *m.moves),
                      .used = calloc((size_t)lane->n_tensors + 1, sizeof *m.used),
                      .there = calloc((size_t)lane->n_tensors + 1, sizeof(tri_tensor *))};
    bool any = false, copies = false;
    int64_t first;
    tri_status status = TRI_OK;
    if (!m.moves || !m.used || !m.there) status = base_no_memory("a pass over the graph");
    if (!status) mark(&m);
    for (size_t i = 0; !status && i < lane->n_nodes; i++) {
        any |= m.moves[i];
        copies |= m.moves[i] && !is_view(lane->node[i], &first);
    }
    if (copies && !h->pre && !(h->pre = graph_like(h->whole))) status = TRI_FAILED;
    if (any && !status) status = replace(&m);
    if (copies && !status) status = tri_graph_status(h->pre);
    free(m.moves);
    free(m.used);
    free(m.there);
    return status;
}
