/* SPDX-License-Identifier: Apache-2.0
 * Reverse-mode differentiation of the logical graph. The backward pass consists of ordinary nodes;
 * each operator's gradient is in its row. */
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "ops/op.h"

void tri_grad_none(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    (void)n, (void)dy, (void)dx;
}

void tri_grad_refused(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    (void)dy, (void)dx;
    tri_op_error(n, "operator %s has no derivative here: second derivatives are given for "
                    "elementwise operators, matmul, reductions, softmax and convolution",
                 n->entry->op->name);
}

struct reverse {
    tri_graph *g;
    size_t n_nodes;    /* before the backward pass, which adds more */
    bool *needed;      /* per node: it depends on wrt, and y depends on it */
    tri_tensor **dy;   /* per tensor id: the gradient summed so far */
};

/* Marks the nodes between wrt and y: forward from wrt, then backward from y. */
static void mark(struct reverse *r, const tri_tensor *y, tri_tensor *const *wrt, int n) {
    bool *leads_to_y = r->needed + r->n_nodes;
    for (int i = 0; i < n; i++) r->needed[wrt[i]->node->id] = true;
    for (size_t i = 0; i < r->n_nodes; i++)
        for (int k = 0; k < r->g->node[i]->n_in; k++)
            if (r->needed[r->g->node[i]->in[k]->node->id] &&
                type_is_float(r->g->node[i]->in[k]->spec.type))
                r->needed[i] = true;
    leads_to_y[y->node->id] = true;
    for (size_t i = r->n_nodes; i-- > 0;)
        for (int k = 0; leads_to_y[i] && k < r->g->node[i]->n_in; k++)
            leads_to_y[r->g->node[i]->in[k]->node->id] = true;
    for (size_t i = 0; i < r->n_nodes; i++) r->needed[i] = r->needed[i] && leads_to_y[i];
}

/* Adds contributions in the order of the reverse walk: a fixed order makes sums reproducible. */
static void contribute(struct reverse *r, const tri_tensor *t, tri_tensor *d) {
    tri_tensor **sum = &r->dy[t->id];
    CHECK(r->g->status || base_shape_equal(&d->spec.shape, &t->spec.shape));
    *sum = *sum ? tri_add(*sum, d) : d;
}

/* New nodes take the forward node's name ("grad.fc1.matmul.mul") and its source line. */
static void enter(tri_graph *g, const tri_node *n) {
    g->scope.size = 0;
    g->file = n->file ? n->file : "";
    g->line = n->line;
    g->of = n->name;
    tri_push(g, "grad.%s", n->name);
}

static void reverse_node(struct reverse *r, const tri_node *n) {
    bool flows = false;
    for (int i = 0; i < n->n_out; i++) flows |= r->dy[n->out[i].id] != NULL;
    if (!flows || !n->n_in) return;
    tri_tensor *dy[TRI_MAX_OUTPUTS], **dx = calloc((size_t)n->n_in, sizeof *dx);
    if (!dx) {
        graph_fail(r->g, TRI_FAILED, "out of memory for gradients");
        return;
    }
    for (int i = 0; i < n->n_out; i++) dy[i] = r->dy[n->out[i].id];
    enter(r->g, n);
    n->entry->op->gradient(n, dy, dx);
    for (int i = 0; i < n->n_in; i++)
        if (dx[i] && r->needed[n->in[i]->node->id] && type_is_float(n->in[i]->spec.type))
            contribute(r, n->in[i], dx[i]);
    free(dx);
}

static bool check(tri_tensor *y, tri_tensor *const *wrt, int n) {
    tri_graph *g = tri_graph_of(y);
    if (!g) return false;
    if (!g->status && (y->spec.shape.rank || !type_is_float(y->spec.type)))
        graph_mistake(g, "tri_grad: %s must be one floating-point number; reduce it first",
                      tri_name_of(y));
    for (int i = 0; i < n && !g->status; i++)
        if (!wrt[i] || wrt[i]->node->graph != g)
            graph_mistake(g, "tri_grad: tensor %d is null or of another graph", i);
    return !g->status;
}

/* Records the call. Two tensors may have one derivative here, and two once their types differ: each
 * gets a tensor of its own. */
static void record(const struct reverse *r, tri_tensor *y, tri_tensor *const *wrt, int n,
                   tri_tensor **out) {
    struct graph_gradient d = {y, &r->g->node[r->n_nodes]->out[0], n, NULL};
    d.pair = calloc(2 * (size_t)n + 1, sizeof *d.pair);
    if (!d.pair) graph_fail(r->g, TRI_FAILED, "out of memory for gradients");
    for (int i = 0; i < n && !r->g->status; i++) {
        bool own = out[i]->node->id >= (int)r->n_nodes;
        for (int k = 0; k < i; k++) own &= out[i] != out[k];
        if (!own) out[i] = tri_reshape(out[i], out[i]->spec.shape);
        d.pair[2 * i] = wrt[i];
        d.pair[2 * i + 1] = out[i];
    }
    if (!r->g->status) graph_put_gradient(r->g, d);
    free(d.pair);
}

static void run(struct reverse *r, tri_tensor *y, tri_tensor *const *wrt, int n, tri_tensor **out) {
    mark(r, y, wrt, n);
    enter(r->g, y->node);
    r->dy[y->id] = tri_constant(r->g, 1, y->spec.type);
    for (size_t i = r->n_nodes; i-- > 0 && !r->g->status;)
        if (r->needed[i]) reverse_node(r, r->g->node[i]);
    for (int i = 0; i < n; i++) {
        tri_tensor *d = r->g->status ? r->g->poison : r->dy[wrt[i]->id];
        out[i] = d ? d : op_zeros_like(wrt[i]);
    }
    if (!r->g->status) record(r, y, wrt, n, out);
}

void tri_grad(tri_tensor *y, tri_tensor *const *wrt, int n, tri_tensor **out) {
    tri_graph *g = tri_graph_of(y);
    for (int i = 0; i < n; i++) out[i] = g ? g->poison : NULL;
    if (!check(y, wrt, n)) return;
    struct reverse r = {.g = g, .n_nodes = g->n_nodes};
    r.needed = calloc(2 * r.n_nodes, sizeof *r.needed);
    r.dy = calloc((size_t)g->n_tensors, sizeof(tri_tensor *));
    struct text scope = g->scope;
    const char *file = g->file;
    int line = g->line;
    g->scope = (struct text){0};
    g->backward = true;
    if (r.needed && r.dy)
        run(&r, y, wrt, n, out);
    else
        graph_fail(g, TRI_FAILED, "out of memory for gradients");
    text_free(&g->scope);
    g->backward = false;
    g->of = NULL;
    g->scope = scope;
    g->file = file;
    g->line = line;
    free(r.needed);
    free(r.dy);
}
