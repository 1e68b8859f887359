/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/fold_norm.h"

#include <stdlib.h>

#include "plan/rewrite.h"

/* uses: by tensor, how often it is read or is a result. It is unknown for tensors that this pass
 * has made, numbers `known` and up: a norm of a norm is not folded. */
static bool foldable(const tri_node *n, const int *uses, int known) {
    const tri_node *conv = n->n_in ? n->in[0]->node : n;
    if (!node_is(n, "batch_norm") || !node_is(conv, "conv2d") || tri_attr_int(n, "training"))
        return false;
    bool others = conv->out->id >= known || uses[conv->out->id] > 1;
    for (int k = 1; k < n->n_out; k++) others |= uses[n->out[k].id] > 0;
    return !others && n->out->spec.type == TRI_F32;
}

/* gamma (w x + b - mean) / sqrt(var + eps) + beta: of weight [o, i, kh, kw] each w[o] is scaled,
 * and the bias becomes beta + scale (b - mean). */
static tri_tensor *folded(const tri_node *n) {
    const tri_node *conv = n->in[0]->node;
    tri_tensor *weight = conv->in[1], *shift = tri_neg(n->in[3]);
    tri_tensor *scale =
        tri_mul(n->in[1], tri_rsqrt(tri_add_number(n->in[4], tri_attr_float(n, "eps"))));
    if (conv->n_in > 2) shift = tri_sub(conv->in[2], n->in[3]);
    tri_tensor *in[] = {conv->in[0],
                        tri_mul(weight, tri_reshape(scale, TRI_SHAPE(-1, 1, 1, 1))),
                        tri_add(n->in[2], tri_mul(scale, shift))};
    return graph_apply(n->graph, "conv2d", 3, in, conv->entry->n_attrs, conv->attr);
}

static int *count_uses(const tri_graph *g) {
    int *uses = calloc((size_t)g->n_tensors + 1, sizeof *uses);
    bool *result = calloc((size_t)g->n_tensors + 1, sizeof *result);
    if (uses && result) {
        graph_mark_results(g, result);
        for (int t = 0; t < g->n_tensors; t++) uses[t] = 2 * result[t];
        for (size_t i = 0; i < g->n_nodes; i++)
            for (int k = 0; k < g->node[i]->n_in; k++) uses[g->node[i]->in[k]->id]++;
        free(result);
        return uses;
    }
    free(uses);
    free(result);
    return NULL;
}

/* The original convolution stays in the graph, unused: the pass `dead` removes it. */
tri_status fold_norm(tri_graph *g) {
    struct rewrite r;
    tri_node *n;
    int known = g->n_tensors, *uses = count_uses(g);
    if (!uses) return base_no_memory("folding norms");
    rewrite_begin(&r, g);
    for (size_t i = 0; (n = rewrite_next(&r, i)); i++) {
        if (!foldable(n, uses, known)) {
            rewrite_keep(&r, n);
            continue;
        }
        rewrite_enter(&r, n, "folded");
        rewrite_replace(&r, n->out, folded(n));
        rewrite_leave(&r);
    }
    free(uses);
    return rewrite_end(&r);
}
