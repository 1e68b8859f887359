/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/summary.h"

#include <stdlib.h>
#include <string.h>

#include "base/columns.h"
#include "graph/graph.h"

/* The nodes of a scope, or one that is in none. */
struct layer {
    const char *name;
    int length;
    struct text kinds; /* "matmul, add" */
    const tri_tensor *out; /* of the last operator that an output of the network needs */
    double parameters, frozen, states; /* elements */
    double products, flops;            /* products: multiply-adds of products and convolutions */
    double bytes;                      /* of all outputs */
};

struct summary {
    struct layer *layer;
    size_t n, capacity;
};

/* The length of the node's scope, cut to so many words; of the name if there is no scope. */
static int scope_of(const tri_node *n, int64_t depth) {
    const char *end = strrchr(n->name, '.'), *at = n->name;
    if (!end) return (int)strlen(n->name);
    for (int64_t i = 0; at < end && (!depth || i < depth); i++) at += strcspn(at, ".") + 1;
    return (int)(at - n->name) - 1;
}

static struct layer *layer_of(struct summary *s, const tri_node *n, int64_t depth) {
    const int length = scope_of(n, depth);
    struct layer *last = s->n ? &s->layer[s->n - 1] : NULL;
    if (last && last->length == length && !memcmp(last->name, n->name, (size_t)length)) return last;
    if (!ARRAY_GROW(s->layer, s->n, s->capacity)) return NULL;
    last = &s->layer[s->n++];
    *last = (struct layer){.name = n->name, .length = length};
    return last;
}

static void add_kind(struct layer *l, const char *kind) {
    const char *at = l->kinds.data;
    const size_t n = strlen(kind);
    for (; at && (at = strstr(at, kind)); at += n)
        if ((at == l->kinds.data || at[-1] == ' ') && (!at[n] || at[n] == ',')) return;
    text_add(&l->kinds, "%s%s", l->kinds.size ? ", " : "", kind);
}

static double elements(const tri_tensor *t) { return (double)tri_shape_count(&t->spec.shape); }

static void add_source(struct layer *l, const tri_node *n) {
    if (node_is_param(n)) l->parameters += elements(&n->out[0]);
    if (node_is_param(n) && param_frozen(n)) l->frozen += elements(&n->out[0]);
    if (node_is(n, "state")) l->states += elements(&n->out[0]);
    if (!node_is(n, "input")) return;
    l->out = &n->out[0];
    l->name = source_name(n);
    l->length = (int)strlen(l->name);
    add_kind(l, "input");
}

static void add_operator(struct layer *l, const tri_node *n, bool needed) {
    const tri_op *op = n->entry->op;
    const double flops = op->flops ? op->flops(n) : 0;
    if (needed) l->out = &n->out[0];
    l->flops += flops;
    if (op->precision == TRI_PRECISION_LOW) l->products += flops / 2;
    for (int i = 0; i < n->n_out; i++) l->bytes += (double)base_spec_bytes(&n->out[i].spec);
    add_kind(l, op->name);
}

/* The others are for updates of states alone. By node; null: out of memory. */
static bool *find_needed(const tri_graph *g) {
    bool *is = calloc(g->n_nodes + 1, sizeof *is);
    for (size_t i = 0; is && i < g->n_outputs; i++) is[g->output[i].tensor->node->id] = true;
    for (size_t i = g->n_nodes; is && i-- > 0;)
        for (int k = 0; is[i] && k < g->node[i]->n_in; k++) is[g->node[i]->in[k]->node->id] = true;
    return is;
}

/* Of the forward pass; a constant or scalar is of no layer. */
static tri_status fill(struct summary *s, const tri_graph *g, const bool *needed, int64_t depth) {
    if (!needed) return base_no_memory("a summary");
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tri_node *n = g->node[i];
        const bool counts = n->n_in || node_is_stored(n) || node_is(n, "input");
        if (n->backward || !counts) continue;
        struct layer *l = layer_of(s, n, depth);
        if (!l) return base_no_memory("a summary");
        if (n->n_in) add_operator(l, n, needed[i]);
        else add_source(l, n);
    }
    return TRI_OK;
}

/* ---- the table ---- */

static void add_count(struct text *cells, double count) {
    if (count > 0) text_add(cells, "%.0f", count);
    text_add(cells, "\t");
}

static void add_amount(struct text *cells, double amount, const char *end) {
    if (amount >= 0.0005) text_add(cells, amount < 0.0995 ? "%.3f" : "%.1f", amount);
    text_add(cells, "%s", end);
}

#define MIB 1048576.0

static void add_row(struct text *cells, const struct layer *l, int64_t batch) {
    char spec[SPEC_TEXT];
    text_add(cells, "%.*s\t", l->length, l->name);
    columns_cell(cells, l->kinds.data ? l->kinds.data : "");
    text_add(cells, "\t%s\t", l->out ? base_spec_text(&l->out->spec, spec) : "");
    add_count(cells, l->parameters);
    add_amount(cells, l->products / (double)batch * 1e-6, "\t");
    add_amount(cells, l->flops / (double)batch * 1e-6, "\t");
    add_amount(cells, l->bytes / MIB, "\n");
}

static void add_total(struct text *t, const struct layer *all, const tri_graph *g) {
    text_add(t, "\n%.0f parameter(s)", all->parameters);
    if (all->frozen > 0) text_add(t, ", of which %.0f are frozen", all->frozen);
    text_add(t, ", %.1f MiB", all->parameters * 4 / MIB);
    if (all->states > 0) text_add(t, "; %.0f value(s) of states", all->states);
    const double scale = all->flops >= 1e9 * (double)g->batch ? 1e9 : 1e6;
    text_add(t, "\nforward, a sample: %.4g %c multiply-adds of products and convolutions; %.4g "
             "%cFLOP in all\n", all->products / (double)g->batch / scale, scale > 1e6 ? 'G' : 'M',
             all->flops / (double)g->batch / scale, scale > 1e6 ? 'G' : 'M');
    text_add(t, "results at batch %lld: %.1f MiB, of which a run keeps what the backward pass "
             "needs (`trireme memory`)\n", (long long)g->batch, all->bytes / MIB);
}

static void print(const struct summary *s, const tri_graph *g, struct text *out) {
    struct text cells = {0};
    struct layer all = {0};
    text_add(&cells, "LAYER\tOPERATORS\tRESULT\tPARAMETERS\tM MULTIPLY-ADDS\tMFLOP\tMiB\n");
    for (size_t i = 0; i < s->n; i++) {
        const struct layer *l = &s->layer[i];
        add_row(&cells, l, g->batch);
        all.parameters += l->parameters;
        all.frozen += l->frozen;
        all.states += l->states;
        all.products += l->products;
        all.flops += l->flops;
        all.bytes += l->bytes;
    }
    columns_add(out, "lclrrrr", &cells);
    add_total(out, &all, g);
}

tri_status summary_print(const tri_graph *g, int64_t depth, struct text *out) {
    struct summary s = {0};
    bool *needed = find_needed(g);
    tri_status status = fill(&s, g, needed, depth);
    if (!status) print(&s, g, out);
    for (size_t i = 0; i < s.n; i++) text_free(&s.layer[i].kinds);
    free(s.layer);
    free(needed);
    return status;
}
