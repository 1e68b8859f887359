/* SPDX-License-Identifier: Apache-2.0
 * The nodes of a unit are adjacent. The head, which is heavy, is never delayed: a node whose inputs
 * are not ready when the head has run stays outside of the unit. */
#include "plan/follow.h"

#include <stdlib.h>

#include "graph/unit.h"

struct set {
    tri_node *node[UNIT_MOST];
    int n;
};

struct follow {
    tri_graph *g;
    const struct target *target;
    tri_node **order; /* the new order */
    size_t n;
    bool *placed;     /* by node */
    int *first, *use; /* readers of node i: use[first[i]] up to use[first[i + 1]], in order */
    bool *result;       /* by tensor: a result of the graph */
    tri_node **changed; /* by tensor: the source of which it is the new value; null: none */
};

static bool holds(const struct set *s, const tri_node *n) {
    for (int i = 0; i < s->n; i++)
        if (s->node[i] == n) return true;
    return false;
}

static void place(struct follow *f, tri_node *n) {
    if (f->placed[n->id]) return;
    for (int i = 0; i < n->n_in; i++) /* at most sources are missing */
        place(f, n->in[i]->node);
    f->placed[n->id] = true;
    f->order[f->n++] = n;
}

/* Adds the node and those that it still needs, in order. False: more than a unit can hold. */
static bool add_needed(const struct follow *f, struct set *s, tri_node *n) {
    if (f->placed[n->id] || holds(s, n) || !node_runs(n)) return true;
    for (int i = 0; i < n->n_in; i++)
        if (!add_needed(f, s, n->in[i]->node)) return false;
    if (s->n == UNIT_MOST) return false;
    s->node[s->n++] = n;
    return true;
}

/* Whether all readers of a source run before a node of the set updates it in place. */
static bool in_time(const struct follow *f, const struct set *s) {
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->node[i]->n_out; k++) {
            const tri_node *target = f->changed[s->node[i]->out[k].id];
            for (int u = target ? f->first[target->id] : 0; target && u < f->first[target->id + 1];
                 u++) {
                const tri_node *reader = f->g->node[f->use[u]];
                if (!f->placed[reader->id] && !holds(s, reader)) return false;
            }
        }
    return true;
}

static bool kept(const struct follow *f, const struct set *s, const tri_tensor *t) {
    bool used = f->result[t->id];
    int id = t->node->id;
    for (int u = f->first[id]; u < f->first[id + 1] && !used; u++) {
        const tri_node *reader = f->g->node[f->use[u]];
        for (int k = 0; k < reader->n_in && !holds(s, reader); k++) used |= reader->in[k] == t;
    }
    return used;
}

/* Bytes of results that are still needed after the unit has run. */
static size_t bytes_kept(const struct follow *f, const struct set *s) {
    size_t bytes = 0;
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->node[i]->n_out; k++)
            if (kept(f, s, &s->node[i]->out[k])) bytes += base_spec_bytes(&s->node[i]->out[k].spec);
    return bytes;
}

/* Whether these nodes would have run next in any case. */
static bool next_anyway(const struct follow *f, const struct set *s) {
    int last = 0;
    for (int i = 0; i < s->n; i++) last = s->node[i]->id > last ? s->node[i]->id : last;
    for (int i = s->node[0]->id; i < last; i++)
        if (!f->placed[i] && node_runs(f->g->node[i]) && !holds(s, f->g->node[i])) return false;
    return true;
}

/* A node that runs earlier than before must not keep more memory in use until then. */
static bool worth_it(const struct follow *f, const struct set *more, const struct set *s) {
    return bytes_kept(f, more) <= bytes_kept(f, s) || next_anyway(f, more);
}

/* Adds one reader of the unit's results, with the nodes that it needs; false: there is none. */
static bool grow(const struct follow *f, struct set *s) {
    for (int i = 0; i < s->n; i++) {
        int id = s->node[i]->id;
        for (int u = f->first[id]; u < f->first[id + 1]; u++) {
            struct set more = *s;
            tri_node *reader = f->g->node[f->use[u]];
            if (f->placed[reader->id] || holds(s, reader)) continue;
            if (!add_needed(f, &more, reader) || !in_time(f, &more) ||
                !unit_has_one_owner((const tri_node *const *)more.node, more.n) ||
                !worth_it(f, &more, s) ||
                !f->target->fuses((const tri_node *const *)more.node, more.n))
                continue;
            *s = more;
            return true;
        }
    }
    return false;
}

static void place_unit(struct follow *f, tri_node *head, int unit) {
    struct set s = {.node = {head}, .n = 1};
    while (grow(f, &s)) continue;
    for (int i = 0; i < s.n; i++) {
        place(f, s.node[i]);
        if (s.n > 1) s.node[i]->unit = unit;
    }
}

static void find_readers(struct follow *f) {
    size_t n = f->g->n_nodes;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < n; i++)
            for (int k = 0; k < f->g->node[i]->n_in; k++) {
                int *at = &f->first[f->g->node[i]->in[k]->node->id + 2 - pass];
                if (pass) f->use[*at] = (int)i;
                ++*at;
            }
        for (size_t i = 1; !pass && i <= n + 1; i++) f->first[i] += f->first[i - 1];
    }
}

static size_t count_uses(const tri_graph *g) {
    size_t n = 0;
    for (size_t i = 0; i < g->n_nodes; i++) n += (size_t)g->node[i]->n_in;
    return n;
}

static void run(struct follow *f) {
    tri_graph *g = f->g;
    int unit = 0;
    find_readers(f);
    graph_mark_results(g, f->result);
    for (size_t i = 0; i < g->n_updates; i++)
        f->changed[g->update[i].value->id] = g->update[i].target->node;
    for (size_t i = 0; i < g->n_nodes; i++) {
        tri_node *n = g->node[i];
        if (f->placed[i]) continue;
        if (node_runs(n) && f->target->heads(n))
            place_unit(f, n, ++unit);
        else
            place(f, n);
    }
    graph_arrange(g, f->order, f->n);
}

tri_status follow(tri_graph *g, const struct target *target) {
    if (!target->heads) return TRI_OK;
    size_t n = g->n_nodes;
    struct follow f = {.g = g, .target = target, .order = calloc(n + 1, sizeof *f.order),
                       .placed = calloc(n + 1, sizeof *f.placed),
                       .first = calloc(n + 2, sizeof *f.first),
                       .use = calloc(count_uses(g) + 1, sizeof *f.use),
                       .result = calloc((size_t)g->n_tensors + 1, sizeof *f.result),
                       .changed = calloc((size_t)g->n_tensors + 1, sizeof *f.changed)};
    bool ok = f.order && f.placed && f.first && f.use && f.result && f.changed;
    if (ok) run(&f);
    free(f.order);
    free(f.placed);
    free(f.first);
    free(f.use);
    free(f.result);
    free(f.changed);
    return ok ? TRI_OK : base_no_memory("units");
}
