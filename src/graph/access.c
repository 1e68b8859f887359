/* SPDX-License-Identifier: Apache-2.0
 * Queries on tensors, nodes, attributes and parameters; the check of a graph's invariants. */
#include <fnmatch.h>
#include <string.h>

#include "graph/graph.h"

tri_graph *tri_graph_of(const tri_tensor *t) { return t ? t->node->graph : NULL; }
tri_type tri_type_of(const tri_tensor *t) { return t ? t->spec.type : TRI_F32; }
tri_shape tri_shape_of(const tri_tensor *t) { return t ? t->spec.shape : TRI_SCALAR; }
int tri_ndim(const tri_tensor *t) { return t ? t->spec.shape.rank : 0; }

/* Parameters, states and inputs go by their own names, as in files and messages. */
const char *tri_name_of(const tri_tensor *t) {
    const tri_attr *name = t && !t->node->n_in ? node_attr(t->node, "name") : NULL;
    return name ? name->text : t ? t->node->name : "";
}

int64_t tri_dim(const tri_tensor *t, int axis) {
    if (!t) return 1;
    const tri_shape *s = &t->spec.shape;
    if (axis < 0) axis += s->rank;
    if (axis >= 0 && axis < s->rank) return s->dim[axis];
    graph_mistake(t->node->graph, "%s has %d dimension(s); there is no dimension %d",
                  tri_name_of(t), s->rank, axis);
    return 1;
}

const tri_op *tri_node_op(const tri_node *n) { return n->entry->op; }
int tri_node_inputs(const tri_node *n) { return n->n_in; }
tri_tensor *tri_node_in(const tri_node *n, int i) {
    return i >= 0 && i < n->n_in ? n->in[i] : NULL;
}
int tri_node_outputs(const tri_node *n) { return n->n_out; }
tri_tensor *tri_node_out(const tri_node *n, int i) {
    return i >= 0 && i < n->n_out ? &n->out[i] : NULL;
}
tri_node *tri_node_of(const tri_tensor *t) { return t ? t->node : NULL; }

const tri_attr *node_attr(const tri_node *n, const char *name) {
    for (int i = 0; i < n->entry->n_attrs; i++)
        if (!strcmp(n->entry->attr[i].name, name)) return &n->attr[i];
    return NULL;
}

/* A row that asks for an attribute it does not declare has a bug. */
static const tri_attr *attr_of(const tri_node *n, const char *name) {
    const tri_attr *a = node_attr(n, name);
    CHECK(a);
    return a;
}

int64_t tri_attr_int(const tri_node *n, const char *name) { return attr_of(n, name)->i; }
double tri_attr_float(const tri_node *n, const char *name) { return attr_of(n, name)->f; }
tri_shape tri_attr_list(const tri_node *n, const char *name) { return attr_of(n, name)->list; }
const char *tri_attr_text(const tri_node *n, const char *name) { return attr_of(n, name)->text; }

const char *node_key(const tri_node *n) {
    const tri_attr *key = node_attr(n, "key");
    return key && *key->text ? key->text : n->name;
}

bool node_is(const tri_node *n, const char *kind) { return !strcmp(n->entry->op->name, kind); }
bool node_is_param(const tri_node *n) { return node_is(n, "param"); }
bool node_is_stored(const tri_node *n) { return node_is_param(n) || node_is(n, "state"); }
const char *source_name(const tri_node *n) { return tri_attr_text(n, "name"); }

bool node_is_literal(const tri_node *n) { return node_is(n, "constant") || node_is(n, "array"); }
bool node_runs(const tri_node *n) { return n->n_in || n->entry->op->kernel; }

bool node_reads(const tri_node *n, int i) {
    return i >= 32 || !(n->entry->op->shape_only >> i & 1);
}

bool graph_trains(const tri_graph *g) {
    bool any = false; /* updates of running statistics alone are no training */
    for (size_t i = 0; i < g->n_updates; i++) any |= node_is_param(g->update[i].target->node);
    return any;
}

size_t graph_forward(const tri_graph *g) {
    size_t n = 0;
    while (n < g->n_nodes && !g->node[n]->backward) n++;
    return n;
}

bool graph_has_gradients(const tri_graph *g) {
    return graph_forward(g) < g->n_nodes || graph_trains(g);
}

bool graph_per_lane(const tri_graph *g) {
    for (size_t i = 0; i < g->n_nodes; i++)
        if (node_per_lane(g->node[i])) return true;
    return false;
}

void graph_mark_backward(const tri_graph *g, bool *backward) {
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tri_node *n = g->node[i];
        backward[i] = n->backward;
        for (int k = 0; k < n->n_in; k++) backward[i] |= backward[n->in[k]->node->id];
    }
}

bool attr_equal(enum attr_kind kind, const tri_attr *a, const tri_attr *b) {
    switch (kind) {
    case ATTR_FLOAT: return !memcmp(&a->f, &b->f, sizeof a->f);
    case ATTR_TEXT: return !strcmp(a->text, b->text);
    case ATTR_INTS:
    case ATTR_SHAPE: return base_shape_equal(&a->list, &b->list);
    default: return a->i == b->i;
    }
}

bool node_any(const tri_node *n, const bool *mark) {
    bool any = false;
    for (int k = 0; k < n->n_out; k++) any |= mark[n->out[k].id];
    return any;
}

bool type_is_float(tri_type t) { return t == TRI_F32 || t == TRI_BF16 || t == TRI_F16; }

tri_spec graph_sample_spec(const tri_spec *batch) {
    tri_spec one = {batch->type, {batch->shape.rank - 1, {0}}};
    for (int i = 0; i < one.shape.rank; i++) one.shape.dim[i] = batch->shape.dim[i + 1];
    return one;
}

int graph_count(const tri_graph *g, const char *kind) {
    int n = 0;
    for (size_t i = 0; i < g->n_nodes; i++) n += node_is(g->node[i], kind);
    return n;
}

int tri_param_count(const tri_graph *g) { return g ? graph_count(g, "param") : 0; }

tri_tensor *tri_param_at(const tri_graph *g, int k) {
    for (size_t i = 0; g && i < g->n_nodes; i++)
        if (node_is_param(g->node[i]) && k-- == 0) return &g->node[i]->out[0];
    return NULL;
}

tri_tensor *tri_find(const tri_graph *g, const char *name) {
    if (!g || !name) return NULL;
    const tri_node *source = graph_source(g, name);
    if (source) return source->out;
    for (size_t i = 0; i < g->n_settings; i++)
        if (g->setting[i].kind == SETTING_TIE && !strcmp(g->setting[i].pattern, name))
            return g->setting[i].param;
    const struct graph_output *o = graph_output_find(g, name);
    return o ? o->tensor : NULL;
}

bool node_in_scope(const tri_node *n, const char *pattern) {
    char scope[512];
    for (const char *p = n->name; *p; p++) {
        if (*p != '.' || (size_t)(p - n->name) >= sizeof scope) continue;
        memcpy(scope, n->name, (size_t)(p - n->name));
        scope[p - n->name] = 0;
        if (!fnmatch(pattern, scope, 0)) return true;
    }
    return !fnmatch(pattern, n->name, 0);
}

void graph_mark_results(const tri_graph *g, bool *result) {
    for (size_t i = 0; i < g->n_outputs; i++) result[g->output[i].tensor->id] = true;
    for (size_t i = 0; i < g->n_updates; i++) {
        result[g->update[i].value->id] = true;
        if (g->update[i].condition) result[g->update[i].condition->id] = true;
    }
}

void graph_forget_mesh(tri_graph *g) {
    size_t n = 0;
    g->mesh = (struct mesh){0};
    for (size_t i = 0; i < g->n_settings; i++)
        if (g->setting[i].kind < SETTING_STRATEGY) g->setting[n++] = g->setting[i];
    g->n_settings = n;
    for (int i = 0; i < g->n_shorter; i++) graph_forget_mesh(g->shorter[i].g);
}

void graph_verify(const tri_graph *g) {
    int tensors = 0;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tri_node *n = g->node[i];
        CHECK(n->graph == g && n->id == (int)i && n->n_out >= 1);
        for (int k = 0; k < n->n_in; k++) {
            const tri_tensor *t = n->in[k];
            CHECK(t->node->graph == g && t->node->id < n->id && t == &t->node->out[t->index]);
        }
        for (int k = 0; k < n->n_out; k++) {
            CHECK(n->out[k].node == n && n->out[k].index == k && n->out[k].id == tensors++);
        }
    }
    CHECK(tensors == g->n_tensors);
    for (size_t i = 0; i < g->n_updates; i++) {
        const struct graph_update *u = &g->update[i];
        CHECK(node_is_stored(u->target->node) && u->value->node->graph == g);
        CHECK(base_shape_equal(&u->target->spec.shape, &u->value->spec.shape));
    }
}
