/* SPDX-License-Identifier: Apache-2.0
 * Optimizers: each builds the new value of a parameter from its gradient, as graph. */
#include <math.h>
#include <string.h>

#include "base/math.h"
#include "ops/op.h"
#include "train/train.h"

/* What the updates of all parameters share. */
struct common {
    const tri_optimizer *o;
    tri_graph *g;
    tri_tensor *lr;        /* the scalar "lr" */
    tri_tensor *condition; /* may be null */
    tri_tensor *correct1, *correct2; /* Adam: 1 - beta^t of this step */
};

struct one {
    tri_tensor *param, *grad, *lr;
    double decay;
};

static tri_tensor *moment(const struct common *c, const tri_tensor *param, const char *kind) {
    struct text name = {0};
    text_add(&name, OPTIMIZER_PREFIX "%s.%s", kind, source_name(param->node));
    if (name.failed) graph_fail(c->g, TRI_FAILED, "out of memory for the optimizer's state");
    tri_tensor *t = tri_state(c->g, name.failed ? "none" : name.data, TRI_F32, param->spec.shape,
                              (tri_init){.kind = TRI_CONSTANT});
    text_free(&name);
    return t;
}

static void set(const struct common *c, tri_tensor *target, tri_tensor *value) {
    tri_assign_if(target, value, c->condition);
}

static void add_decay(struct one *p) {
    if (p->decay > 0) p->grad = tri_add(p->grad, tri_scale(p->param, p->decay));
}

static void move(const struct common *c, const struct one *p, tri_tensor *from, tri_tensor *by) {
    set(c, p->param, tri_sub(from, tri_mul(p->lr, by)));
}

static void sgd(const struct common *c, struct one *p) {
    add_decay(p);
    move(c, p, p->param, p->grad);
}

static tri_tensor *new_momentum(const struct common *c, struct one *p) {
    add_decay(p);
    tri_tensor *m = moment(c, p->param, "momentum");
    tri_tensor *next = tri_add(tri_scale(m, c->o->momentum), p->grad);
    set(c, m, next);
    return next;
}

static void momentum(const struct common *c, struct one *p) {
    move(c, p, p->param, new_momentum(c, p));
}

static void nesterov(const struct common *c, struct one *p) {
    tri_tensor *m = new_momentum(c, p);
    move(c, p, p->param, tri_add(p->grad, tri_scale(m, c->o->momentum)));
}

/* m' = b m + (1 - b) g, the average that a state of the parameter keeps. */
static tri_tensor *average(const struct common *c, const struct one *p, const char *kind,
                           double beta, tri_tensor *value) {
    tri_tensor *m = moment(c, p->param, kind);
    tri_tensor *next = tri_add(tri_scale(m, beta), tri_scale(value, 1 - beta));
    set(c, m, next);
    return next;
}

static tri_tensor *adam_direction(const struct common *c, const struct one *p) {
    tri_tensor *m = average(c, p, "mean", c->o->beta1, p->grad);
    tri_tensor *v = average(c, p, "square", c->o->beta2, tri_mul(p->grad, p->grad));
    tri_tensor *root = tri_div(tri_sqrt(v), tri_sqrt(c->correct2));
    return tri_div(tri_div(m, c->correct1), tri_add_number(root, c->o->eps));
}

static void adam(const struct common *c, struct one *p) {
    add_decay(p);
    move(c, p, p->param, adam_direction(c, p));
}

static void adamw(const struct common *c, struct one *p) {
    tri_tensor *from = p->param;
    if (p->decay > 0)
        from = tri_mul(from, tri_sub(op_constant_like(1, p->lr), tri_scale(p->lr, p->decay)));
    move(c, p, from, adam_direction(c, p));
}

static const struct row {
    const char *name;
    void (*update)(const struct common *c, struct one *p);
    double lr;
    bool momentum;
    bool betas; /* and the number of updates done */
} rows[] = {
    {"sgd", sgd, 0.01, false, false},
    {"momentum", momentum, 0.01, true, false},
    {"nesterov", nesterov, 0.01, true, false},
    {"adam", adam, 0.001, false, true},
    {"adamw", adamw, 0.001, false, true},
};

const char *optimizer_names(void) { return "sgd, momentum, nesterov, adam, adamw"; }

static const struct row *find_row(const char *name) {
    for (size_t i = 0; i < COUNT(rows); i++)
        if (!strcmp(rows[i].name, name)) return &rows[i];
    return NULL;
}

static void fill(double *value, double customary) {
    if (*value == 0) *value = customary;
}

tri_status optimizer_check(tri_optimizer *o) {
    if (!o->name) o->name = "sgd";
    const struct row *row = find_row(o->name);
    if (!row)
        return base_fail(TRI_USAGE, "there is no optimizer \"%s\"; there are: %s", o->name,
                         optimizer_names());
    if (o->momentum != 0 && !row->momentum)
        return base_fail(TRI_USAGE, "optimizer %s takes no momentum; momentum and nesterov do",
                         o->name);
    if (!row->betas && (o->beta1 != 0 || o->beta2 != 0 || o->eps != 0))
        return base_fail(TRI_USAGE, "optimizer %s takes no beta1, beta2 and eps; adam and adamw do",
                         o->name);
    fill(&o->lr, row->lr);
    if (row->momentum) fill(&o->momentum, 0.9);
    if (row->betas) {
        fill(&o->beta1, 0.9);
        fill(&o->beta2, 0.999);
        fill(&o->eps, 1e-8);
    }
    const struct {
        const char *what;
        double value, low, below;
    } limits[] = {
        {"learning rate", o->lr, 0, INFINITY},    {"momentum", o->momentum, 0, 1},
        {"beta1", o->beta1, 0, 1},                {"beta2", o->beta2, 0, 1},
        {"eps", o->eps, 0, INFINITY},             {"weight decay", o->weight_decay, 0, INFINITY},
        {"norm limit", o->clip_norm, 0, INFINITY},
    };
    for (size_t i = 0; i < COUNT(limits); i++)
        if (!(limits[i].value >= limits[i].low && limits[i].value < limits[i].below))
            return base_fail(TRI_USAGE, "the %s is %g; it must be at least %g and below %g",
                             limits[i].what, limits[i].value, limits[i].low, limits[i].below);
    struct schedule s;
    return schedule_parse(o->schedule, &s);
}

/* 1 - beta^t without cancellation, with x = t log beta: -expm1(x) = -tanh(x / 2) (exp(x) + 1). */
static tri_tensor *correction(tri_tensor *t, double beta) {
    tri_tensor *x = tri_scale(t, math_log(beta));
    return tri_neg(tri_mul(tri_tanh(tri_scale(x, 0.5)), tri_add_number(tri_exp(x), 1)));
}

static void count_updates(struct common *c) {
    tri_tensor *done = tri_state(c->g, OPTIMIZER_PREFIX "updates", TRI_F32, TRI_SCALAR,
                                 (tri_init){.kind = TRI_CONSTANT});
    tri_tensor *t = tri_add_number(done, 1);
    set(c, done, t);
    c->correct1 = correction(t, c->o->beta1);
    c->correct2 = correction(t, c->o->beta2);
}

/* All updates of a step follow one scalar "lr", and its schedule. */
static bool settle_rate(tri_graph *g, const tri_optimizer *o) {
    if (o->lr != 0 && g->lr != 0 && o->lr != g->lr) {
        graph_fail(g, TRI_USAGE, "tri_update: a learning rate of %g, but another update has %g; "
                   "there is one for all: tri_group_lr makes the difference", o->lr, g->lr);
        return false;
    }
    if (o->lr != 0) g->lr = o->lr;
    if (o->schedule) g->schedule = arena_copy(&g->arena, o->schedule);
    return !g->arena.failed;
}

void tri_update(tri_tensor *const *params, tri_tensor *const *grads, int n, tri_optimizer o,
                tri_tensor *condition) {
    tri_graph *g = n > 0 ? tri_graph_of(params[0]) : NULL;
    if (!g || g->status || !settle_rate(g, &o)) return;
    if (optimizer_check(&o)) {
        graph_fail(g, TRI_USAGE, "%s", tri_message());
        return;
    }
    if (g->lr == 0) g->lr = o.lr; /* the optimizer's customary one */
    const struct row *row = find_row(o.name);
    struct common c = {.o = &o, .g = g, .lr = tri_scalar(g, "lr"), .condition = condition};
    if (row->betas) count_updates(&c);
    for (int i = 0; i < n && !g->status; i++) {
        if (!params[i] || !node_is_param(params[i]->node)) {
            graph_fail(g, TRI_USAGE, "tri_update: tensor %d is not a parameter", i);
            return;
        }
        const tri_node *node = params[i]->node;
        double otherwise = o.decay_all || params[i]->spec.shape.rank > 1 ? o.weight_decay : 0;
        double factor = param_lr_factor(node);
        struct one p = {params[i], grads[i], factor == 1 ? c.lr : tri_scale(c.lr, factor),
                        param_decay(node, otherwise)};
        row->update(&c, &p);
    }
}

tri_tensor *tri_clip_by_norm(tri_tensor **grads, int n, double limit) {
    tri_tensor *norm = tri_global_norm(grads, n);
    if (!norm) return NULL;
    tri_tensor *factor =
        tri_minimum(tri_div(op_constant_like(limit, norm), tri_add_number(norm, 1e-6)),
                    op_constant_like(1, norm));
    for (int i = 0; i < n; i++) grads[i] = tri_mul(grads[i], factor);
    return norm;
}

void tri_minimize(tri_tensor *loss, tri_optimizer o) {
    tri_graph *g = tri_graph_of(loss);
    if (!g || g->status) return;
    int count = tri_param_count(g), n = 0;
    tri_tensor **params = arena_alloc(&g->arena, 2 * sizeof *params * (size_t)(count + 1));
    if (!params) return; /* the arena remembers */
    for (int i = 0; i < count; i++) {
        tri_tensor *p = tri_param_at(g, i);
        if (!param_frozen(p->node)) params[n++] = p;
    }
    if (!n) {
        graph_fail(g, TRI_USAGE, count ? "all %d parameters are frozen: nothing can be trained"
                                       : "the network has no parameters: nothing can be trained",
                   count);
        return;
    }
    tri_tensor **grads = params + count;
    tri_grad(loss, params, n, grads);
    int flows = 0; /* where nothing does, the gradient is zeros in the parameter's shape */
    for (int i = 0; i < n && !g->status; i++) flows += !node_is(grads[i]->node, "fill_like");
    if (!flows) {
        graph_fail(g, TRI_USAGE, "the loss (%s) depends on no trainable parameter: nothing can be "
                   "learned from it", loss->node->name);
        return;
    }
    if (o.clip_norm > 0) tri_clip_by_norm(grads, n, o.clip_norm);
    tri_update(params, grads, n, o, NULL);
}
