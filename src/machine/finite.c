/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/finite.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "machine/machine.h"
#include "plan/option_rows.h"

/* ---- what the loss is computed from ---- */

/* A scalar that is not finite if one of its operands is not. */
static bool passes_on(const tri_tensor *t) {
    return !t->spec.shape.rank && t->node->entry->op->linear == TRI_LINEAR_JOINTLY;
}

static bool is_quotient(const tri_tensor *t) {
    return !t->spec.shape.rank && t->node->entry->op->linear == TRI_LINEAR_FIRST;
}

/* Which part of the loss a result of the lanes is; -1: not a part. */
static int part_of(const struct finite *f, int of) {
    for (int i = 0; i < f->n; i++)
        if (f->part[i].of == of) return i;
    return -1;
}

static void find_parts(struct machine *m, const tri_tensor *t) {
    const tri_node *n = t->node;
    struct finite *f = &m->finite;
    int of = node_is(n, "given") ? (int)tri_attr_int(n, "of") : -1;
    bool part = of >= 0 && m->compilation.cut.root[1][of] && !t->spec.shape.rank;
    part = part && f->n < FINITE_MOST;
    if (part && part_of(f, of) < 0) {
        f->part[f->n].of = of;
        f->part[f->n++].type = t->spec.type;
    }
    f->gated |= !part && !passes_on(t);
    int reads = passes_on(t) ? n->n_in : is_quotient(t) ? 1 : 0;
    for (int i = 0; i < reads; i++) find_parts(m, n->in[i]);
}

/* With a loss scale (or a network that does the same itself), updates have a condition that tests
 * whether the gradients are finite. */
static void find_condition(struct finite *f, const tri_graph *g) {
    for (size_t i = 0; i < g->n_updates; i++) {
        const struct graph_update *u = &g->update[i];
        bool checks = u->condition && u->condition->node->entry->op->tests_finite;
        if (checks && node_is_param(u->target->node)) f->condition = u->condition->id;
    }
}

void finite_find(struct machine *m) {
    const tri_graph *g = m->compilation.step;
    const struct graph_output *loss = g ? graph_output_find(g, "loss") : NULL;
    const tri_options *o = &m->options;
    m->finite = (struct finite){
        .condition = -1,
        .stops = !o->forward && option_choice("--on-nan", o->on_nan) != ON_NAN_WARN};
    if (g && !o->forward) find_condition(&m->finite, g);
    if (!m->finite.stops || m->finite.condition >= 0) return;
    if (!loss || loss->tensor->spec.shape.rank || !type_is_float(loss->tensor->spec.type)) return;
    m->finite.loss = loss->tensor;
    find_parts(m, loss->tensor);
}

static double value(const struct machine *m, const struct program *p, int tensor, tri_type type) {
    char raw[8];
    dev_copy_out(m->dev, raw, program_value(p, tensor), tri_type_size(type));
    return convert_load(type, raw, 0);
}

static double loss_of_step(const struct machine *m) {
    return value(m, &m->step, m->finite.loss->id, m->finite.loss->spec.type);
}

/* Whether a part is finite, and so small that the sum over the lanes does not overflow. */
static bool fits(const struct machine *m, double part, tri_type type) {
    const double most = type == TRI_F16 ? 65504 : (double)FLT_MAX;
    return fabs(part) <= most / ((double)m->lanes * m->finite.n);
}

static bool makes(const struct unit *u, int tensor) {
    for (int k = 0; k < u->n_out; k++)
        if (u->out[k]->id == tensor) return true;
    return false;
}

size_t finite_items(const struct machine *m, const struct program *lane) {
    size_t n = 0;
    for (size_t i = 0; m->finite.loss && i < lane->n_items; i++)
        for (int k = 0; k < lane->n_result; k++)
            if (part_of(&m->finite, lane->result[k].of) >= 0 &&
                makes(lane->item[i].unit, lane->result[k].tensor))
                n = i + 1;
    return n;
}

/* Whether one of the items that the program has just run computes the tensor. */
static bool has_run(const struct program *p, int tensor) {
    bool all = !p->begin && p->end == p->n_items, found = all;
    for (size_t i = p->begin; i < p->end && !found; i++) found = makes(p->item[i].unit, tensor);
    return found;
}

bool finite_lane(const struct machine *m, const struct program *p) {
    for (int i = 0; m->finite.loss && i < p->n_result; i++) {
        int part = part_of(&m->finite, p->result[i].of);
        if (part < 0 || !has_run(p, p->result[i].tensor)) continue;
        const tri_type type = m->finite.part[part].type;
        if (!fits(m, value(m, p, p->result[i].tensor, type), type)) return false;
    }
    return true;
}

bool finite_step(const struct machine *m) {
    return !m->finite.loss || isfinite(loss_of_step(m));
}

bool finite_at_gate(void *machine, int stop) {
    (void)stop;
    return finite_step(machine);
}

/* ---- searching values ---- */

int64_t finite_first(tri_type type, const void *host, int64_t n, bool *nan) {
    static const struct {
        uint32_t exponent, rest;
    } bits[] = {[TRI_F32] = {0x7f800000, 0x7fffff},
                [TRI_BF16] = {0x7f80, 0x7f},
                [TRI_F16] = {0x7c00, 0x3ff}};
    if (!type_is_float(type)) return -1;
    for (int64_t i = 0; i < n; i++) {
        uint32_t x = type == TRI_F32 ? ((const uint32_t *)host)[i] : ((const uint16_t *)host)[i];
        if ((x & bits[type].exponent) != bits[type].exponent) continue;
        *nan = x & bits[type].rest;
        return i;
    }
    return -1;
}

/* The indices of a tensor's first NaN and first infinity; -1: none. */
struct found {
    int64_t nan, inf;
};

static struct found look(const struct machine *m, const struct program *p, const tri_tensor *t) {
    _Alignas(64) char host[4096];
    struct found f = {-1, -1};
    int64_t n = tri_shape_count(&t->spec.shape), size = (int64_t)tri_type_size(t->spec.type);
    int64_t most = (int64_t)sizeof host / size;
    const char *at = program_value(p, t->id);
    if (!type_is_float(t->spec.type)) return f;
    for (int64_t first = 0; first < n && f.nan < 0; first += most) {
        int64_t count = n - first < most ? n - first : most, i;
        bool nan;
        dev_copy_out(m->dev, host, at + first * size, (size_t)(count * size));
        for (int64_t from = 0; from < count; from += i + 1) {
            i = finite_first(t->spec.type, host + from * size, count - from, &nan);
            if (i < 0) break;
            int64_t *where = nan ? &f.nan : &f.inf;
            if (*where < 0) *where = first + from + i;
        }
    }
    return f;
}

/* Marks all tensors that the marked ones are computed from. */
static void mark_back(const tri_graph *g, bool *mark) {
    for (size_t i = g->n_nodes; i-- > 0;)
        for (int k = 0; node_any(g->node[i], mark) && k < g->node[i]->n_in; k++)
            mark[g->node[i]->in[k]->id] = true;
}

/* ---- explaining ---- */

struct trace {
    const struct machine *m;
    const struct program *p;
    int64_t sample; /* the first of the lane */
    /* The first unit that yields a NaN (an infinity) from inputs without any, or else the first
     * tensor from outside that has one. */
    const struct unit *unit[2];
    const tri_tensor *source[2];
    bool *mark; /* by tensor number: it leads to the loss */
};
enum { A_NAN, AN_INFINITY };

static void describe_unit(const struct unit *u, struct text *t) {
    node_describe(u->node[0], t);
    for (int i = 1; i < u->n; i++)
        text_add(t, "%s%s", i == 1 ? ", computed with " : ", ", u->node[i]->name);
}

static void describe_source(const struct trace *c, const struct program *p, const tri_tensor *s,
                            struct text *t);

/* A tensor from phase pre: describes the source there that is not finite, or else its node. */
static void describe_given(const struct trace *c, int of, struct text *t) {
    const struct program *pre = &c->m->pre;
    const tri_graph *whole = c->m->whole;
    bool *mark = pre->g ? calloc((size_t)pre->g->n_tensors + 1, sizeof *mark) : NULL;
    for (int i = 0; mark && i < pre->n_result; i++)
        if (pre->result[i].of == of) mark[pre->result[i].tensor] = true;
    if (mark) mark_back(pre->g, mark);
    for (size_t i = 0; mark && i < pre->g->n_nodes && !t->size; i++) {
        const tri_node *n = pre->g->node[i];
        if (node_runs(n) || node_is(n, "given") || !mark[n->out->id]) continue;
        struct found f = look(c->m, pre, n->out);
        if (f.nan >= 0 || f.inf >= 0) describe_source(c, pre, n->out, t);
    }
    free(mark);
    for (size_t i = 0; i < whole->n_nodes && !t->size; i++)
        for (int k = 0; k < whole->node[i]->n_out; k++)
            if (whole->node[i]->out[k].id == of) node_describe(whole->node[i], t);
}

static void describe_source(const struct trace *c, const struct program *p, const tri_tensor *s,
                            struct text *t) {
    const tri_node *n = s->node;
    struct found f = look(c->m, p, s);
    const tri_shape *shape = &s->spec.shape;
    int64_t at = f.nan >= 0 ? f.nan : f.inf;
    int64_t each = shape->rank ? tri_shape_count(shape) / shape->dim[0] : 1;
    if (node_runs(n)) /* another leg has computed it */
        node_describe(n, t);
    else if (node_is(n, "given"))
        describe_given(c, (int)tri_attr_int(n, "of"), t);
    else if (node_is(n, "input"))
        text_add(t, "input %s, row %lld of the batch", source_name(n),
                 (long long)(c->sample + at / each));
    else if (node_is_literal(n))
        text_add(t, "the constant %s", n->name);
    else if (node_is(n, "view"))
        text_add(t, "parameter %s, element %lld", source_name(n),
                 (long long)(tri_attr_int(n, "first") + at));
    else
        text_add(t, "%s %s, element %lld", node_is_param(n) ? "parameter" : n->entry->op->name,
                 source_name(n), (long long)at);
}

static bool wanted(const struct trace *c, const struct unit *u) {
    for (int k = 0; k < u->n_out; k++)
        if (c->mark[u->out[k]->id]) return true;
    return false;
}

/* Must be called before the unit runs: its results may take the place of its inputs. */
static void look_at_inputs(struct trace *c, const struct unit *u, const tri_tensor *bad[2]) {
    bad[A_NAN] = bad[AN_INFINITY] = NULL;
    for (int k = 0; k < u->n_in; k++) {
        if (unit_shape_only(u, k)) continue;
        struct found f = look(c->m, c->p, u->in[k]);
        if (f.nan >= 0 && !bad[A_NAN]) bad[A_NAN] = u->in[k];
        if (f.inf >= 0 && !bad[AN_INFINITY]) bad[AN_INFINITY] = u->in[k];
    }
}

static void look_at_outputs(struct trace *c, const struct unit *u, const tri_tensor *const bad[2]) {
    bool nan = false, inf = false, inf_before = c->unit[AN_INFINITY] || c->source[AN_INFINITY];
    for (int k = 0; k < u->n_out; k++) {
        struct found f = look(c->m, c->p, u->out[k]);
        nan |= f.nan >= 0;
        inf |= f.inf >= 0;
    }
    const tri_tensor *given = bad[AN_INFINITY];
    if (nan && bad[A_NAN]) c->source[A_NAN] = bad[A_NAN];
    if (nan && !bad[A_NAN]) c->unit[A_NAN] = u;
    if (inf_before) return;
    if (inf && !bad[A_NAN] && !given) c->unit[AN_INFINITY] = u;
    if (given && !node_runs(given->node) && !node_is_literal(given->node))
        c->source[AN_INFINITY] = given;
}

/* Runs units until the first NaN is produced or read. */
static void follow(struct trace *c, struct program *p, int thread,
                   const struct program_step *step) {
    for (size_t i = p->begin; i < p->end && !c->unit[A_NAN] && !c->source[A_NAN]; i++) {
        const struct program_item *item = &p->item[i];
        const tri_tensor *bad[2];
        if (!wanted(c, item->unit)) continue;
        look_at_inputs(c, item->unit, bad);
        if (p->before && !p->before(p->user, p, i)) return;
        if (!program_run_parts(p, i, thread, 0, item->parts[0] + item->parts[1], step)) return;
        look_at_outputs(c, item->unit, bad);
    }
}

const char *finite_name(double loss) {
    return isnan(loss) ? "nan" : isinf(loss) ? "infinite" : "too large";
}

static void describe(const struct trace *c, int what, struct text *t) {
    struct text from = {0};
    const char *name = what == A_NAN ? "nan" : "infinity";
    if (c->unit[what]) {
        describe_unit(c->unit[what], &from);
        text_add(t, "; the first %s is a result of %s, whose inputs %s", name,
                 from.data ? from.data : "", what == A_NAN ? "have none" : "are finite");
    } else if (c->source[what]) {
        describe_source(c, c->p, c->source[what], &from);
        text_add(t, "; the first %s is in %s", name, from.data ? from.data : "");
    }
    t->failed |= from.failed;
    text_free(&from);
}

/* Marks the tensors that must be finite. Returns the first that is not. */
static double mark_losses(const struct trace *c) {
    const struct finite *f = &c->m->finite;
    double loss = 0;
    if (c->p == &c->m->step) {
        c->mark[f->loss->id] = true;
        return loss_of_step(c->m);
    }
    for (int i = 0; i < c->p->n_result; i++) {
        int part = part_of(f, c->p->result[i].of), tensor = c->p->result[i].tensor;
        if (part < 0) continue;
        c->mark[tensor] = true;
        if (fits(c->m, loss, f->part[part].type))
            loss = value(c->m, c->p, tensor, f->part[part].type);
    }
    return loss;
}

void finite_explain(const struct machine *m, struct program *p, int thread, int64_t lane,
                    const struct program_step *step) {
    struct trace c = {.m = m, .p = p, .sample = step->sample};
    struct text t = {0};
    c.mark = calloc((size_t)p->g->n_tensors + 1, sizeof *c.mark);
    if (lane >= 0) text_add(&t, "lane %lld: ", (long long)lane);
    if (c.mark) {
        text_add(&t, "the loss is %s", finite_name(mark_losses(&c)));
        mark_back(p->g, c.mark);
        follow(&c, p, thread, step);
        describe(&c, A_NAN, &t);
        if (!c.source[A_NAN]) describe(&c, AN_INFINITY, &t);
        text_add(&t, "; a smaller --lr may help");
    }
    if (!step->fault->failed)
        base_format(step->fault->text, sizeof step->fault->text, "%s",
                    t.failed || !c.mark ? "the loss is not finite" : t.data);
    step->fault->failed = true;
    text_free(&t);
    free(c.mark);
}

int finite_skips(const struct machine *m, int before) {
    bool updated = true;
    if (m->finite.condition >= 0)
        dev_copy_out(m->dev, &updated, program_value(&m->step, m->finite.condition),
                     sizeof updated);
    return updated ? 0 : before + 1;
}
