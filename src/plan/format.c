/* SPDX-License-Identifier: Apache-2.0
 * Nodes that take any block form groups: adjacent ones have the same format. Neighbours outside
 * vote for their blocks with the bytes of the tensors between them, and the group takes the block
 * with the most bytes. */
#include "plan/format.h"

#include <stdlib.h>
#include <string.h>

#include "plan/rewrite.h"

/* Votes for a block, in bytes of the tensors between the group and its neighbours. */
struct vote {
    int group, block;
    size_t bytes;
};

struct chooser {
    tri_graph *g;
    const struct target *target;
    struct format *wish; /* node after node: of its inputs, then of its outputs */
    size_t *first;       /* by node: the index of its first wish */
    int *group;          /* by node: a node of its group, the root itself; -1: none (union-find) */
    int *block;          /* by root of a group */
    struct vote *vote;
    size_t n_votes, capacity;
    /* The reorders made so far: for each tensor a list. */
    struct made {
        tri_tensor *tensor;
        int next;
    } *made;
    size_t n_made, made_capacity;
    int *last; /* by tensor: the index of its latest reorder, plus one; 0: none */
};

static struct format *wishes_in(const struct chooser *c, const tri_node *n) {
    return c->wish + c->first[n->id];
}
static struct format *wishes_out(const struct chooser *c, const tri_node *n) {
    return wishes_in(c, n) + n->n_in;
}

/* ---- groups ---- */

static int group_of(const struct chooser *c, int node) {
    if (c->group[node] < 0) return -1;
    while (c->group[node] != node) node = c->group[node] = c->group[c->group[node]];
    return node;
}

static void ask(struct chooser *c, const tri_node *n) {
    struct format *in = wishes_in(c, n), *out = wishes_out(c, n);
    bool any = false;
    if (n->n_in) c->target->formats(n, in, out);
    for (int i = 0; i < n->n_in + n->n_out; i++) any |= in[i].block == FORMAT_ANY;
    c->group[n->id] = any ? n->id : -1;
}

static void join(struct chooser *c, const tri_node *n) {
    for (int i = 0; i < n->n_in; i++) {
        const tri_tensor *t = n->in[i];
        if (wishes_in(c, n)[i].block != FORMAT_ANY || !node_reads(n, i) ||
            wishes_out(c, t->node)[t->index].block != FORMAT_ANY)
            continue;
        c->group[group_of(c, n->id)] = group_of(c, t->node->id);
    }
}

/* ---- votes ---- */

static bool add_vote(struct chooser *c, int node, const struct format *wish, const tri_tensor *t) {
    int group = group_of(c, node);
    size_t i = 0;
    while (i < c->n_votes && (c->vote[i].group != group || c->vote[i].block != wish->block)) i++;
    if (i == c->n_votes) {
        if (!ARRAY_GROW(c->vote, c->n_votes, c->capacity)) return false;
        c->vote[c->n_votes++] = (struct vote){group, wish->block, 0};
    }
    c->vote[i].bytes += base_spec_bytes(&t->spec);
    return true;
}

/* A node with a choice gets the vote of a neighbour without one. */
static bool vote(struct chooser *c, const tri_node *n) {
    bool ok = true;
    for (int i = 0; i < n->n_in && ok; i++) {
        const tri_tensor *t = n->in[i];
        const struct format *mine = &wishes_in(c, n)[i], *its = &wishes_out(c, t->node)[t->index];
        if (!node_reads(n, i)) continue;
        if ((mine->block == FORMAT_ANY) == (its->block == FORMAT_ANY)) continue;
        ok = mine->block == FORMAT_ANY ? add_vote(c, n->id, its, t)
                                      : add_vote(c, t->node->id, mine, t);
    }
    return ok;
}

/* Whether the block divides the channels of the node's tensors. */
static bool can(const struct chooser *c, const tri_node *n, int block) {
    const struct format *wish = wishes_in(c, n);
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const tri_tensor *t = i < n->n_in ? n->in[i] : &n->out[i - n->n_in];
        if (wish[i].block == FORMAT_ANY && t->spec.shape.dim[1] % block) return false;
    }
    return true;
}

static bool group_can(const struct chooser *c, int group, int block) {
    for (size_t i = 0; block && i < c->g->n_nodes; i++)
        if (group_of(c, (int)i) == group && !can(c, c->g->node[i], block)) return false;
    return true;
}

static int most_bytes(const void *a, const void *b) {
    const struct vote *x = a, *y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    return x->block < y->block ? -1 : x->block > y->block;
}

/* Each group takes the block with the most bytes that divides all its tensors' channels. */
static void decide(struct chooser *c) {
    if (c->n_votes) qsort(c->vote, c->n_votes, sizeof *c->vote, most_bytes);
    for (size_t i = 0; i < c->g->n_nodes; i++) c->block[i] = FORMAT_ANY;
    for (size_t i = 0; i < c->n_votes; i++) {
        int *block = &c->block[c->vote[i].group];
        if (*block == FORMAT_ANY && group_can(c, c->vote[i].group, c->vote[i].block))
            *block = c->vote[i].block;
    }
    for (size_t i = 0; i < c->g->n_nodes; i++) {
        struct format *wish = wishes_in(c, c->g->node[i]);
        int group = group_of(c, (int)i), all = c->g->node[i]->n_in + c->g->node[i]->n_out;
        for (int k = 0; group >= 0 && k < all; k++)
            if (wish[k].block == FORMAT_ANY)
                wish[k].block = c->block[group] == FORMAT_ANY ? 0 : c->block[group];
    }
}

/* ---- reorders ---- */

static bool has_format(const tri_tensor *t, const struct format *f) {
    return t->block == f->block && !strcmp(t->pack, f->pack);
}

/* The tensor in this format: itself, an existing reorder, or a new one. */
static tri_tensor *reordered(struct chooser *c, tri_tensor *t, const struct format *f) {
    if (has_format(t, f)) return t;
    for (int i = c->last[t->id]; i; i = c->made[i - 1].next)
        if (has_format(c->made[i - 1].tensor, f)) return c->made[i - 1].tensor;
    tri_tensor *new = graph_apply(c->g, "reorder", 1, &t, 0, NULL);
    if (c->g->status || !ARRAY_GROW(c->made, c->n_made, c->made_capacity)) return NULL;
    memcpy(new->node->owner, t->node->owner, sizeof t->node->owner);
    new->block = f->block;
    memcpy(new->pack, f->pack, sizeof new->pack);
    c->made[c->n_made++] = (struct made){new, c->last[t->id]};
    c->last[t->id] = (int)c->n_made;
    return new;
}

static bool format_node(struct chooser *c, struct rewrite *r, tri_node *n,
                        const struct format *wish) {
    bool ok = true;
    rewrite_enter(r, n, "format");
    for (int i = 0; i < n->n_in && ok; i++) {
        if (!node_reads(n, i)) continue;
        tri_tensor *t = reordered(c, n->in[i], &wish[i]);
        ok = t != NULL;
        if (ok) n->in[i] = t;
    }
    rewrite_leave(r);
    for (int i = 0; i < n->n_out; i++) {
        n->out[i].block = wish[n->n_in + i].block;
        memcpy(n->out[i].pack, wish[n->n_in + i].pack, sizeof n->out[i].pack);
    }
    return ok;
}

/* Named outputs and the values of updates are plain, as readers outside expect. */
static tri_tensor *plain(struct chooser *c, struct rewrite *r, tri_tensor *t) {
    if (!t->block && !*t->pack) return t;
    rewrite_enter(r, t->node, "format");
    t = reordered(c, t, &(struct format){0});
    rewrite_leave(r);
    return t;
}

static bool format_results(struct chooser *c, struct rewrite *r) {
    tri_graph *g = c->g;
    bool ok = true;
    for (size_t i = 0; i < g->n_outputs; i++)
        ok &= (g->output[i].tensor = plain(c, r, g->output[i].tensor)) != NULL;
    for (size_t i = 0; i < g->n_updates; i++)
        ok &= (g->update[i].value = plain(c, r, g->update[i].value)) != NULL;
    return ok;
}

static tri_status format_all(struct chooser *c) {
    struct rewrite r;
    tri_node *n;
    bool ok = true;
    rewrite_begin(&r, c->g);
    for (size_t i = 0; ok && (n = rewrite_next(&r, i)); i++) {
        ok = format_node(c, &r, n, wishes_in(c, n));
        if (ok) rewrite_keep(&r, n);
    }
    ok = ok && format_results(c, &r);
    r.failed |= !ok;
    return rewrite_end(&r);
}

/* ---- the pass ---- */

static bool begin(struct chooser *c) {
    size_t n = c->g->n_nodes, wishes = 0;
    c->first = calloc(n + 1, sizeof *c->first);
    for (size_t i = 0; c->first && i < n; i++) {
        c->first[i] = wishes;
        wishes += (size_t)(c->g->node[i]->n_in + c->g->node[i]->n_out);
    }
    c->wish = calloc(wishes + 1, sizeof *c->wish);
    c->group = calloc(n + 1, sizeof *c->group);
    c->block = calloc(n + 1, sizeof *c->block);
    /* Reorders are not reordered themselves: the number of tensors before the pass is enough. */
    c->last = calloc((size_t)c->g->n_tensors + 1, sizeof *c->last);
    return c->first && c->wish && c->group && c->block && c->last;
}

static bool pinned(const tri_graph *g) {
    for (size_t i = 0; i < g->n_nodes; i++)
        for (int k = 0; k < g->node[i]->n_out; k++)
            if (g->node[i]->out[k].block || *g->node[i]->out[k].pack) return true;
    return false;
}

tri_status format_choose(tri_graph *g, const struct target *target) {
    struct chooser c = {.g = g, .target = target};
    if (!target || !target->formats || pinned(g)) return TRI_OK;
    bool ok = begin(&c);
    for (size_t i = 0; ok && i < g->n_nodes; i++) ask(&c, g->node[i]);
    for (size_t i = 0; ok && i < g->n_nodes; i++) join(&c, g->node[i]);
    for (size_t i = 0; ok && i < g->n_nodes; i++) ok = vote(&c, g->node[i]);
    if (ok) decide(&c);
    tri_status status = ok ? format_all(&c) : base_no_memory("a pass over the graph");
    free(c.first);
    free(c.wish);
    free(c.group);
    free(c.block);
    free(c.vote);
    free(c.made);
    free(c.last);
    return status;
}
