/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/sink.h"

#include <stdlib.h>

#include "plan/lanes.h"
#include "plan/rewrite.h"
#include "plan/simplify.h"

struct sinker {
    const tri_graph *pre;
    struct rewrite r;
    bool *weights;          /* by node of pre: it depends on weights alone */
    tri_tensor **source;    /* by node of pre: the same source in the lane */
    const tri_node *reader; /* the operator at hand */
    tri_tensor **copy;      /* by tensor of pre: its copy for the reader */
};

static void find_weights(struct sinker *s) {
    for (size_t i = 0; i < s->pre->n_nodes; i++) {
        const tri_node *n = s->pre->node[i];
        bool weights = node_is_stored(n) || node_is_literal(n) ||
                       (n->n_in && !n->entry->op->random);
        for (int k = 0; k < n->n_in; k++) weights = weights && s->weights[n->in[k]->node->id];
        s->weights[i] = weights;
    }
}

/* The result of pre that the tensor of the lane stands for, if it depends on weights alone. */
static const tri_tensor *sinks(const struct sinker *s, const tri_tensor *t) {
    const struct graph_output *o = phase_gives(s->pre, t->node);
    return o && node_runs(o->tensor->node) && s->weights[o->tensor->node->id] ? o->tensor : NULL;
}

static tri_tensor *copy_of(struct sinker *s, const tri_tensor *t);

static tri_node *copy_node(struct sinker *s, const tri_node *n) {
    tri_graph *g = s->r.g;
    tri_tensor **in = calloc((size_t)n->n_in + 1, sizeof *in);
    s->r.failed |= !in;
    for (int k = 0; k < n->n_in && !s->r.failed; k++) in[k] = copy_of(s, n->in[k]);
    tri_node *copy = s->r.failed ? g->poison_node : graph_copy(g, n, in, n->attr, n->name);
    free(in);
    if (n->n_in && copy != g->poison_node) { /* in the leg of its only reader; sources have many */
        copy->backward = s->reader->backward;
        copy->stage = s->reader->stage;
    }
    return copy;
}

/* A source that nothing has read since is no longer a part of the graph. */
static bool is_part(const tri_graph *g, const tri_node *n) {
    return (size_t)n->id < g->n_nodes && g->node[n->id] == n;
}

static tri_tensor *copy_of(struct sinker *s, const tri_tensor *t) {
    const tri_node *n = t->node;
    bool stored = node_is_stored(n);
    tri_tensor **known = n->n_in ? &s->copy[t->id] : &s->source[n->id];
    tri_node *there = stored && !*known ? graph_source(s->r.g, source_name(n)) : NULL;
    if (there && !is_part(s->r.g, there)) rewrite_keep(&s->r, there);
    if (there) *known = there->out;
    if (*known) return *known;
    tri_node *copy = copy_node(s, n);
    return *known = copy == s->r.g->poison_node ? s->r.g->poison : &copy->out[t->index];
}

/* The operator reads copies that are made directly before it. */
static void sink_inputs(struct sinker *s, tri_node *n) {
    bool any = false;
    for (int k = 0; k < n->n_in; k++) {
        const tri_tensor *from = sinks(s, n->in[k]);
        if (!from) continue;
        if (!any)
            for (int i = 0; i < s->pre->n_tensors; i++) s->copy[i] = NULL;
        any = true;
        s->reader = n;
        n->in[k] = copy_of(s, from);
    }
}

static tri_status rewrite(struct sinker *s, tri_graph *lane) {
    bool *result = calloc((size_t)lane->n_tensors + 1, sizeof *result);
    tri_node *n;
    graph_sources_first(lane);
    rewrite_begin(&s->r, lane);
    s->r.failed |= !result;
    if (result) graph_mark_results(lane, result);
    for (size_t i = 0; (n = rewrite_next(&s->r, i)); i++) {
        sink_inputs(s, n);
        if (node_any(n, result) || !sinks(s, n->out)) rewrite_keep(&s->r, n);
    }
    free(result);
    return rewrite_end(&s->r);
}

tri_status sink(const tri_graph *pre, tri_graph *lane) {
    struct sinker s = {.pre = pre, .weights = calloc(pre->n_nodes + 1, sizeof *s.weights),
                       .source = calloc(pre->n_nodes + 1, sizeof *s.source),
                       .copy = calloc((size_t)pre->n_tensors + 1, sizeof *s.copy)};
    tri_status status = s.weights && s.source && s.copy ? TRI_OK : base_no_memory("a pass");
    if (!status) {
        find_weights(&s);
        status = rewrite(&s, lane);
    }
    free(s.weights);
    free(s.source);
    free(s.copy);
    return status;
}

tri_status sink_forget(tri_graph **pre, tri_graph *const *graph, size_t n) {
    tri_graph *p = *pre;
    bool *taken = calloc(p->n_outputs + 1, sizeof *taken);
    if (!taken) return base_no_memory("a pass");
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; graph[k] && i < graph[k]->n_nodes; i++) {
            const struct graph_output *o = phase_gives(p, graph[k]->node[i]);
            if (o) taken[o - p->output] = true;
        }
    size_t kept = 0;
    for (size_t i = 0; i < p->n_outputs; i++)
        if (taken[i]) p->output[kept++] = p->output[i];
    p->n_outputs = kept;
    free(taken);
    if (kept) return simplify_dead(p);
    tri_graph_free(p);
    *pre = NULL;
    return TRI_OK;
}
