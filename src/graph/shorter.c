/* SPDX-License-Identifier: Apache-2.0
 * Networks for shorter samples: the same parameters, inputs with smaller dimensions. */
#include <string.h>

#include "graph/graph.h"

static const tri_node *source(const tri_graph *g, const char *op, const char *name) {
    for (size_t i = 0; i < g->n_nodes; i++)
        if (node_is(g->node[i], op) && !strcmp(source_name(g->node[i]), name)) return g->node[i];
    return NULL;
}

static bool fits(const tri_spec *small, const tri_spec *large) {
    if (small->type != large->type || small->shape.rank != large->shape.rank) return false;
    for (int i = 0; i < small->shape.rank; i++)
        if (small->shape.dim[i] > large->shape.dim[i]) return false;
    return true;
}

/* Each source of `a` must exist in `b`, with the same shape or, of inputs, one that fits. */
static void compare(tri_graph *g, const tri_graph *a, const tri_graph *b, const char *which) {
    static const struct {
        const char *op;
        bool same;
    } kinds[] = {{"param", true}, {"state", true}, {"input", false}, {"scalar", true}};
    for (size_t i = 0; i < a->n_nodes; i++)
        for (size_t k = 0; k < COUNT(kinds); k++) {
            const tri_node *n = a->node[i], *other;
            char x[SPEC_TEXT], y[SPEC_TEXT];
            if (!node_is(n, kinds[k].op)) continue;
            other = source(b, kinds[k].op, source_name(n));
            const tri_spec *small = a == g ? other ? &other->out->spec : NULL : &n->out->spec;
            const tri_spec *large = a == g ? &n->out->spec : other ? &other->out->spec : NULL;
            if (!other)
                graph_fail(g, TRI_USAGE, "tri_shorter: the network for %s samples has no %s \"%s\"",
                           which, kinds[k].op, source_name(n));
            else if (!fits(small, large) ||
                     (kinds[k].same && !base_shape_equal(&small->shape, &large->shape)))
                graph_fail(g, TRI_USAGE, "tri_shorter: %s \"%s\" is %s in the network for shorter "
                           "samples, %s in the other", kinds[k].op, source_name(n),
                           base_spec_text(small, x), base_spec_text(large, y));
        }
}

/* Whether g owns `other` already, so that it must not be freed. */
static bool is_owned(tri_graph *g, const tri_graph *other) {
    bool taken = false;
    for (int i = 0; i < g->n_shorter; i++) taken = taken || g->shorter[i].g == other;
    if (other == g)
        graph_fail(g, TRI_USAGE, "tri_shorter: the network for shorter samples is the network "
                   "itself");
    if (taken)
        graph_fail(g, TRI_USAGE, "tri_shorter: the network for shorter samples was added before");
    return other == g || taken;
}

static void check(tri_graph *g, int64_t length, tri_graph *other) {
    if (length < 1 || g->n_shorter == GRAPH_MOST_SHORTER)
        graph_fail(g, TRI_USAGE, "tri_shorter: a network for samples of at most %lld; there can be "
                   "%d such networks, each for a length of at least 1", (long long)length,
                   GRAPH_MOST_SHORTER);
    for (int i = 0; i < g->n_shorter; i++)
        if (g->shorter[i].length == length)
            graph_fail(g, TRI_USAGE, "tri_shorter: there already is a network for samples of at "
                       "most %lld", (long long)length);
    if (tri_graph_status(other))
        graph_fail(g, other->status ? other->status : TRI_FAILED, "%s", tri_message());
    if (other->batch != g->batch)
        graph_fail(g, TRI_USAGE, "tri_shorter: a batch of %lld, and %lld in the other network",
                   (long long)other->batch, (long long)g->batch);
    if (g->status) return;
    compare(g, g, other, "shorter");
    compare(g, other, g, "longer");
}

void tri_shorter(tri_graph *g, int64_t length, tri_graph *other) {
    if (!g || !other) {
        if (g) graph_fail(g, TRI_FAILED, "%s", tri_message());
        tri_graph_free(other);
        return;
    }
    if (is_owned(g, other)) return;
    check(g, length, other);
    if (g->status) {
        tri_graph_free(other);
        return;
    }
    int at = g->n_shorter++;
    for (; at > 0 && g->shorter[at - 1].length < length; at--) g->shorter[at] = g->shorter[at - 1];
    g->shorter[at] = (struct graph_shorter){length, other};
}
