/* SPDX-License-Identifier: Apache-2.0
 * Building a graph: nodes, the first mistake, which it keeps, outputs, updates. */
#include "graph/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local struct {
    const char *file;
    int line;
} here;

void tri_here(const char *file, int line) {
    here.file = file;
    here.line = line;
}

/* ---- creating and freeing ---- */

#define DEFAULT_BATCH 64

tri_graph *tri_graph_new(int64_t batch) {
    tri_graph *g = calloc(1, sizeof *g);
    if (!g) {
        base_no_memory("a graph");
        return NULL;
    }
    g->batch = batch ? batch : DEFAULT_BATCH;
    g->lanes = 1;
    g->poison_node = arena_alloc(&g->arena, sizeof *g->poison_node);
    g->poison = arena_alloc(&g->arena, sizeof *g->poison);
    if (g->arena.failed) {
        tri_graph_free(g);
        base_no_memory("a graph");
        return NULL;
    }
    /* One float of rank 0. Its node only leads back to the graph. */
    *g->poison = (tri_tensor){.node = g->poison_node, .id = -1};
    *g->poison_node = (tri_node){.graph = g, .out = g->poison, .n_out = 1, .id = -1,
                                 .entry = registry_find("constant"), .name = "nothing"};
    here.file = NULL;
    here.line = 0;
    if (batch < 0) graph_fail(g, TRI_USAGE, "the batch is %lld; it must be at least 1",
                              (long long)batch);
    return g;
}

void tri_graph_free(tri_graph *g) {
    if (!g) return;
    for (int i = 0; i < g->n_shorter; i++) tri_graph_free(g->shorter[i].g);
    free(g->node);
    free(g->output);
    free(g->update);
    free(g->setting);
    free(g->gradient);
    free(g->names.slot);
    free(g->sources.slot);
    text_free(&g->scope);
    arena_free(&g->arena);
    free(g);
}

int64_t tri_batch(const tri_graph *g) { return g ? g->batch : 1; }

tri_status tri_graph_status(const tri_graph *g) {
    if (!g) return TRI_FAILED; /* tri_graph_new has set the message */
    if (g->status) return base_fail(g->status, "%s", g->error ? g->error : "out of memory");
    if (g->arena.failed) return base_no_memory("the graph");
    return TRI_OK;
}

void graph_fail(tri_graph *g, tri_status code, const char *fmt, ...) {
    if (g->status) return;
    char buffer[2048];
    va_list args;
    va_start(args, fmt);
    base_format_list(buffer, sizeof buffer, fmt, args);
    va_end(args);
    /* Once the arena has failed, a missing text could look like a mistake of the user. */
    g->status = g->arena.failed ? TRI_FAILED : code;
    g->error = arena_copy(&g->arena, g->arena.failed ? "out of memory for a graph" : buffer);
}

const char *graph_place(const tri_graph *g, int *line) {
    *line = g->file ? g->line : here.line;
    return !g->file ? here.file : *g->file ? g->file : NULL;
}

void graph_mistake(tri_graph *g, const char *fmt, ...) {
    char what[1024];
    int line;
    const char *file = graph_place(g, &line);
    struct text t = {0};
    va_list args;
    va_start(args, fmt);
    base_format_list(what, sizeof what, fmt, args);
    va_end(args);
    if (file) text_add(&t, "%s:%d: ", file, line);
    if (g->scope.size) text_add(&t, "in ");
    for (size_t i = 0; i < g->scope.size; i++)
        if (g->scope.data[i] != '\001') text_add_bytes(&t, g->scope.data + i, 1);
    text_add(&t, "%s%s", g->scope.size ? ": " : "", what);
    graph_fail(g, TRI_USAGE, "%s", t.failed ? what : t.data);
    text_free(&t);
}

static void no_memory(tri_graph *g) { graph_fail(g, TRI_FAILED, "out of memory for the graph"); }

/* ---- messages about nodes ---- */

void node_describe(const tri_node *n, struct text *out) {
    char spec[SPEC_TEXT];
    if (n->file) text_add(out, "%s:%d: ", n->file, n->line);
    text_add(out, "%s (%s", n->name, n->entry->op->name);
    for (int i = 0; i < n->n_in; i++)
        text_add(out, "%s%s", i ? ", " : " ", base_spec_text(&n->in[i]->spec, spec));
    text_add(out, ")");
}

int tri_op_error(const tri_node *n, const char *fmt, ...) {
    char what[1024];
    va_list args;
    va_start(args, fmt);
    base_format_list(what, sizeof what, fmt, args);
    va_end(args);
    struct text t = {0};
    node_describe(n, &t);
    graph_fail(n->graph, TRI_USAGE, "%s: %s", t.failed || !t.data ? n->name : t.data, what);
    text_free(&t);
    return 0;
}

/* ---- adding nodes ---- */

/* Mistakes that are possible in a program; the parser rejects them in a text. */
static bool check_attr(tri_graph *g, const tri_op *op, const struct attr_schema *s,
                       const tri_attr *a) {
    bool list = s->kind == ATTR_INTS || s->kind == ATTR_SHAPE;
    if (list && (a->list.rank < 0 || a->list.rank > TRI_MAX_RANK))
        graph_mistake(g, "operator %s: %s has %d number(s); there can be up to %d", op->name,
                      s->name, a->list.rank, TRI_MAX_RANK);
    if (s->kind == ATTR_TYPE && (a->i < TRI_F32 || a->i > TRI_BOOL))
        graph_mistake(g, "operator %s: %s is %lld, which is not a type", op->name, s->name,
                      (long long)a->i);
    return !g->status;
}

static bool copy_attrs(tri_graph *g, tri_node *n, const tri_attr *attrs) {
    const struct op_entry *e = n->entry;
    n->attr = arena_alloc(&g->arena, sizeof *n->attr * (size_t)(e->n_attrs ? e->n_attrs : 1));
    if (!n->attr) return false;
    for (int i = 0; i < e->n_attrs; i++) {
        if (!check_attr(g, e->op, &e->attr[i], &attrs[i])) return false;
        n->attr[i] = attrs[i];
        n->attr[i].name = e->attr[i].name;
        n->attr[i].text = attrs[i].text ? arena_copy(&g->arena, attrs[i].text) : "";
        if (!n->attr[i].text) return false;
    }
    return true;
}

static bool check_specs(const tri_node *n, const tri_spec *spec, int count) {
    for (int i = 0; i < count; i++) {
        const tri_shape *s = &spec[i].shape;
        double elements = 1;
        if (s->rank < 0 || s->rank > TRI_MAX_RANK)
            return tri_op_error(n, "a result would have %d dimensions; the most is %d", s->rank,
                                TRI_MAX_RANK);
        for (int d = 0; d < s->rank; d++) {
            if (s->dim[d] < 1)
                return tri_op_error(n, "dimension %d of the result would be %lld", d,
                                    (long long)s->dim[d]);
            elements *= (double)s->dim[d];
        }
        if (elements > 1e12)
            return tri_op_error(n, "the result would have %.3g elements", elements);
    }
    return true;
}

static bool fill_outputs(tri_graph *g, tri_node *n) {
    tri_spec spec[TRI_MAX_OUTPUTS] = {{0}};
    int count = n->entry->op->infer(n, spec);
    if (count < 1) {
        if (!g->status) tri_op_error(n, "its infer function returned 0 without an error");
        return false;
    }
    if (!check_specs(n, spec, count)) return false;
    n->n_out = count;
    n->out = arena_alloc(&g->arena, sizeof *n->out * (size_t)count);
    if (!n->out) return false;
    for (int i = 0; i < count; i++)
        n->out[i] = (tri_tensor){.node = n, .index = i, .id = g->n_tensors + i, .spec = spec[i]};
    return true;
}

bool graph_retype(tri_node *n) {
    tri_spec spec[TRI_MAX_OUTPUTS] = {{0}};
    int count = n->entry->op->infer(n, spec);
    if (n->graph->status) return false;
    CHECK(count == n->n_out);
    for (int i = 0; i < count; i++) n->out[i].spec = spec[i];
    return true;
}

static bool check_inputs(tri_graph *g, const tri_op *op, tri_tensor *const *in, int n) {
    for (int i = 0; i < n; i++) {
        if (!in[i]) {
            graph_mistake(g, "operator %s: input %d is a null pointer", op->name, i);
            return false;
        }
        if (in[i]->node->graph != g) {
            graph_mistake(g, "operator %s: input %d, %s, belongs to another graph", op->name, i,
                          tri_name_of(in[i]));
            return false;
        }
    }
    int most = op->inputs_max == 0 ? op->inputs : op->inputs_max;
    if (n >= op->inputs && (most < 0 || n <= most)) return true;
    graph_mistake(g, "operator %s takes %s%d input(s), not %d", op->name,
                  most == op->inputs ? "" : "at least ", op->inputs, n);
    return false;
}

static bool fill_node(tri_graph *g, tri_node *n, tri_tensor *const *in, const tri_attr *attrs,
                      const char *name) {
    n->in = arena_alloc(&g->arena, sizeof *n->in * (size_t)(n->n_in ? n->n_in : 1));
    if (!n->in || !copy_attrs(g, n, attrs)) return false;
    for (int i = 0; i < n->n_in; i++) n->in[i] = in[i];
    n->file = graph_place(g, &n->line);
    if (n->file && !g->file && !(n->file = arena_copy(&g->arena, n->file))) return false;
    const char *full = name ? arena_copy(&g->arena, name) : graph_scoped(g, n->entry->op->name);
    n->name = full ? graph_unique(g, full) : NULL;
    return n->name && ARRAY_GROW(g->node, g->n_nodes, g->node_capacity) && fill_outputs(g, n);
}

tri_node *graph_add(tri_graph *g, const struct op_entry *entry, tri_tensor *const *in, int n,
                    const tri_attr *attrs, const char *name) {
    if (g->status || !check_inputs(g, entry->op, in, n)) return g->poison_node;
    tri_node *node = arena_alloc(&g->arena, sizeof *node);
    if (node) {
        *node = (tri_node){.graph = g, .entry = entry, .id = (int)g->n_nodes, .n_in = n,
                           .backward = g->backward, .of = g->of, .stage = -1};
        memset(node->owner, -1, sizeof node->owner);
        if (fill_node(g, node, in, attrs, name)) {
            g->node[g->n_nodes++] = node;
            g->n_tensors += node->n_out;
            if (graph_know_source(g, node)) return node;
        }
    }
    no_memory(g); /* unless the graph has failed already */
    return g->poison_node;
}

/* Puts attributes given by name into the schema's order, with defaults for the others. */
static bool order_attrs(tri_graph *g, const struct op_entry *e, int n, const tri_attr *given,
                        tri_attr *ordered) {
    bool set[MAX_ATTRS] = {false};
    for (int i = 0; i < e->n_attrs; i++) ordered[i] = e->attr[i].value;
    for (int k = 0; k < n; k++) {
        if (!given[k].name) continue;
        int i = 0;
        while (i < e->n_attrs && strcmp(e->attr[i].name, given[k].name)) i++;
        if (i == e->n_attrs) {
            graph_mistake(g, "operator %s has no attribute %s; it has: %s", e->op->name,
                          given[k].name, e->op->attributes ? e->op->attributes : "none");
            return false;
        }
        ordered[i] = given[k];
        set[i] = true;
    }
    for (int i = 0; i < e->n_attrs; i++)
        if (!set[i] && !e->attr[i].has_default) {
            graph_mistake(g, "operator %s: attribute %s must be given", e->op->name,
                          e->attr[i].name);
            return false;
        }
    return true;
}

tri_tensor *graph_apply(tri_graph *g, const char *op, int n, tri_tensor *const *in, int n_attrs,
                        const tri_attr *attrs) {
    for (int i = 0; !g && i < n; i++) g = tri_graph_of(in[i]);
    if (!g) return NULL;
    if (g->status) return g->poison;
    const struct op_entry *e = registry_find(op);
    tri_attr ordered[MAX_ATTRS];
    if (!e) {
        graph_mistake(g, "there is no operator %s", op);
        return g->poison;
    }
    if (!order_attrs(g, e, n_attrs, attrs, ordered)) return g->poison;
    return &graph_add(g, e, in, n, ordered, NULL)->out[0];
}

tri_tensor *tri_apply(tri_graph *g, const char *op, tri_tensor *const *in, int n,
                      const tri_attr *attrs, int n_attrs) {
    return graph_apply(g, op, n, in, n_attrs, attrs);
}

/* ---- outputs and updates ---- */

bool graph_put_output(tri_graph *g, struct graph_output o) {
    const bool named = o.name;
    if (named) o.name = arena_copy(&g->arena, o.name);
    if (named != !!o.name || !ARRAY_GROW(g->output, g->n_outputs, g->output_capacity)) {
        no_memory(g);
        return false;
    }
    g->output[g->n_outputs++] = o;
    return true;
}

bool graph_put_update(tri_graph *g, struct graph_update u) {
    if (!ARRAY_GROW(g->update, g->n_updates, g->update_capacity)) {
        no_memory(g);
        return false;
    }
    g->update[g->n_updates++] = u;
    return true;
}

bool graph_put_gradient(tri_graph *g, struct graph_gradient d) {
    size_t bytes = 2 * sizeof *d.pair * (size_t)d.n;
    tri_tensor **pair = arena_alloc(&g->arena, bytes + 1);
    if (!pair || !ARRAY_GROW(g->gradient, g->n_gradients, g->gradient_capacity)) {
        no_memory(g);
        return false;
    }
    if (d.n) memcpy(pair, d.pair, bytes);
    d.pair = pair;
    g->gradient[g->n_gradients++] = d;
    return true;
}

const struct graph_output *graph_output_find(const tri_graph *g, const char *name) {
    for (size_t i = 0; i < g->n_outputs; i++)
        if (g->output[i].name && !strcmp(g->output[i].name, name)) return &g->output[i];
    return NULL;
}

const struct graph_output *graph_output_of(const tri_graph *g, int of) {
    for (size_t i = 0; i < g->n_outputs; i++)
        if (!g->output[i].name && g->output[i].of == of) return &g->output[i];
    return NULL;
}

static void put_named(tri_tensor *t, const char *name, bool metric) {
    tri_graph *g = tri_graph_of(t);
    if (!g || g->status) return;
    if (!name || !*name || *name == '=') /* in texts "=7" is an output for other phases */
        graph_mistake(g, "an output's name is \"%s\"; it must not be empty, nor "
                      "begin with =", name ? name : "");
    else if (graph_output_find(g, name))
        graph_mistake(g, "there are two outputs named \"%s\"", name);
    else if (tri_find(g, name) && tri_find(g, name) != t)
        graph_mistake(g, "an output cannot be named \"%s\": %s has that name", name,
                      tri_find(g, name)->node->name);
    else
        graph_put_output(g, (struct graph_output){name, t, metric, 0});
}

void tri_output(tri_tensor *t, const char *name) { put_named(t, name, false); }

static bool check_scalar(const tri_tensor *t, const char *role) {
    if (t->spec.shape.rank == 0 && type_is_float(t->spec.type)) return true;
    char spec[SPEC_TEXT];
    graph_mistake(t->node->graph, "%s must be one floating-point number, but %s is %s; "
                  "tri_mean(x, TRI_ALL) makes one", role, tri_name_of(t),
                  base_spec_text(&t->spec, spec));
    return false;
}

void tri_metric(tri_tensor *t, const char *name) {
    if (t && !t->node->graph->status && check_scalar(t, "a metric")) put_named(t, name, true);
}

void tri_loss(tri_tensor *t) {
    if (!t || t->node->graph->status || !check_scalar(t, "the loss")) return;
    tri_graph *g = t->node->graph;
    if (g->loss) {
        graph_mistake(g, "the loss is declared twice; add the losses up first");
        return;
    }
    g->loss = t;
    put_named(t, "loss", false);
}

/* Another update may overwrite a source before it is read: an update takes a copy of it. */
static tri_tensor *kept(tri_tensor *t) {
    return !t || t->node->n_in ? t : APPLY("stop_gradient", INPUTS(t));
}

void tri_assign_if(tri_tensor *target, tri_tensor *value, tri_tensor *condition) {
    tri_graph *g = tri_graph_of(target);
    if (!g || g->status) return;
    char a[SPEC_TEXT], b[SPEC_TEXT];
    if (!value || value->node->graph != g || (condition && condition->node->graph != g))
        graph_mistake(g, "tri_assign: the value or the condition of %s is a null pointer or "
                      "belongs to another graph", tri_name_of(target));
    else if (!node_is_stored(target->node))
        graph_mistake(g, "tri_assign: the target must be a parameter or a state, not %s",
                      tri_name_of(target));
    else if (target->spec.type != value->spec.type ||
             !base_shape_equal(&target->spec.shape, &value->spec.shape))
        graph_mistake(g, "tri_assign: %s is %s, its new value %s",
                      source_name(target->node), base_spec_text(&target->spec, a),
                      base_spec_text(&value->spec, b));
    else if (condition && (condition->spec.type != TRI_BOOL || condition->spec.shape.rank))
        graph_mistake(g, "tri_assign_if: the condition must be a bool scalar, not %s",
                      base_spec_text(&condition->spec, a));
    else
        graph_put_update(g, (struct graph_update){target, kept(value), kept(condition)});
}

void tri_assign(tri_tensor *target, tri_tensor *value) { tri_assign_if(target, value, NULL); }
