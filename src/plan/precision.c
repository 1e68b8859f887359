/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/precision.h"

#include <stdlib.h>
#include <string.h>

#include "plan/option_rows.h"
#include "plan/replay.h"
#include "plan/rewrite.h"

/* The type of a node's floating-point inputs. */
enum want {
    AS_THEY_COME,
    ORIGINAL, /* the type before lowering */
    F32,
    FOLLOW, /* half, if all inputs that depend on the data are */
    HALF,   /* half, except in the loss and of single numbers */
    PRODUCT /* half */
};

#define LEVELS 4

static const enum want wants[][LEVELS] = {
    /*                           O0        O1            O2            O3 */
    [TRI_PRECISION_FULL]   = {ORIGINAL, F32,          F32,          F32},
    [TRI_PRECISION_ANY]    = {ORIGINAL, AS_THEY_COME, AS_THEY_COME, AS_THEY_COME},
    [TRI_PRECISION_WIDE]   = {ORIGINAL, F32,          HALF,         HALF},
    [TRI_PRECISION_FOLLOW] = {ORIGINAL, FOLLOW,       HALF,         HALF},
    [TRI_PRECISION_LOW]    = {ORIGINAL, PRODUCT,      PRODUCT,      PRODUCT},
};

/* About one node. */
struct fact {
    bool step;    /* of a step that the program composed: what neither a result nor a derivative
                     needs, and what depends on derivatives; it keeps its types */
    bool data;    /* it depends on an input */
    bool weight;  /* it depends on a parameter, but on no input */
    bool network; /* it is a layer or comes before one, so it is no part of the loss */
    bool result;  /* an output depends on it */
};

struct lowering {
    struct precision p;
    struct rewrite r;
    tri_graph *g;
    struct fact *fact; /* by node number */
    bool *derived;     /* by node number: it depends on derivatives; then: a result needs it */
    tri_type *was;       /* by tensor number: the type before */
    tri_tensor **copy[3]; /* by type and tensor number: the tensor cast to this type */
};

/* ---- options ---- */

static struct precision precision_read(const tri_options *o) {
    bool f16 = option_choice("--amp-type", o->amp_type) == AMP_TYPE_F16;
    return (struct precision){option_choice("--amp", o->amp), f16 ? TRI_F16 : TRI_BF16};
}

/* The precision set for the node's scope, if any; the last setting counts. */
static struct precision precision_of(const struct lowering *l, const tri_node *n) {
    const tri_graph *g = l->g;
    for (size_t i = g->n_settings; i-- > 0;) {
        const struct graph_setting *s = &g->setting[i];
        if (s->kind != SETTING_PRECISION || !node_in_scope(n, s->pattern)) continue;
        tri_type type = (tri_type)s->value;
        if (type == TRI_F32) return (struct precision){0, TRI_F32};
        return (struct precision){l->p.level < 2 ? 2 : l->p.level, type};
    }
    return l->p;
}

/* ---- facts ---- */

static bool is_float(const tri_tensor *t) { return type_is_float(t->spec.type); }

static bool is_number(const tri_node *n) {
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i].spec.shape.rank) return false;
    return true;
}

/* Whether the node uses weights or is a product. A single number is no layer: it is a loss to which
 * a penalty of weights is added. */
static bool is_layer(const struct lowering *l, const tri_node *n) {
    bool enters = n->entry->op->precision == TRI_PRECISION_LOW;
    for (int i = 0; i < n->n_in; i++) enters |= l->fact[n->in[i]->node->id].weight;
    return enters && l->fact[n->id].data && !is_number(n);
}

/* Tells the network from the step that a program composed of its gradients. */
static void find_step(struct lowering *l) {
    const tri_graph *g = l->g;
    bool *network = l->derived + g->n_nodes;
    graph_mark_backward(g, l->derived);
    for (size_t i = 0; i < g->n_gradients; i++) network[g->gradient[i].y->node->id] = true;
    for (size_t i = 0; i < g->n_outputs; i++) {
        const tri_node *n = g->output[i].tensor->node;
        network[n->id] |= !l->derived[n->id];
    }
    for (size_t i = 0; i < g->n_updates; i++) {
        const struct graph_update *u = &g->update[i];
        const int value = u->value->node->id;
        network[value] |= !l->derived[value] && !node_is_param(u->target->node);
    }
    for (size_t i = g->n_nodes; i-- > 0;)
        for (int k = 0; network[i] && k < g->node[i]->n_in; k++)
            network[g->node[i]->in[k]->node->id] = true;
    for (size_t i = 0; i < g->n_nodes; i++)
        l->fact[i].step = g->node[i]->n_in && (l->derived[i] || !network[i]);
}

static void find_facts(struct lowering *l) {
    const tri_graph *g = l->g;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tri_node *n = g->node[i];
        struct fact *f = &l->fact[i];
        for (int k = 0; k < n->n_out; k++) l->was[n->out[k].id] = n->out[k].spec.type;
        if (f->step) continue;
        f->data = node_is(n, "input");
        f->weight = node_is_param(n);
        for (int k = 0; k < n->n_in; k++) {
            f->data |= l->fact[n->in[k]->node->id].data;
            f->weight |= l->fact[n->in[k]->node->id].weight;
        }
        f->weight &= !f->data;
    }
    for (size_t i = 0; i < g->n_outputs; i++) l->fact[g->output[i].tensor->node->id].result = true;
    for (size_t i = g->n_nodes; i-- > 0;) {
        const tri_node *n = g->node[i];
        if (l->fact[i].step) continue;
        l->fact[i].network |= is_layer(l, n);
        for (int k = 0; k < n->n_in; k++) {
            struct fact *f = &l->fact[n->in[k]->node->id];
            f->network |= l->fact[i].network;
            f->result |= l->fact[i].result;
        }
    }
}

/* ---- lowering ---- */

/* The tensor in another type, cast once. A constant is built again, as the builders would. */
static tri_tensor *converted(struct lowering *l, tri_tensor *t, tri_type type) {
    if (t->spec.type == type) return t;
    tri_tensor **copy = &l->copy[type][t->id];
    if (*copy) return *copy;
    rewrite_enter(&l->r, t->node, tri_type_name(type));
    *copy = node_is(t->node, "constant")
                ? tri_constant(l->g, tri_attr_float(t->node, "value"), type)
                : tri_cast(t, type);
    rewrite_leave(&l->r);
    return *copy;
}

/* Whether input i may have a half type. */
static bool may_be_half(const tri_node *n, int i) {
    return is_float(n->in[i]) && !(i < 32 && n->entry->op->in_f32 >> i & 1);
}

/* The half type that all inputs depending on the data have; f32 if there is none. */
static tri_type common_half(const struct lowering *l, const tri_node *n) {
    int common = -1;
    for (int i = 0; i < n->n_in; i++) {
        if (!may_be_half(n, i) || !l->fact[n->in[i]->node->id].data) continue;
        tri_type type = n->in[i]->spec.type;
        common = common < 0 || common == (int)type ? (int)type : (int)TRI_F32;
    }
    return common < 0 ? TRI_F32 : (tri_type)common;
}

static tri_type type_for(const struct lowering *l, const tri_node *n, enum want want,
                         struct precision p) {
    const struct fact *f = &l->fact[n->id];
    bool loss = !f->network && !(p.level == 3 && f->result);
    if (want == F32) return TRI_F32;
    if (want == PRODUCT) return p.half;
    if (!f->data || loss || is_number(n)) return TRI_F32;
    return want == HALF ? p.half : common_half(l, n);
}

static void lower(struct lowering *l, tri_node *n) {
    if (n->backward) return; /* tri_grad will be repeated */
    struct precision p = precision_of(l, n);
    if (l->fact[n->id].step) p = (struct precision){0, TRI_BF16};
    /* A scope may ask for f32 at every level; O0 keeps the types that were written. */
    bool full = p.half == TRI_F32;
    enum want want = full ? F32 : wants[n->entry->op->precision][p.level];
    if (full && n->entry->op->precision == TRI_PRECISION_ANY) want = AS_THEY_COME;
    tri_type type = want == ORIGINAL || want == AS_THEY_COME ? TRI_F32 : type_for(l, n, want, p);
    for (int i = 0; i < n->n_in && want != AS_THEY_COME; i++) {
        if (!is_float(n->in[i])) continue;
        tri_type to = want == ORIGINAL ? l->was[n->in[i]->id] : type;
        n->in[i] = converted(l, n->in[i], may_be_half(n, i) ? to : TRI_F32);
    }
    if (n->n_in) graph_retype(n);
}

/* Outputs and updates keep their types. */
static void restore_results(struct lowering *l) {
    tri_graph *g = l->g;
    for (size_t i = 0; i < g->n_outputs; i++) {
        tri_tensor **t = &g->output[i].tensor;
        bool loss = *t == g->loss;
        *t = converted(l, *t, l->was[(*t)->id]);
        if (loss) g->loss = *t;
    }
    for (size_t i = 0; i < g->n_gradients; i++) {
        tri_tensor **y = &g->gradient[i].y;
        *y = converted(l, *y, l->was[(*y)->id]);
    }
    for (size_t i = 0; i < g->n_updates; i++) {
        tri_tensor **t = &g->update[i].value;
        if (is_float(*t)) *t = converted(l, *t, g->update[i].target->spec.type);
    }
}

static bool allocate(struct lowering *l) {
    size_t n = (size_t)l->g->n_tensors + 1;
    l->fact = calloc(l->g->n_nodes + 1, sizeof *l->fact);
    l->derived = calloc(2 * l->g->n_nodes + 1, sizeof *l->derived);
    l->was = calloc(n, sizeof *l->was);
    bool ok = l->fact && l->derived && l->was;
    for (size_t i = 0; i < COUNT(l->copy); i++)
        ok &= (l->copy[i] = calloc(n, sizeof(tri_tensor *))) != NULL;
    return ok;
}

static tri_status lower_all(struct lowering *l) {
    if (!allocate(l)) return base_no_memory("mixed precision");
    if (graph_has_gradients(l->g)) find_step(l);
    find_facts(l);
    rewrite_begin(&l->r, l->g);
    tri_node *n;
    for (size_t i = 0; (n = rewrite_next(&l->r, i)); i++) {
        lower(l, n);
        rewrite_keep(&l->r, n);
    }
    if (!l->g->status) restore_results(l);
    tri_status status = rewrite_end(&l->r);
    return status || !l->g->n_gradients ? status : replay_gradients(l->g);
}

/* ---- the pass ---- */

static tri_status check_scopes(const tri_graph *g) {
    for (size_t i = 0; i < g->n_settings; i++) {
        const struct graph_setting *s = &g->setting[i];
        bool found = s->kind != SETTING_PRECISION;
        for (size_t k = 0; k < g->n_nodes && !found; k++)
            found = node_in_scope(g->node[k], s->pattern);
        if (!found)
            return base_fail(TRI_USAGE, "tri_precision: no scope and no operator matches \"%s\"",
                             s->pattern);
    }
    return TRI_OK;
}

/* The half types that options and settings ask for, as a set of bits. */
static unsigned types_wanted(const tri_graph *g, const struct precision *p) {
    unsigned types = p->level ? 1u << p->half : 0;
    for (size_t i = 0; i < g->n_settings; i++)
        if (g->setting[i].kind == SETTING_PRECISION) types |= 1u << (int)g->setting[i].value;
    return types & (1u << TRI_BF16 | 1u << TRI_F16);
}

/* The settings have been applied; an evaluation of the same model would apply them again. */
static void drop_settings(tri_graph *g) {
    size_t kept = 0;
    g->n_gradients = 0;
    for (size_t i = 0; i < g->n_settings; i++)
        if (g->setting[i].kind != SETTING_PRECISION) g->setting[kept++] = g->setting[i];
    g->n_settings = kept;
}

tri_status precision_lower(tri_graph *g, const tri_options *o, const struct target *target,
                           tri_type *half, const char **note) {
    struct lowering l = {.g = g, .p = precision_read(o)};
    *half = TRI_F32;
    unsigned types = types_wanted(g, &l.p);
    if (!types) {
        drop_settings(g);
        return TRI_OK;
    }
    if (graph_forward(g) < g->n_nodes && !g->n_gradients)
        return base_fail(TRI_USAGE, "the network is a text with gradients, but without the calls "
                         "that made them (\"gradient\"), so its precision cannot be changed "
                         "(--amp, tri_precision): take the text before the pass precision");
    tri_status status = check_scopes(g);
    if (status) return status;
    for (tri_type t = TRI_BF16; t <= TRI_F16; t++) {
        const char *lacks = types >> t & 1 && target && target->lacks ? target->lacks(t) : NULL;
        if (lacks && t == TRI_F16)
            return base_fail(TRI_USAGE, "f16 (--amp-type, tri_precision): %s; bf16 is the other "
                             "half type", lacks);
        if (lacks) *note = lacks;
        if (types >> t & 1) *half = t;
    }
    if (*note)
        *half = TRI_F32;
    else
        status = lower_all(&l);
    drop_settings(g);
    free(l.fact);
    free(l.derived);
    free(l.was);
    for (size_t i = 0; i < COUNT(l.copy); i++) free(l.copy[i]);
    return status;
}
