/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/rebatch.h"

#include <stdlib.h>
#include <string.h>

#include "plan/factors.h"
#include "plan/lanes.h"

/* ---- which dimension of each tensor holds the samples ---- */

static struct split *sample_splits(const tri_graph *g) {
    int widest = 1;
    for (size_t i = 0; i < g->n_nodes; i++)
        if (g->node[i]->n_in > widest) widest = g->node[i]->n_in;
    struct split *l = calloc((size_t)g->n_tensors + 1, sizeof *l);
    struct split *in = calloc((size_t)widest, sizeof *in);
    bool ok = l && in;
    for (size_t i = 0; ok && i < g->n_nodes; i++) {
        const tri_node *n = g->node[i];
        struct split out[TRI_MAX_OUTPUTS] = {{.kind = WHOLE}};
        bool split = false;
        for (int k = 0; k < n->n_in; k++) {
            in[k] = l[n->in[k]->id];
            split |= in[k].kind == SPLIT;
        }
        if (node_is(n, "input")) out[0].kind = SPLIT;
        if (split) ok = !factors_carry(n, in, out, true);
        for (int k = 0; k < n->n_out; k++)
            l[n->out[k].id] =
                out[k].kind == SPLIT ? out[k] : (struct split){.kind = WHOLE};
    }
    free(in);
    if (ok) return l;
    free(l);
    base_no_memory("the split of the samples");
    return NULL;
}

int64_t rebatch_sample(const tri_tensor *t, int64_t element) {
    const tri_graph *g = t->node->graph;
    const tri_shape *shape = &t->spec.shape;
    struct split *all = sample_splits(g), here = all ? all[t->id] : (struct split){.kind = WHOLE};
    int64_t inner = 1;
    free(all);
    if (here.kind != SPLIT || t->block || *t->pack) return -1;
    for (int d = here.dim + 1; d < shape->rank; d++) inner *= shape->dim[d];
    int64_t each = shape->dim[here.dim] / g->batch; /* places of a sample along the dimension */
    return each ? element / inner % shape->dim[here.dim] / each : -1;
}

struct copier {
    const tri_graph *from;
    tri_graph *to;
    const struct split *split;
    tri_tensor **here;
    bool *wanted;   /* by node */
    bool *backward; /* by node: it depends on gradients */
    bool evaluation;
};

static bool copy_attrs(const struct copier *c, const tri_node *n, tri_attr *attrs) {
    const struct op_entry *e = n->entry;
    if (!factors_rebatch(n, c->split[n->out[0].id], c->to->batch, c->to, attrs)) return false;
    for (int i = 0; c->evaluation && i < e->n_attrs; i++) {
        if (!strcmp(e->attr[i].name, "training")) attrs[i].i = 0;
        /* Without statistics there are no groups, which a smaller last batch may not fill. */
        if (!strcmp(e->attr[i].name, "groups") && e->op->group_values) attrs[i].i = 1;
    }
    return true;
}

static void copy_node(struct copier *c, const tri_node *n) {
    tri_attr attrs[MAX_ATTRS];
    tri_tensor **in = calloc((size_t)n->n_in + 1, sizeof *in);
    if (!in) {
        graph_fail(c->to, TRI_FAILED, "out of memory for a graph");
        return;
    }
    for (int i = 0; i < n->n_in; i++) in[i] = c->here[n->in[i]->id];
    if (copy_attrs(c, n, attrs)) {
        tri_node *copy = graph_copy(c->to, n, in, attrs, n->name);
        if (copy != c->to->poison_node)
            for (int i = 0; i < n->n_out; i++) c->here[n->out[i].id] = &copy->out[i];
    }
    free(in);
}

/* An evaluation has no gradients and nothing that depends on them. */
static bool keeps_output(const struct copier *c, const struct graph_output *o) {
    return !c->evaluation || !c->backward[o->tensor->node->id];
}

/* Rows of lanes (per_lane) are as many as the lanes, and nothing that is stored may be. */
static void copy_update(struct copier *c, const struct graph_update *u) {
    tri_tensor *target = c->here[u->target->id], *value = c->here[u->value->id];
    if (!base_shape_equal(&target->spec.shape, &value->spec.shape)) {
        char spec[2][SPEC_TEXT];
        graph_fail(c->to, TRI_USAGE, "%s is %s, and its new value, %s, is %s",
                   source_name(u->target->node), base_spec_text(&target->spec, spec[0]),
                   value->node->name, base_spec_text(&value->spec, spec[1]));
        return;
    }
    graph_put_update(c->to, (struct graph_update){
                                target, value, u->condition ? c->here[u->condition->id] : NULL});
}

/* An evaluation needs only the nodes that outputs need. Stored values stay: files list them all. */
static void mark(struct copier *c) {
    const tri_graph *g = c->from;
    graph_mark_backward(g, c->backward);
    for (size_t i = 0; i < g->n_nodes; i++)
        c->wanted[i] = !c->evaluation || node_is_stored(g->node[i]);
    for (size_t i = 0; i < g->n_outputs; i++)
        if (keeps_output(c, &g->output[i])) c->wanted[g->output[i].tensor->node->id] = true;
    for (size_t i = g->n_nodes; i-- > 0;)
        if (c->wanted[i])
            for (int k = 0; k < g->node[i]->n_in; k++)
                c->wanted[g->node[i]->in[k]->node->id] = true;
}

static void copy_all(struct copier *c) {
    const tri_graph *g = c->from;
    tri_graph *to = c->to;
    mark(c);
    for (size_t i = 0; i < g->n_nodes && !to->status; i++)
        if (c->wanted[i]) copy_node(c, g->node[i]);
    if (to->status) return;
    for (size_t i = 0; i < g->n_outputs; i++) {
        struct graph_output o = g->output[i];
        if (!keeps_output(c, &o)) continue;
        o.tensor = c->here[o.tensor->id];
        graph_put_output(to, o);
    }
    if (g->loss) to->loss = c->here[g->loss->id];
    if (!c->evaluation) to->used = g->used;
    if (to->used.loss_scale)
        to->used.loss_scale = arena_copy(&to->arena, to->used.loss_scale);
    to->lr = g->lr;
    to->schedule = g->schedule ? arena_copy(&to->arena, g->schedule) : NULL;
    for (size_t i = 0; i < g->n_settings; i++) {
        struct graph_setting s = g->setting[i];
        if (s.param) s.param = c->here[s.param->id];
        graph_put_setting(to, s);
    }
    for (size_t i = 0; i < g->n_gradients && !c->evaluation && !to->status; i++) {
        struct graph_gradient d = g->gradient[i];
        d.y = c->here[d.y->id];
        d.first = c->here[d.first->id];
        graph_put_gradient(to, d);
        for (int k = 0; k < 2 * d.n && !to->status; k++)
            to->gradient[i].pair[k] = c->here[d.pair[k]->id];
    }
    for (size_t i = 0; i < g->n_updates && !c->evaluation; i++) copy_update(c, &g->update[i]);
}

/* Gradients contain numbers that depend on the batch: the divisors of means. */
static tri_status check_gradients(const tri_graph *g, int64_t batch) {
    if (!graph_has_gradients(g)) return TRI_OK;
    return base_fail(TRI_USAGE, "the network was built with its gradients for a batch of %lld; it "
                     "cannot be made for %lld (tri_options.batch, --batch): build it for that "
                     "batch, or ask for %lld", (long long)g->batch, (long long)batch,
                     (long long)g->batch);
}

tri_graph *graph_rebatch(const tri_graph *g, int64_t batch, int64_t lanes, bool evaluation) {
    if (tri_graph_status(g)) return NULL;
    if (batch != g->batch && !evaluation && check_gradients(g, batch)) return NULL;
    struct split *split = sample_splits(g);
    struct copier c = {.from = g, .to = tri_graph_new(batch), .split = split,
                       .here = calloc((size_t)g->n_tensors + 1, sizeof(tri_tensor *)),
                       .wanted = calloc(g->n_nodes + 1, sizeof *c.wanted),
                       .backward = calloc(g->n_nodes + 1, sizeof *c.backward),
                       .evaluation = evaluation};
    tri_status status = TRI_OK;
    if (c.to && c.here && c.wanted && c.backward && split) {
        c.to->lanes = lanes;
        c.to->mesh = g->mesh;
        copy_all(&c);
        status = tri_graph_status(c.to);
    } else {
        status = base_no_memory("a graph");
    }
    free(split);
    free(c.here);
    free(c.wanted);
    free(c.backward);
    if (!status) return c.to;
    tri_graph_free(c.to);
    return NULL;
}

tri_graph *graph_duplicate(const tri_graph *g, int64_t batch) {
    tri_graph *to = graph_rebatch(g, batch, g->lanes, false);
    if (!to) return NULL;
    graph_number_like(to, g);
    if (g->spec) to->spec = arena_copy(&to->arena, g->spec);
    for (int i = 0; i < g->n_shorter; i++) {
        const struct graph_shorter *s = &g->shorter[i];
        tri_graph *other = graph_duplicate(s->g, s->g->batch);
        if (other) to->shorter[to->n_shorter++] = (struct graph_shorter){s->length, other};
    }
    if (to->n_shorter == g->n_shorter) return to;
    tri_graph_free(to);
    return NULL;
}

tri_status rebatch_check_groups(const tri_graph *g) {
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tri_node *n = g->node[i];
        const tri_op *op = n->entry->op;
        if (!op->group_values || !tri_attr_int(n, "training")) continue;
        int64_t groups = tri_attr_int(n, "groups") * g->lanes, values = op->group_values(n);
        if (values < 2)
            tri_op_error(n, "%lld sample(s) in %lld group(s) (%lld lane(s)) leave %lld value(s) "
                         "for a channel's variance, which training needs; at least 2 are needed: "
                         "more samples, or fewer lanes or groups", (long long)tri_dim(n->in[0], 0),
                         (long long)groups, (long long)g->lanes, (long long)values);
    }
    return tri_graph_status(g);
}

/* ---- the default number of lanes ---- */

/* Whether a sample is a sequence of indices, for example of words. */
static bool has_sequences(const tri_graph *g) {
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tri_spec *s = &g->node[i]->out->spec;
        bool indices = s->type == TRI_I32 || s->type == TRI_I64;
        if (node_is(g->node[i], "input") && indices && s->shape.rank == 2 && s->shape.dim[1] > 1)
            return true;
    }
    return false;
}

#define CACHED 262144    /* elements of parameters that stay in a core's cache */
#define LANE_WORK 500.0 /* flops of a lane's forward pass per element of the parameters */

static double parameters(const tri_graph *g) {
    double n = 0;
    for (size_t i = 0; i < g->n_nodes; i++)
        if (node_is_param(g->node[i])) n += (double)tri_shape_count(&g->node[i]->out->spec.shape);
    return n;
}

/* Whether half of the matmuls' arithmetic or more keeps 64 rows with so many lanes, and, if the
 * parameters are larger than a cache, the work done with them outweighs its cost per lane: reading
 * and packing the parameters, summing their gradients. */
static bool work_suffices(const tri_graph *g, const struct split *split, int64_t lanes) {
    double all = 0, good = 0, p = parameters(g);
    size_t forward = graph_forward(g);
    for (size_t i = 0; i < forward; i++) {
        const tri_node *n = g->node[i];
        if (!n->entry->op->flops || split[n->out[0].id].kind != SPLIT) continue;
        double flops = n->entry->op->flops(n);
        all += flops;
        if (factors_rows(n) / lanes >= 64) good += flops;
    }
    return good >= 0.5 * all && (p <= CACHED || all / (double)lanes >= LANE_WORK * p);
}

/* TRI_USAGE: the graph cannot be divided into so many lanes. */
static tri_status try_cut(const tri_graph *g, int64_t lanes) {
    struct cut c;
    tri_graph *whole = graph_rebatch(g, g->batch, lanes, false);
    tri_status status = whole ? rebatch_check_groups(whole) : base_last();
    if (!status && !(status = cut_make(whole, lanes, lanes > 1, &c))) cut_free(&c);
    tri_graph_free(whole);
    return status;
}

int64_t lanes_default(const tri_graph *g) {
    int64_t least = has_sequences(g) ? 1 : 16, v = 8;
    tri_status status = TRI_OK;
    struct split *split = sample_splits(g);
    if (!split) return 0;
    for (; v > 1; v /= 2) {
        if (g->batch / v < least || !work_suffices(g, split, v)) continue;
        status = try_cut(g, v);
        if (status != TRI_USAGE) break;
    }
    free(split);
    return status == TRI_FAILED ? 0 : v;
}
