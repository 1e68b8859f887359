/* SPDX-License-Identifier: Apache-2.0
 * Axes are decided one after another. Costs are bytes that the seats along the axis receive. */
#include "plan/dist.h"

#include <stdlib.h>
#include <string.h>

#include "plan/forward.h"
#include "plan/rewrite.h"
#include "plan/simplify.h"
#include "plan/strategy_inside.h"

#define MOST_COPIES 6
#define ELSEWHERE 1e15 /* bytes: what a seat lacks costs more than any move of what it has */
#define TIE 1          /* byte: decides between ways that move as much */
#define MOST_ROUNDS 12

/* The layouts along one axis in which a tensor was needed so far: these copies exist. */
struct copies {
    struct split split[MOST_COPIES];
    int n;
};

/* A node that was rebuilt because a strategy splits it: the nodes of its form, whose names begin
 * with `scope`, see its inputs so split. */
struct formed {
    const char *scope;
    tri_tensor *in; /* an input that the strategy splits */
    int axis;
    struct split split;
    const char *what, *from; /* for messages: the node and the strategy */
    bool maybe;
};

struct forms {
    struct formed *formed;
    size_t n, capacity;
};

struct maker {
    struct dist *d;
    const struct strategies *s;
    struct forms *forms;
    bool *seen; /* by line `use`: it names a node */
    tri_graph *g;
    const tri_graph *whole;
    const struct mesh *mesh;
    tri_node **forward;                   /* by node: the one that tri_node.of names; or null */
    struct use (*adopted)[MESH_MOST_AXES]; /* by node: what its readers want; whole: nothing */
    const struct strategy_line **said;    /* by node: the line `use` that names it, or null */
    bool *form;                           /* by node: it must be rebuilt */
    size_t *made;                         /* by node: the first node of its form */
    struct copies (*copies)[MESH_MOST_AXES]; /* by tensor */
    bool *wanted_whole; /* by tensor, during one axis: a forward node reads it so */
};

/* One node while it is decided. */
struct deciding {
    struct maker *m;
    const tri_node *n;
    struct factors f;
    bool has_factors;
    int axis;
    struct use *use; /* of all axes; those after `axis` are not decided */
};

/* ---- what a use means for a node ---- */

static const struct split uncut = {.kind = WHOLE};

static struct split need_of(const struct deciding *c, const struct use *u, int input) {
    const tri_tensor *t = c->n->in[input];
    const struct split *has = &c->m->d->has[t->id].axis[c->axis];
    if (u->kind == USE_FACTOR) return operand_split(&c->f, &c->f.in[input], &t->spec.shape, u);
    return u->kind == USE_PARTIAL && has->kind == PARTIAL ? *has : uncut;
}

/* ---- costs ---- */

static bool copy_exists(const struct copies *c, const struct split *s) {
    for (int i = 0; i < c->n; i++)
        if (split_equal(&c->split[i], s)) return true;
    return false;
}

/* A derivative reads what its forward node reads as that did: of parameters and data a seat has no
 * other part; of the rest a copy exists. The derivative of partial sums is needed as a whole. */
static double cost_beside_forward(const struct deciding *c, const tri_tensor *t,
                                  const struct split *need) {
    const tri_node *f = c->m->forward[c->n->id];
    int64_t seats = c->m->mesh->axis[c->axis].size;
    if (!f || !c->n->backward) return 0;
    for (int k = 0; k < f->n_in; k++) {
        const struct split *had = &dist_need(c->m->d, f, k)->axis[c->axis];
        if (f->in[k] != t || !node_reads(f, k)) continue;
        if (split_same(had, need, seats)) return 0;
        return t->node->n_in || had->kind != SPLIT ? TIE : ELSEWHERE;
    }
    bool of_sums = c->m->d->has[f->out->id].axis[c->axis].kind == PARTIAL &&
                   base_shape_equal(&t->spec.shape, &f->out->spec.shape);
    return of_sums && need->kind == SPLIT ? TIE : 0;
}

static double cost_of(const struct deciding *c, const struct use *u) {
    double cost = 0, k = (double)c->m->mesh->axis[c->axis].size;
    for (int i = 0; i < c->n->n_in; i++) {
        const tri_tensor *t = forward_input(c->m->forward, c->n, i);
        struct split need = need_of(c, u, i);
        if (node_reads(c->n, i)) cost += cost_beside_forward(c, t, &need);
        if (!node_reads(c->n, i) || copy_exists(&c->m->copies[t->id][c->axis], &need)) continue;
        cost += split_move_bytes(&c->m->d->has[t->id].axis[c->axis], &need,
                          (double)base_spec_bytes(&t->spec), k);
    }
    return cost;
}

/* ---- which uses are possible ---- */

/* Over how many seats the factor is split, by this axis and those before. */
static int64_t seats_of(const struct deciding *c, const struct use *u) {
    int64_t seats = c->m->mesh->axis[c->axis].size;
    for (int a = 0; a < c->axis; a++)
        if (use_shares(&c->use[a], u)) seats *= c->m->mesh->axis[a].size;
    return seats;
}

/* Whether each seat gets a part. Axes that share a factor must cut it in the same way. */
static bool has_parts(const struct deciding *c, const struct use *u) {
    for (int a = 0; a < c->axis; a++)
        if (!use_agrees(&c->use[a], u)) return false;
    return c->has_factors && u->factor && u->extent >= seats_of(c, u);
}

static bool may_split(const struct deciding *c, const struct use *u) {
    return has_parts(c, u) && use_fits(c->n, &c->f, u, seats_of(c, u));
}

/* Whether it can be split after it has been rebuilt. */
static bool has_form(const struct deciding *c, const struct use *u) {
    return has_parts(c, u) && use_needs_form(c->n, &c->f, u) && !may_split(c, u);
}

/* Whether the node gives partial sums if its inputs are partial sums. */
static bool may_be_partial(const struct deciding *c) {
    const tri_node *n = c->n;
    int partial = 0, at = -1, reads = 0, dim[MESH_MOST_AXES];
    for (int i = 0; i < n->n_in; i++) {
        const tri_tensor *t = forward_input(c->m->forward, n, i);
        if (t->node->n_in && strategies_layout(c->m->s, t, dim)) return false;
        const struct split *s = &c->m->d->has[n->in[i]->id].axis[c->axis];
        if (!node_reads(n, i)) continue;
        reads++;
        if (s->kind == PARTIAL && s->partial != TRI_PARTIAL_SUM) return false;
        if (s->kind == PARTIAL) partial++, at = i;
    }
    return use_adds_up(n, partial, reads, at);
}

/* The parameter that another phase has cast to make the tensor; else the tensor itself. */
static const tri_tensor *source_of(const tri_graph *whole, const tri_tensor *t) {
    const tri_tensor *s = NULL;
    if (!whole || !node_is(t->node, "given")) return t;
    for (size_t i = 0; i < whole->n_nodes && !s; i++) {
        const tri_node *n = whole->node[i];
        int64_t k = tri_attr_int(t->node, "of") - n->out[0].id;
        if (k >= 0 && k < n->n_out) s = &n->out[k];
    }
    while (s && s->node->n_in == 1 && s->node->entry->op->linear == TRI_LINEAR_JOINTLY &&
           base_shape_equal(&s->spec.shape, &s->node->in[0]->spec.shape))
        s = s->node->in[0];
    return s && !s->node->n_in ? s : t;
}

/* The form that the node is part of, if the form's strategy splits tensor t (null: any) along the
 * axis. */
static const struct formed *form_of(const struct maker *m, const tri_node *n, const tri_tensor *t,
                                    int axis) {
    for (size_t i = 0; i < m->forms->n; i++) {
        const struct formed *f = &m->forms->formed[i];
        if (f->axis == axis && (!t || f->in == t) && !strncmp(f->scope, n->name, strlen(f->scope)))
            return f;
    }
    return NULL;
}

/* How input i appears along the axis: as its layout or the form's strategy asks; else as it is; if
 * it is whole, as the forward node of this one reads it: taking parts of it costs nothing. */
static struct split seen(const struct deciding *c, int i) {
    const tri_tensor *t = forward_input(c->m->forward, c->n, i);
    struct split has = c->m->d->has[t->id].axis[c->axis];
    const tri_node *f = c->m->forward[c->n->id];
    int dim[MESH_MOST_AXES];
    if (t->node->n_in && strategies_layout(c->m->s, t, dim))
        return split_dim(&t->spec.shape, dim[c->axis]);
    const struct formed *form = form_of(c->m, c->n, t, c->axis);
    if (form) return split_plain(&form->split, &t->spec.shape);
    if (has.kind != WHOLE) return has;
    t = source_of(c->m->whole, t);
    if (!t->node->n_in && strategies_layout(c->m->s, t, dim) && dim[c->axis] >= 0)
        return split_dim(&t->spec.shape, dim[c->axis]);
    for (int k = 0; f && k < f->n_in; k++)
        if (f->in[k] == t)
            return split_plain(&dist_need(c->m->d, f, k)->axis[c->axis], &t->spec.shape);
    return has;
}

/* ---- one node ---- */

static tri_status refuse_ask(const struct deciding *c, const struct ask *a, const struct use *u) {
    struct text t = {0};
    const struct mesh_axis *axis = &c->m->mesh->axis[c->axis];
    const char *name = factor_name(c->n, &c->f, u->factor);
    node_describe(c->n, &t);
    base_fail(TRI_USAGE, "%s cannot be split along %s over the %lld seats of axis %s%s%s: %s",
              t.data ? t.data : c->n->name, name, (long long)axis->size, axis->name,
              a->from ? ", as asked by " : "", a->from ? a->from : "",
              !use_knows_place(c->n)   ? "its random numbers do not follow the whole tensor"
              : u->extent < axis->size ? "there are fewer places than seats"
              : !has_parts(c, u)       ? "another axis cuts it, too, in other blocks or too small"
              : c->f.fixed[u->factor]  ? "all its places are computed together"
                                       : "a part would have no whole places, or see only padding");
    text_free(&t);
    return TRI_USAGE;
}

/* What a strategy asks, or the layout of a result. False: nothing. */
static bool asked_use(const struct deciding *c, const struct ask *ask, struct use *u) {
    if (ask->kind == ASK_WHOLE) {
        *u = (struct use){.kind = USE_WHOLE};
        return true;
    }
    if (ask->kind == ASK_FACTOR) {
        int64_t extent = c->f.extent[ask->factor], outer = ask->outer ? ask->outer : 1;
        *u = (struct use){USE_FACTOR, ask->factor, outer, extent / outer};
        return true;
    }
    if (ask->kind != ASK_LAYOUT || !c->has_factors) return false;
    struct split s = split_dim(&c->n->out->spec.shape, ask->dim);
    return use_of_split(&c->f, &c->f.out[0], &s, u);
}

/* Without a strategy: the cheapest of the uses that an input suggests. If several move as much,
 * one that splits is better than one that does not. */
static struct use follow_inputs(struct deciding *c) {
    struct use best = {.kind = USE_WHOLE}, u;
    double least = cost_of(c, &best), cost;
    bool split = false, form = false;
    if (may_be_partial(c)) {
        u = (struct use){.kind = USE_PARTIAL};
        if ((cost = cost_of(c, &u)) <= least) best = u, least = cost, split = true;
    }
    for (int i = 0; c->has_factors && i < c->n->n_in; i++) {
        struct split s = seen(c, i);
        if (!use_of_split(&c->f, &c->f.in[i], &s, &u)) continue;
        if (has_form(c, &u))
            form |= node_reads(c->n, i) && !c->n->entry->op->costly_form &&
                    c->m->d->has[c->n->in[i]->id].axis[c->axis].kind == SPLIT;
        if (!may_split(c, &u)) continue;
        cost = cost_of(c, &u);
        if (cost < least || (cost == least && !split)) best = u, least = cost, split = true;
    }
    if (form && !split) c->m->form[c->n->id] = true;
    return best;
}

/* The node will be rebuilt, and its form asked in its place. *found: it has an input to split. */
static tri_status ask_form(struct deciding *c, const struct ask *ask, const struct use *u,
                           bool *found) {
    struct forms *f = c->m->forms;
    for (int i = 0; i < c->n->n_in; i++) {
        struct split s = operand_split(&c->f, &c->f.in[i], &c->n->in[i]->spec.shape, u);
        const char *scope = arena_text(&c->m->g->arena, "%s.split.", c->n->name);
        if (s.kind != SPLIT) continue;
        if (!scope || !ARRAY_GROW(f->formed, f->n, f->capacity)) return base_no_memory("a mesh");
        struct text what = {0};
        node_describe(c->n, &what);
        f->formed[f->n++] = (struct formed){
            scope, c->n->in[i], c->axis, s,
            arena_copy(&c->m->g->arena, what.data ? what.data : c->n->name), ask->from,
            ask->maybe};
        text_free(&what);
        c->m->form[c->n->id] = *found = true;
    }
    return TRI_OK;
}

static tri_status decide(struct deciding *c, const struct ask *ask) {
    struct use *u = &c->use[c->axis];
    const struct use *adopted = &c->m->adopted[c->n->id][c->axis];
    const tri_node *f = forward_repeated(c->m->forward, c->n);
    if (!c->n->n_in) {
        *u = (struct use){.kind = USE_WHOLE};
        return TRI_OK;
    }
    /* A repeated node does what the first one did. */
    if (f) {
        *u = c->m->d->use[f->id][c->axis];
        c->m->form[c->n->id] = c->m->form[f->id];
        return TRI_OK;
    }
    if (asked_use(c, ask, u)) {
        const struct use asked = *u;
        bool found = false;
        if (u->kind != USE_FACTOR || may_split(c, u)) return TRI_OK;
        *u = (struct use){.kind = USE_WHOLE};
        tri_status status = has_form(c, &asked) ? ask_form(c, ask, &asked, &found) : TRI_OK;
        if (status || found) return status;
        if (!ask->maybe) return refuse_ask(c, ask, &asked);
        c->m->d->left_out = true;
    }
    if (c->m->s->unset == UNSET_BATCH && !c->n->backward && c->has_factors) {
        uint8_t factor = factor_named(c->n, &c->f, "batch");
        if (!factor) factor = factor_named(c->n, &c->f, "rows");
        *u = (struct use){USE_FACTOR, factor, 1, factor ? c->f.extent[factor] : 0};
        if (factor && may_split(c, u) && u->extent % c->m->mesh->axis[c->axis].size == 0)
            return TRI_OK;
    }
    *u = (struct use){.kind = USE_WHOLE};
    if (c->m->s->unset == UNSET_FOLLOW || c->n->backward || form_of(c->m, c->n, NULL, c->axis))
        *u = follow_inputs(c);
    if (u->kind == USE_WHOLE && adopted->kind == USE_FACTOR && may_split(c, adopted))
        *u = *adopted;
    return TRI_OK;
}

/* What a line `use` says, if the node can do so. */
static tri_status take(struct deciding *c, const struct strategy_line *l, const struct use *u) {
    const struct ask ask = {.from = l->from};
    const bool fits = u->kind == USE_FACTOR    ? may_split(c, u)
                      : u->kind == USE_PARTIAL ? may_be_partial(c)
                                               : true;
    c->use[c->axis] = fits ? *u : (struct use){.kind = USE_WHOLE};
    if (fits || c->m->s->forward) return TRI_OK;
    if (u->kind == USE_FACTOR) return refuse_ask(c, &ask, u);
    return strategy_fail_at(l, c->m->mesh, c->n, "it has no partial sums along the axis %s: it "
                            "reads none, or others too, or cannot add them up",
                            c->m->mesh->axis[c->axis].name);
}

static void remember_copy(struct copies *c, const struct split *s) {
    if (!copy_exists(c, s) && c->n < MOST_COPIES) c->split[c->n++] = *s;
}

static tri_status dist_node(struct maker *m, const tri_node *n) {
    struct deciding c = {.m = m, .n = n, .use = m->d->use[n->id]};
    struct ask ask[MESH_MOST_AXES] = {{.kind = ASK_NOTHING}};
    struct use said[MESH_MOST_AXES];
    const struct strategy_line *line = m->said[n->id];
    tri_status status = TRI_OK;
    if (n->n_in && op_has_factors(n->entry->op)) {
        if (!factors_of(n, &c.f)) return base_last();
        c.has_factors = true;
        if (!n->backward) status = strategies_ask(m->s, n, &c.f, ask);
        strategies_ask_layout(m->s, n->out, ask);
    }
    if (line && !status)
        status = use_line_read(line, m->mesh, n, c.has_factors ? &c.f : NULL, said);
    if (line && status == TRI_USAGE && m->s->forward) {
        for (int a = 0; a < m->mesh->n; a++) said[a] = (struct use){.kind = USE_WHOLE};
        status = TRI_OK;
    }
    for (c.axis = 0; c.axis < m->mesh->n && !status; c.axis++) {
        status = line ? take(&c, line, &said[c.axis]) : decide(&c, &ask[c.axis]);
        for (int i = 0; i < n->n_in && !status; i++) {
            struct split need = need_of(&c, &c.use[c.axis], i);
            m->d->need[m->d->first[n->id] + (size_t)i].axis[c.axis] = need;
            remember_copy(&m->copies[forward_input(m->forward, n, i)->id][c.axis], &need);
        }
        for (int i = 0; i < n->n_out && !status; i++)
            m->d->has[n->out[i].id].axis[c.axis] = use_result(n, &c.f, &c.use[c.axis], i);
    }
    if (c.has_factors) factors_free(&c.f);
    return status;
}

/* ---- following readers ---- */

/* A forward node that is whole along an axis takes the split that its readers need of its result,
 * if none needs all of it. True if any node has changed. */
static bool adopt_node(struct maker *m, const tri_node *n, struct split *wish, int axis) {
    struct deciding c = {.m = m, .n = n, .axis = axis, .use = m->d->use[n->id]};
    struct use u;
    bool changed = false;
    int out = 0;
    while (out < n->n_out && wish[n->out[out].id].kind != SPLIT) out++;
    if (m->said[n->id]) return false;
    if (out == n->n_out || !n->n_in || n->backward || c.use[axis].kind != USE_WHOLE) return false;
    for (int k = 0; k < n->n_out; k++)
        if (m->wanted_whole[n->out[k].id]) return false;
    if (!op_has_factors(n->entry->op) || !factors_of(n, &c.f)) return false;
    c.has_factors = true;
    if (use_of_split(&c.f, &c.f.out[out], &wish[n->out[out].id], &u) && may_split(&c, &u)) {
        changed = m->adopted[n->id][axis].kind == USE_WHOLE;
        m->adopted[n->id][axis] = u;
        for (int i = 0; i < n->n_in; i++) {
            struct split s = operand_split(&c.f, &c.f.in[i], &n->in[i]->spec.shape, &u);
            s = split_plain(&s, &n->in[i]->spec.shape);
            if (s.kind == SPLIT && wish[n->in[i]->id].kind == WHOLE) wish[n->in[i]->id] = s;
        }
    }
    factors_free(&c.f);
    return changed;
}

static bool adopt(struct maker *m, struct split *wish, int axis) {
    bool changed = false;
    memset(m->wanted_whole, 0, (size_t)m->g->n_tensors);
    memset(wish, 0, sizeof *wish * (size_t)m->g->n_tensors);
    for (size_t i = 0; i < m->g->n_outputs; i++)
        if (!m->g->output[i].tensor->node->backward)
            m->wanted_whole[m->g->output[i].tensor->id] = true;
    for (size_t i = m->g->n_nodes; i-- > 0;) {
        const tri_node *n = m->g->node[i];
        changed |= adopt_node(m, n, wish, axis);
        bool later = m->adopted[i][axis].kind != USE_WHOLE;
        for (int k = 0; k < n->n_in && !n->backward && !later; k++) {
            const struct split *need = &dist_need(m->d, n, k)->axis[axis];
            int id = n->in[k]->id;
            if (!node_reads(n, k)) continue;
            if (need->kind == SPLIT && wish[id].kind == WHOLE)
                wish[id] = split_plain(need, &n->in[k]->spec.shape);
            m->wanted_whole[id] |= need->kind == WHOLE && m->d->use[i][axis].kind != USE_WHOLE;
        }
    }
    return changed;
}

/* ---- forms ---- */

/* The form is in the stage of node n. A node that repeats another has the same form, which repeats
 * the other's. */
static void take_form(const struct maker *m, const tri_node *n) {
    const tri_node *f = forward_repeated(m->forward, n);
    const size_t first = m->made[n->id];
    for (size_t i = first; i < m->g->n_nodes; i++) {
        m->g->node[i]->stage = n->stage;
        if (f) m->g->node[i]->of = m->g->node[m->made[f->id] + i - first]->name;
    }
}

static tri_status rebuild(struct maker *m, bool *any) {
    struct rewrite r;
    tri_node *n;
    tri_status refused = TRI_OK;
    *any = false;
    rewrite_begin(&r, m->g);
    for (size_t i = 0; (n = rewrite_next(&r, i)); i++) {
        tri_tensor *out[TRI_MAX_OUTPUTS] = {NULL};
        bool built = false;
        if (m->form[i]) {
            m->made[i] = m->g->n_nodes;
            rewrite_enter(&r, n, "split");
            built = n->entry->op->split_form(n, out);
            rewrite_leave(&r);
            if (built) take_form(m, n);
            *any |= built;
            if (!built && m->said[i])
                refused = strategy_fail_at(m->said[i], m->mesh, n, "there is no such form of it");
        }
        for (int k = 0; built && k < n->n_out; k++)
            if (out[k]) rewrite_replace(&r, &n->out[k], out[k]);
        if (!built) rewrite_keep(&r, n);
    }
    for (size_t i = 0; i < m->forms->n && !r.failed; i++)
        m->forms->formed[i].in = rewrite_now(&r, m->forms->formed[i].in);
    tri_status status = rewrite_end(&r);
    if (!status) status = refused;
    return status ? status : simplify_dead(m->g);
}

/* ---- all nodes ---- */

static bool allocate(struct maker *m) {
    size_t nodes = m->g->n_nodes + 1, tensors = (size_t)m->g->n_tensors + 1, inputs = 0;
    struct dist *d = m->d;
    d->g = m->g;
    d->use = calloc(nodes, sizeof *d->use);
    d->has = calloc(tensors, sizeof *d->has);
    d->first = calloc(nodes, sizeof *d->first);
    for (size_t i = 0; d->first && i < m->g->n_nodes; i++) {
        d->first[i] = inputs;
        inputs += (size_t)m->g->node[i]->n_in;
    }
    d->need = calloc(inputs + 1, sizeof *d->need);
    m->forward = forward_nodes(m->g);
    m->adopted = calloc(nodes, sizeof *m->adopted);
    m->form = calloc(nodes, 1);
    m->said = calloc(nodes, sizeof *m->said);
    m->made = calloc(nodes, sizeof *m->made);
    m->copies = calloc(tensors, sizeof *m->copies);
    m->wanted_whole = calloc(tensors, 1);
    return d->use && d->has && d->first && d->need && m->forward && m->adopted && m->form &&
           m->said && m->made && m->copies && m->wanted_whole;
}

static void release(struct maker *m) {
    free(m->forward);
    free(m->adopted);
    free(m->form);
    free(m->said);
    free(m->made);
    free(m->copies);
    free(m->wanted_whole);
}

/* Finds the nodes that lines `use` are about. A copy does what the node does that it repeats. */
static void find_said(struct maker *m) {
    for (size_t i = 0; i < m->g->n_nodes && m->s->n_uses; i++) {
        const tri_node *n = m->g->node[i], *f = forward_repeated(m->forward, n);
        const struct strategy_line *l = n->n_in ? strategies_use(m->s, f ? f : n, m->seen) : NULL;
        if (!l) continue;
        m->said[i] = f ? NULL : l;
        m->form[i] = use_line_is_form(l) && n->entry->op->split_form;
    }
}

static tri_status pass_forward(struct maker *m) {
    tri_status status = TRI_OK;
    memset(m->copies, 0, sizeof *m->copies * (size_t)m->g->n_tensors);
    memset(m->form, 0, m->g->n_nodes);
    for (size_t i = 0; i < m->g->n_nodes && !status; i++) status = dist_node(m, m->g->node[i]);
    return status;
}

/* One graph, until nothing is adopted any more. *again: nodes must be rebuilt. */
static tri_status settle(struct maker *m, bool *again) {
    bool changed = m->s->unset == UNSET_FOLLOW;
    *again = false;
    find_said(m);
    for (size_t i = 0; i < m->g->n_nodes; i++) *again |= m->form[i];
    if (*again) return TRI_OK;
    struct split *wish = calloc((size_t)m->g->n_tensors + 1, sizeof *wish);
    tri_status status = wish ? pass_forward(m) : base_no_memory("a mesh");
    for (int round = 0; round < MOST_ROUNDS && changed && !status; round++) {
        changed = false;
        for (int a = 0; a < m->mesh->n; a++) changed |= adopt(m, wish, a);
        if (changed) status = pass_forward(m);
    }
    for (size_t i = 0; i < m->g->n_nodes; i++) *again |= m->form[i];
    free(wish);
    return status;
}

/* A strategy that no node of a form can follow would be ignored. */
static tri_status check_forms(struct dist *d, const struct forms *f) {
    for (size_t i = 0; i < f->n; i++) {
        const struct formed *form = &f->formed[i];
        bool any = false;
        for (size_t k = 0; k < d->g->n_nodes; k++)
            any |= !strncmp(d->g->node[k]->name, form->scope, strlen(form->scope)) &&
                   d->use[k][form->axis].kind != USE_WHOLE;
        d->left_out |= !any;
        if (!any && !form->maybe)
            return base_fail(TRI_USAGE, "%s cannot be split over the %lld seats of axis %s, as "
                             "asked by %s: all places of this factor are computed together",
                             form->what ? form->what : form->scope,
                             (long long)d->mesh.axis[form->axis].size,
                             d->mesh.axis[form->axis].name, form->from ? form->from : "its layout");
    }
    return TRI_OK;
}

tri_status dist_make(tri_graph *lane, const tri_graph *whole, const struct strategies *s,
                     struct dist *d) {
    bool again = true, any = true, rebuilt = false;
    struct forms forms = {0};
    bool *seen = calloc(s->n_uses + 1, 1);
    tri_status status = seen ? TRI_OK : base_no_memory("a mesh");
    for (int round = 0; again && !status; round++) {
        *d = (struct dist){.mesh = s->mesh};
        struct maker m = {.d = d, .s = s, .forms = &forms, .seen = seen, .g = lane,
                          .whole = whole, .mesh = &s->mesh};
        status = allocate(&m) ? settle(&m, &again) : base_no_memory("a mesh");
        again = again && any && round < MOST_ROUNDS;
        if (!status && again) status = rebuild(&m, &any);
        rebuilt |= again && any;
        if (!status && !again) status = uses_check(s, seen, lane);
        release(&m);
        if (again || status) dist_free(d);
    }
    d->rebuilt = rebuilt;
    if (!status) status = check_forms(d, &forms);
    if (!status && !dist_find_moves(d)) status = base_no_memory("a mesh");
    if (status) dist_free(d);
    free(forms.formed);
    free(seen);
    return status;
}

void dist_free(struct dist *d) {
    free(d->use);
    free(d->has);
    free(d->need);
    free(d->first);
    free(d->move);
    *d = (struct dist){0};
}
