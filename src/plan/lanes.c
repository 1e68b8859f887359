/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/lanes.h"

#include <stdlib.h>
#include <string.h>

int64_t lane_first(int64_t batch, int64_t lanes, int64_t i) {
    int64_t each = batch / lanes, more = batch % lanes;
    return i * each + (i < more ? i : more);
}

int64_t lane_samples(int64_t batch, int64_t lanes, int64_t i) {
    return lane_first(batch, lanes, i + 1) - lane_first(batch, lanes, i);
}

/* ---- the split of each tensor ---- */

static struct split split_of(const struct cut *c, const tri_tensor *t) {
    return c->split[t->id];
}

static tri_status refuse(const struct cut *c, const tri_node *n, const char *why) {
    if (why == FACTORS_NO_MEMORY) return base_no_memory("cutting lanes");
    struct text t = {0};
    node_describe(n, &t);
    base_fail(TRI_USAGE, "%lld lanes: %s cannot be split: %s; --lanes 1 (tri_options.lanes) keeps "
              "the batch whole", (long long)c->lanes, t.data ? t.data : n->name, why);
    text_free(&t);
    return TRI_USAGE;
}

/* Values that a lane uses must be known before the lanes run. A partial sum that depends on the
 * data alone is summed by the count graph; any other would need results of the lanes: false. */
static bool make_early(struct cut *c, const tri_tensor *t) {
    if (c->split[t->id].kind == PARTIAL) {
        if (!c->data_only[t->id]) return false;
        c->root[0][t->id] = true;
        return true;
    }
    if (c->early[t->id]) return true;
    c->early[t->id] = true;
    for (int i = 0; i < t->node->n_in; i++)
        if (!make_early(c, t->node->in[i])) return false;
    return true;
}

/* A single lane has the whole batch, so it knows sums over it. What follows from them and its
 * samples need, it computes itself: this is a result of the lane as the sums are. */
static void take_into_lane(struct cut *c, const tri_tensor *t) {
    const tri_node *n = t->node;
    for (int i = 0; i < n->n_out; i++) {
        c->split[n->out[i].id] = (struct split){.kind = PARTIAL};
        c->late[n->out[i].id] = false;
    }
    for (int i = 0; i < n->n_in; i++)
        if (c->late[n->in[i]->id]) take_into_lane(c, n->in[i]);
        else if (split_of(c, n->in[i]).kind == WHOLE) make_early(c, n->in[i]);
}

/* Random numbers are counted by the elements of the whole batch, sample after sample. */
static bool samples_lead(const tri_node *n, struct split l) {
    const tri_shape *s = &n->out->spec.shape;
    for (int i = 0; i < l.dim; i++)
        if (s->dim[i] != 1) return false;
    return l.kind == SPLIT && s->dim[l.dim] % n->graph->batch == 0;
}

/* A single lane has all samples: it also runs an operator whose row does not say how it may be
 * split. Results that do not begin with the samples are sums over this lane. */
static bool carry_unknown(const struct cut *c, const tri_node *n, struct split *out) {
    const tri_op *op = n->entry->op;
    if (c->lanes > 1 || op_has_factors(op)) return false;
    for (int i = 0; i < n->n_out; i++) {
        const tri_shape *s = &n->out[i].spec.shape;
        out[i].kind = s->rank && s->dim[0] == c->whole->batch ? SPLIT : PARTIAL;
        out[i].dim = 0;
    }
    return true;
}

static tri_status carry_split(struct cut *c, const tri_node *n, struct split *in,
                              struct split *out) {
    for (int i = 0; i < n->n_in; i++) {
        const tri_tensor *t = n->in[i];
        if (in[i].kind == SPLIT) continue;
        if (c->lanes == 1 && c->late[t->id]) take_into_lane(c, t);
        bool alone = c->lanes == 1 && split_of(c, t).kind == PARTIAL && !c->data_only[t->id];
        if (!alone && !make_early(c, t)) /* the sum over a single lane is known in it */
            return refuse(c, n, "it uses a result of the whole batch for each sample");
        in[i] = (struct split){.kind = WHOLE};
    }
    if (carry_unknown(c, n, out)) return TRI_OK;
    const char *why = factors_carry(n, in, out, false);
    if (why && c->lanes == 1) why = factors_carry(n, in, out, true);
    if (!why && c->lanes > 1 && n->entry->op->random && !samples_lead(n, out[0]))
        why = "it is random, so the samples must be its dimension 0";
    return why ? refuse(c, n, why) : TRI_OK;
}

/* A sum is not taken after a cast that loses digits. */
static bool keeps_digits(const tri_node *n) {
    tri_type from = n->in[0]->spec.type, to = n->out->spec.type;
    return from == to || (type_is_float(from) && to == TRI_F32);
}

/* A node whose inputs are partial sums, none of them split, runs in the lanes if it is linear in
 * all inputs jointly: summing afterwards gives the same. Otherwise the sum comes first. */
static void carry_partial(struct cut *c, const tri_node *n, const struct split *in,
                          struct split *out, bool *late) {
    bool stays = n->entry->op->linear == TRI_LINEAR_JOINTLY && keeps_digits(n);
    for (int i = 0; i < n->n_in; i++) stays = stays && in[i].kind == PARTIAL;
    for (int i = 0; i < n->n_out; i++) out[i] = (struct split){.kind = stays ? PARTIAL : WHOLE};
    if (stays) return;
    for (int i = 0; i < n->n_in; i++)
        if (in[i].kind == PARTIAL && !c->data_only[n->in[i]->id]) *late = true;
}

static tri_status split_node(struct cut *c, const tri_node *n, struct split *in) {
    struct split out[TRI_MAX_OUTPUTS] = {{.kind = WHOLE}};
    bool split = false, partial = false, late = false, data_only = true;
    for (int i = 0; i < n->n_in; i++) {
        in[i] = split_of(c, n->in[i]);
        split |= in[i].kind == SPLIT;
        partial |= in[i].kind == PARTIAL;
        late |= c->late[n->in[i]->id];
        data_only &= c->data_only[n->in[i]->id];
    }
    if (node_is_stored(n)) data_only = false;
    if (node_per_lane(n) && c->lanes > 1 && (in[n->n_in - 1].kind != SPLIT || in[n->n_in - 1].dim))
        return refuse(c, n, "per_lane is for values of samples, which must be dimension 0");
    if (node_is(n, "input") && c->apart) out[0] = (struct split){.kind = SPLIT};
    if (split) {
        tri_status status = carry_split(c, n, in, out);
        if (status) return status;
        late = false;
    } else if (partial) {
        carry_partial(c, n, in, out, &late);
    }
    for (int i = 0; i < n->n_out; i++) {
        c->split[n->out[i].id] = out[i];
        c->late[n->out[i].id] = late;
        c->data_only[n->out[i].id] = data_only;
    }
    return TRI_OK;
}

/* ---- which nodes are needed, and in which phase ---- */

static bool node_live(const struct cut *c, const tri_node *n) { return node_any(n, c->live); }

static bool in_lane(const struct cut *c, const tri_node *n) {
    for (int i = 0; i < n->n_in; i++)
        if (split_of(c, n->in[i]).kind == SPLIT) return true;
    return split_of(c, &n->out[0]).kind != WHOLE;
}

/* Partial sums that a node outside the lanes or an output uses are summed after the lanes, unless
 * the count graph has summed them before. */
static void find_roots(struct cut *c) {
    const tri_graph *g = c->whole;
    for (size_t i = 0; i < g->n_nodes; i++) {
        const tri_node *n = g->node[i];
        if (!node_live(c, n) || in_lane(c, n)) continue;
        for (int k = 0; k < n->n_in; k++)
            if (split_of(c, n->in[k]).kind == PARTIAL && !c->root[0][n->in[k]->id])
                c->root[1][n->in[k]->id] = true;
    }
    for (size_t i = 0; i < g->n_outputs; i++) {
        const tri_tensor *t = g->output[i].tensor;
        if (split_of(c, t).kind == PARTIAL && !c->root[0][t->id]) c->root[1][t->id] = true;
    }
    for (size_t i = 0; i < g->n_updates; i++) {
        const struct graph_update *u = &g->update[i];
        if (split_of(c, u->value).kind != WHOLE) c->root[1][u->value->id] = true;
        if (u->condition && split_of(c, u->condition).kind != WHOLE)
            c->root[1][u->condition->id] = true;
    }
}

static void find_live(struct cut *c) {
    const tri_graph *g = c->whole;
    graph_mark_results(g, c->live);
    for (size_t i = g->n_nodes; i-- > 0;)
        if (node_live(c, g->node[i]))
            for (int k = 0; k < g->node[i]->n_in; k++) c->live[g->node[i]->in[k]->id] = true;
}

static tri_status check_updates(const struct cut *c) {
    for (size_t i = 0; i < c->whole->n_updates && c->lanes > 1; i++) {
        const struct graph_update *u = &c->whole->update[i];
        if (split_of(c, u->value).kind == SPLIT)
            return refuse(c, u->value->node, "an update cannot use a value of each sample");
    }
    return TRI_OK;
}

static bool allocate(struct cut *c) {
    size_t n = (size_t)c->whole->n_tensors + 1;
    bool **flags[] = {&c->late, &c->data_only, &c->live, &c->early, &c->root[0], &c->root[1]};
    c->split = calloc(n, sizeof *c->split);
    bool ok = c->split;
    for (size_t i = 0; i < COUNT(flags); i++) ok &= (*flags[i] = calloc(n, 1)) != NULL;
    return ok;
}

static tri_status split_all(struct cut *c) {
    const tri_graph *g = c->whole;
    int widest = 1;
    for (size_t i = 0; i < g->n_nodes; i++)
        if (g->node[i]->n_in > widest) widest = g->node[i]->n_in;
    struct split *in = calloc((size_t)widest, sizeof *in);
    if (!in) return base_no_memory("cutting lanes");
    tri_status status = TRI_OK;
    for (size_t i = 0; i < g->n_nodes && !status; i++)
        if (node_live(c, g->node[i])) status = split_node(c, g->node[i], in);
    free(in);
    return status;
}

tri_status cut_make(tri_graph *whole, int64_t lanes, bool apart, struct cut *c) {
    *c = (struct cut){.whole = whole, .lanes = lanes, .apart = apart || lanes > 1};
    tri_status status = allocate(c) ? TRI_OK : base_no_memory("cutting lanes");
    if (!status) {
        find_live(c);
        status = split_all(c);
    }
    if (!status) status = check_updates(c);
    if (status)
        cut_free(c);
    else
        find_roots(c);
    return status;
}

static const tri_tensor *gradient_of(const struct cut *c, const tri_tensor *t, int64_t size,
                                     bool *seen) {
    if (seen[t->id] || tri_shape_count(&t->spec.shape) != size) return NULL;
    seen[t->id] = true;
    if (c->root[1][t->id]) return t;
    const tri_tensor *found = NULL;
    for (int i = 0; i < t->node->n_in && !found; i++)
        found = gradient_of(c, t->node->in[i], size, seen);
    return found;
}

tri_status cut_gradient(const struct cut *c, size_t i, const tri_tensor **gradient) {
    const struct graph_update *u = &c->whole->update[i];
    *gradient = NULL;
    if (!node_is_param(u->target->node)) return TRI_OK;
    bool *seen = calloc((size_t)c->whole->n_tensors + 1, sizeof *seen);
    if (!seen) return base_no_memory("gradients");
    *gradient = gradient_of(c, u->value, tri_shape_count(&u->target->spec.shape), seen);
    free(seen);
    return TRI_OK;
}

void cut_free(struct cut *c) {
    bool *flags[] = {c->late, c->data_only, c->live, c->early, c->root[0], c->root[1]};
    for (size_t i = 0; i < COUNT(flags); i++) free(flags[i]);
    free(c->split);
    *c = (struct cut){0};
}

/* ---- one phase as a graph ---- */

/* Builds one phase. `here`: by tensor of the whole graph, the tensor of this phase, if it
 * exists. */
struct builder {
    const struct cut *c;
    enum phase phase;
    int64_t samples;
    tri_graph *g;
    tri_tensor **here;
};

static bool node_in_phase(const struct cut *c, const tri_node *n, enum phase phase) {
    if (!node_live(c, n)) return false;
    bool lane = c->apart && in_lane(c, n), early = c->early[n->out[0].id];
    switch (phase) {
    case PHASE_COUNT: return lane && c->data_only[n->out[0].id];
    case PHASE_PRE: return !lane && early;
    case PHASE_LANE: return lane;
    default: return !lane && !early;
    }
}

static bool is_source(const tri_node *n) { return n->n_in == 0; }

/* All sources but inputs are copied to every phase that uses them: constants are cheap, parameters
 * and states are in the store. Inputs belong to the lanes. */
static bool source_fits(const struct builder *b, const tri_node *n) {
    bool lane_phase = b->phase == PHASE_COUNT || b->phase == PHASE_LANE;
    return !node_is(n, "input") || lane_phase || !b->c->apart;
}

/* Stores the divisor of a mean, and reduces shapes that contain the batch to the lane's samples. */
static bool lane_attrs(const struct builder *b, const tri_node *n, tri_attr *attrs) {
    const struct op_entry *e = n->entry;
    if (!factors_rebatch(n, split_of(b->c, &n->out[0]), b->samples, b->g, attrs)) return false;
    for (int i = 0; i < e->n_attrs; i++)
        if (e->op->count && !strcmp(e->attr[i].name, "count")) attrs[i].i = e->op->count(n);
    return true;
}

static tri_tensor *bring(struct builder *b, const tri_tensor *t);

tri_tensor *phase_given(tri_graph *g, const tri_tensor *t, int of, int top) {
    tri_tensor *y = graph_apply(
        g, "given", 0, NULL, 4,
        (const tri_attr[]){{.name = "of", .i = of}, {.name = "type", .i = t->spec.type},
                           {.name = "shape", .list = t->spec.shape}, {.name = "top", .i = top}});
    graph_format_like(y, t);
    return y;
}

/* The sums that are left to this phase, in the tree's order. */
static tri_tensor *sum_of_tops(struct builder *b, const tri_tensor *t, int node) {
    const struct lane_node *n = &b->c->tree->node[node];
    if (n->top >= 0) return phase_given(b->g, t, t->id, n->top);
    tri_tensor *in[2] = {sum_of_tops(b, t, n->left), sum_of_tops(b, t, n->right)};
    tri_tensor *sum = (tri_add)(in[0], in[1]);
    graph_format_like(sum, t);
    return sum;
}

static tri_node *copy_node(struct builder *b, const tri_node *n) {
    tri_attr attrs[MAX_ATTRS];
    tri_tensor **in = calloc((size_t)n->n_in + 1, sizeof *in);
    if (!in) {
        graph_fail(b->g, TRI_FAILED, "out of memory for a phase of the step");
        return b->g->poison_node;
    }
    for (int i = 0; i < n->n_in; i++) in[i] = bring(b, n->in[i]);
    tri_node *copy = lane_attrs(b, n, attrs) ? graph_copy(b->g, n, in, attrs, n->name)
                                             : b->g->poison_node;
    free(in);
    if (copy != b->g->poison_node) {
        CHECK(copy->n_out == n->n_out);
        for (int i = 0; i < n->n_out; i++) b->here[n->out[i].id] = &copy->out[i];
    }
    return copy;
}

/* The tensor in this phase: computed here, a source, or given by an earlier phase. */
static tri_tensor *bring(struct builder *b, const tri_tensor *t) {
    if (b->here[t->id]) return b->here[t->id];
    if (b->g->status) return b->g->poison;
    if (is_source(t->node) && source_fits(b, t->node)) {
        tri_node *copy = copy_node(b, t->node);
        return &copy->out[copy == b->g->poison_node ? 0 : t->index];
    }
    /* Several lanes give other phases nothing but sums over the whole batch. */
    CHECK(split_of(b->c, t).kind != SPLIT || b->c->lanes == 1);
    const struct lane_tree *tree = b->c->tree;
    bool tops = b->phase == PHASE_STEP && b->c->root[1][t->id] && tree && tree->n_tops > 1;
    b->here[t->id] = tops ? sum_of_tops(b, t, tree->n_nodes - 1) : phase_given(b->g, t, t->id, 0);
    return b->here[t->id];
}

void phase_put(tri_graph *g, int of, tri_tensor *t) {
    if (!graph_output_of(g, of))
        graph_put_output(g, (struct graph_output){.tensor = t, .of = of});
}

const struct graph_output *phase_gives(const tri_graph *from, const tri_node *n) {
    return node_is(n, "given") ? graph_output_of(from, (int)tri_attr_int(n, "of")) : NULL;
}

/* Whether another phase uses tensor t, which is computed in this one. */
static bool leaves(const struct builder *b, const tri_tensor *t) {
    if (b->phase == PHASE_COUNT) return b->c->root[0][t->id];
    if (b->phase == PHASE_LANE) return b->c->root[1][t->id];
    return b->phase == PHASE_PRE;
}

/* A result that is an input is copied: its memory is the batch's. */
static void put_leaving(struct builder *b, const tri_tensor *t) {
    bool input = node_is(t->node, "input");
    tri_tensor *here = input ? bring(b, t) : b->here[t->id];
    if (here) phase_put(b->g, t->id, input ? tri_reshape(here, here->spec.shape) : here);
}

int estimate_top(const tri_node *n) {
    return node_is(n, "state") ? (int)tri_attr_int(n, "top") : -1;
}

/* An estimate becomes the sum of its node. */
static tri_tensor *update_value(struct builder *b, const struct graph_update *u) {
    const int top = estimate_top(u->target->node);
    return top < 0 ? bring(b, u->value) : phase_given(b->g, u->value, u->value->id, top);
}

/* Named outputs and updates are in `step`. Outputs that are split are in `lane`: they are assembled
 * from the lanes' parts. */
static void put_results(struct builder *b) {
    const tri_graph *w = b->c->whole;
    for (size_t i = 0; i < w->n_outputs; i++) {
        struct graph_output o = w->output[i];
        bool split = split_of(b->c, o.tensor).kind == SPLIT;
        if (split ? b->phase != PHASE_LANE : b->phase != PHASE_STEP) continue;
        o.tensor = bring(b, o.tensor);
        graph_put_output(b->g, o);
    }
    if (b->phase != PHASE_STEP) return;
    for (size_t i = 0; i < w->n_updates; i++) {
        const struct graph_update *u = &w->update[i];
        graph_put_update(b->g, (struct graph_update){
                                   bring(b, u->target), update_value(b, u),
                                   u->condition ? bring(b, u->condition) : NULL});
    }
}

/* Marks the nodes that the phase must compute, backwards from its results. */
static bool *needed_nodes(const struct builder *b) {
    const tri_graph *w = b->c->whole;
    bool *need = calloc(w->n_nodes + 1, sizeof *need);
    if (!need) return NULL;
    for (size_t i = 0; b->phase == PHASE_LANE && i < w->n_outputs; i++)
        if (split_of(b->c, w->output[i].tensor).kind == SPLIT)
            need[w->output[i].tensor->node->id] = true;
    for (size_t i = w->n_nodes; i-- > 0;) {
        const tri_node *n = w->node[i];
        if (!node_in_phase(b->c, n, b->phase)) continue;
        for (int k = 0; k < n->n_out; k++)
            need[i] |= b->phase == PHASE_STEP || leaves(b, &n->out[k]);
        for (int k = 0; need[i] && k < n->n_in; k++) need[n->in[k]->node->id] = true;
    }
    return need;
}

static void build(struct builder *b) {
    const tri_graph *w = b->c->whole;
    bool *need = needed_nodes(b);
    if (!need) {
        graph_fail(b->g, TRI_FAILED, "out of memory for a phase of the step");
        return;
    }
    for (size_t i = 0; i < w->n_nodes; i++) {
        const tri_node *n = w->node[i];
        if (need[i] && !is_source(n) && node_in_phase(b->c, n, b->phase)) copy_node(b, n);
    }
    for (size_t i = 0; i < w->n_nodes; i++)
        for (int k = 0; k < w->node[i]->n_out; k++) {
            const tri_tensor *t = &w->node[i]->out[k];
            bool source = is_source(t->node) && b->phase == PHASE_PRE;
            if (!source && leaves(b, t) && node_in_phase(b->c, t->node, b->phase))
                put_leaving(b, t);
        }
    put_results(b);
    free(need);
}

tri_graph *cut_graph(const struct cut *c, enum phase phase, int64_t samples) {
    bool lane_phase = phase == PHASE_COUNT || phase == PHASE_LANE;
    struct builder b = {c, phase, lane_phase ? samples : c->whole->batch, NULL, NULL};
    b.g = tri_graph_new(b.samples);
    b.here = calloc((size_t)c->whole->n_tensors + 1, sizeof(tri_tensor *));
    if (b.g && b.here) {
        b.g->lanes = lane_phase ? 1 : c->whole->lanes;
        b.g->native = c->whole->native;
        b.g->mesh = c->whole->mesh;
        build(&b);
    }
    free(b.here);
    if (b.g && b.here && !tri_graph_status(b.g)) {
        graph_verify(b.g);
        return b.g;
    }
    if (b.g && !b.here) base_no_memory("a phase of the step");
    tri_graph_free(b.g);
    return NULL;
}

bool cut_has(const struct cut *c, enum phase phase) {
    if (phase == PHASE_STEP) return true;
    if (!c->apart) return false;
    if (phase == PHASE_LANE) return true;
    for (int i = 0; phase == PHASE_COUNT && i < c->whole->n_tensors; i++)
        if (c->root[0][i]) return true;
    for (size_t i = 0; phase == PHASE_PRE && i < c->whole->n_nodes; i++)
        if (!is_source(c->whole->node[i]) && node_in_phase(c, c->whole->node[i], phase))
            return true;
    return false;
}

tri_graph *cut_merge_graph(const struct cut *c, enum phase phase) {
    const bool *root = c->root[phase == PHASE_LANE];
    tri_graph *g = graph_like(c->whole);
    if (!g) return NULL;
    for (size_t i = 0; i < c->whole->n_nodes; i++)
        for (int k = 0; k < c->whole->node[i]->n_out; k++) {
            const tri_tensor *t = &c->whole->node[i]->out[k];
            if (!root[t->id]) continue;
            tri_tensor *in[2];
            for (int s = 0; s < 2; s++) /* the left sum is 2N, the right one 2N + 1 */
                in[s] = phase_given(g, t, 2 * t->id + s, 0);
            bool logical = t->spec.type == TRI_BOOL; /* of a single lane: there is nothing to add */
            phase_put(g, t->id, logical ? (tri_or)(in[0], in[1]) : (tri_add)(in[0], in[1]));
        }
    if (!tri_graph_status(g)) return g;
    tri_graph_free(g);
    return NULL;
}
