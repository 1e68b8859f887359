/* SPDX-License-Identifier: Apache-2.0
 * Optimizers. Each builds the nodes that compute a parameter's new value from its gradient. */
#include <math.h>
#include <string.h>

#include "base/math.h"
#include "base/nearest.h"
#include "ops/op.h"
#include "train/scaling.h"
#include "train/train.h"

/* Shared by the updates of all parameters. */
struct common {
    const tri_optimizer *o;
    tri_graph *g;
    tri_tensor *lr;        /* the scalar "lr" */
    tri_tensor *condition; /* null: always update */
    tri_tensor *scale1, *scale2; /* Adam, step t: 1 / (1 - beta1^t), 1 / sqrt(1 - beta2^t) */
};

struct one {
    tri_tensor *param, *grad, *lr;
    double decay;
    bool trusted; /* lars, lamb: scale the step by the parameter's norm */
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

static tri_tensor *new_momentum(const struct common *c, const struct one *p) {
    tri_tensor *m = moment(c, p->param, "momentum");
    tri_tensor *next = tri_add(tri_scale(m, c->o->momentum), p->grad);
    set(c, m, next);
    return next;
}

static void momentum(const struct common *c, struct one *p) {
    add_decay(p);
    move(c, p, p->param, new_momentum(c, p));
}

static void nesterov(const struct common *c, struct one *p) {
    add_decay(p);
    tri_tensor *m = new_momentum(c, p);
    move(c, p, p->param, tri_add(p->grad, tri_scale(m, c->o->momentum)));
}

/* Moving average in a state of the parameter: m' = beta m + (1 - beta) value. */
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
    tri_tensor *root = tri_mul(tri_sqrt(v), c->scale2);
    return tri_div(tri_mul(m, c->scale1), tri_add_number(root, c->o->eps));
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

/* ---- layer-wise rates ---- */

static tri_tensor *norm(tri_tensor *x) { return tri_global_norm(&x, 1); }

/* x weights / divisor, or x if the norm `weights` or the norm `step` is 0. */
static tri_tensor *trust(tri_tensor *x, tri_tensor *weights, tri_tensor *step,
                         tri_tensor *divisor) {
    tri_tensor *zero = op_constant_like(0, weights);
    tri_tensor *both = tri_and(tri_greater(weights, zero), tri_greater(step, zero));
    tri_tensor *ratio = tri_div(weights, divisor);
    return tri_mul(x, tri_where(both, ratio, op_constant_like(1, weights)));
}

static void lars(const struct common *c, struct one *p) {
    tri_tensor *raw = p->grad;
    add_decay(p);
    if (p->trusted) {
        tri_tensor *w = norm(p->param), *g = norm(raw);
        tri_tensor *divisor = tri_add_number(g, c->o->eps);
        if (p->decay > 0) divisor = tri_add(divisor, tri_scale(w, p->decay));
        p->grad = trust(p->grad, tri_scale(w, c->o->trust), g, divisor);
    }
    move(c, p, p->param, new_momentum(c, p));
}

static void lamb(const struct common *c, struct one *p) {
    tri_tensor *u = adam_direction(c, p);
    if (p->decay > 0) u = tri_add(u, tri_scale(p->param, p->decay));
    if (p->trusted) {
        tri_tensor *length = norm(u);
        u = trust(u, norm(p->param), length, length);
    }
    move(c, p, p->param, u);
}

/* ---- names and settings ---- */

static const struct row {
    const char *name;
    void (*update)(const struct common *c, struct one *p);
    tri_optimizer customary; /* defaults; it does not take settings that are 0 here */
} rows[] = {
    {"sgd", sgd, {.lr = 0.01}},
    {"momentum", momentum, {.lr = 0.01, .momentum = 0.9}},
    {"nesterov", nesterov, {.lr = 0.01, .momentum = 0.9}},
    {"adam", adam, {.lr = 0.001, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}},
    {"adamw", adamw, {.lr = 0.001, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}},
    {"lars", lars, {.lr = 1, .momentum = 0.9, .eps = 1e-8, .trust = 0.001}},
    {"lamb", lamb, {.lr = 0.001, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6}},
};

/* Null with a message. */
static const struct row *find_row(const char *name) {
    struct nearest near = {.wanted = name};
    for (size_t i = 0; i < COUNT(rows); i++)
        if (nearest_offer(&near, rows[i].name)) return &rows[i];
    base_fail(TRI_USAGE, "there is no optimizer \"%s\"%s; there are: %s", name,
              nearest_meant(&near), near.names);
    return NULL;
}

static const struct {
    const char *name;
    size_t at; /* a double of tri_optimizer */
    double below;
    bool zero; /* TRI_ZERO is valid */
} settings[] = {
    {"learning rate", offsetof(tri_optimizer, lr), INFINITY, false},
    {"momentum", offsetof(tri_optimizer, momentum), 1, true},
    {"beta1", offsetof(tri_optimizer, beta1), 1, true},
    {"beta2", offsetof(tri_optimizer, beta2), 1, true},
    {"eps", offsetof(tri_optimizer, eps), INFINITY, true},
    {"trust", offsetof(tri_optimizer, trust), INFINITY, false},
    {"weight decay", offsetof(tri_optimizer, weight_decay), INFINITY, false},
    {"norm limit", offsetof(tri_optimizer, clip_norm), INFINITY, false},
};
#define FOR_ALL 2 /* the last settings, which apply to every optimizer */

static double *setting_at(tri_optimizer *o, size_t i) {
    return (double *)((char *)o + settings[i].at);
}

static double setting_of(const tri_optimizer *o, size_t i) {
    return *(const double *)((const char *)o + settings[i].at);
}

/* "optimizer sgd takes no momentum; momentum, nesterov, lars do" */
static tri_status not_taken(const struct row *row, size_t i) {
    struct text who = {0};
    for (size_t k = 0; k < COUNT(rows); k++)
        if (setting_of(&rows[k].customary, i) != 0)
            text_add(&who, "%s%s", who.size ? ", " : "", rows[k].name);
    base_fail(TRI_USAGE, "optimizer %s takes no %s; %s do", row->name, settings[i].name,
              who.failed ? "others" : who.data);
    text_free(&who);
    return TRI_USAGE;
}

/* Of a checked optimizer, too: optimizer_check leaves TRI_ZERO in place. */
static bool is_zero(double value) { return value == 0 || value == TRI_ZERO; }

static tri_status check_setting(const struct row *row, tri_optimizer *o, size_t i) {
    double *value = setting_at(o, i);
    double customary = setting_of(&row->customary, i);
    if (i + FOR_ALL < COUNT(settings)) {
        if (*value != 0 && customary == 0) return not_taken(row, i);
        if (*value == 0) *value = customary;
    }
    if (settings[i].zero && is_zero(*value)) return TRI_OK;
    if (*value >= 0 && *value < settings[i].below) return TRI_OK;
    return base_fail(TRI_USAGE, "the %s is %g; it must be at least 0 and below %g",
                     settings[i].name, *value, settings[i].below);
}

/* Replaces TRI_ZERO by 0, the number that updates compute with. */
static void resolve_zeros(tri_optimizer *o) {
    for (size_t i = 0; i < COUNT(settings); i++) {
        double *value = setting_at(o, i);
        if (is_zero(*value)) *value = 0;
    }
}

tri_status optimizer_check(tri_optimizer *o) {
    if (!o->name) o->name = "sgd";
    const struct row *row = find_row(o->name);
    if (!row) return TRI_USAGE;
    tri_status status = TRI_OK;
    for (size_t i = 0; i < COUNT(settings) && !status; i++) status = check_setting(row, o, i);
    struct schedule s;
    struct scaling scaling;
    if (!status) status = schedule_parse(o->schedule, &s);
    return status ? status : scaling_parse(o->loss_scale, &scaling);
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
    /* Divide here once, not per element. */
    tri_tensor *one = op_constant_like(1, t);
    c->scale1 = tri_div(one, correction(t, c->o->beta1));
    c->scale2 = tri_div(one, tri_sqrt(correction(t, c->o->beta2)));
}

/* A setting that differs between two uses cannot be that of an option. */
static double one_for_all(double a, double b) { return a == b ? a : NAN; }

/* Keeps what the options may ask for, too: the settings that all updates have. */
static void keep_used(tri_optimizer *used, const tri_optimizer *o, const char *name) {
    bool first = !used->name;
    for (size_t i = 1; setting_at(used, i) != &used->clip_norm; i++)
        *setting_at(used, i) = first ? setting_of(o, i) : one_for_all(setting_of(used, i),
                                                                      setting_of(o, i));
    used->decay_all = o->decay_all && (first || used->decay_all);
    used->name = first || !strcmp(used->name, name) ? name : "";
}

const char *optimizer_lacks(const tri_optimizer *used, const tri_optimizer *o) {
    for (size_t i = 1; i < COUNT(settings); i++) {
        double value = setting_of(o, i);
        if (value != 0 && (is_zero(value) ? 0 : value) != setting_of(used, i))
            return settings[i].name;
    }
    if (o->name && strcmp(o->name, used->name ? used->name : "")) return "optimizer";
    if (o->loss_scale && strcmp(o->loss_scale, used->loss_scale ? used->loss_scale : "off"))
        return "loss scale";
    if (o->decay_all && !used->decay_all) return "decay of all parameters";
    return o->gradients_sum && !used->gradients_sum ? "sum of gradients" : NULL;
}

/* All updates of a graph share the scalar "lr" and its schedule. */
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
    resolve_zeros(&o);
    if (g->lr == 0) g->lr = o.lr; /* the optimizer's default */
    const struct row *row = find_row(o.name);
    keep_used(&g->used, &o, row->name);
    struct common c = {.o = &o, .g = g, .lr = tri_scalar(g, "lr"), .condition = condition};
    if (row->customary.beta1 > 0) count_updates(&c);
    for (int i = 0; i < n && !g->status; i++) {
        if (!params[i] || !node_is_param(params[i]->node)) {
            graph_fail(g, TRI_USAGE, "tri_update: tensor %d is not a parameter", i);
            return;
        }
        const tri_node *node = params[i]->node;
        bool decays = o.decay_all || params[i]->spec.shape.rank > 1;
        double factor = param_lr_factor(node);
        struct one p = {params[i], grads[i], factor == 1 ? c.lr : tri_scale(c.lr, factor),
                        param_decay(node, decays ? o.weight_decay : 0),
                        param_decay(node, decays) > 0};
        row->update(&c, &p);
    }
}

tri_tensor *tri_clip_by_norm(tri_tensor **grads, int n, double limit) {
    tri_tensor *norm = tri_global_norm(grads, n);
    if (!norm) return NULL;
    double *used = &norm->node->graph->used.clip_norm;
    *used = *used == 0 ? limit : one_for_all(*used, limit);
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
    tri_tensor **params = arena_alloc(&g->arena, 2 * sizeof *params * (size_t)count + 1);
    if (!params) return; /* the arena has recorded the failure */
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
    tri_tensor **grads = params + count, *scaled = tri_scale_loss(loss, o.loss_scale);
    tri_grad(scaled, params, n, grads);
    int flows = 0; /* a gradient that reads only its input's shape is zero */
    for (int i = 0; i < n && !g->status; i++) flows += node_reads(grads[i]->node, 0);
    if (!flows) {
        graph_fail(g, TRI_USAGE, "the loss (%s) depends on no trainable parameter: nothing can be "
                   "learned from it", loss->node->name);
        return;
    }
    tri_tensor *condition = tri_unscale(scaled, grads, n);
    g->used.gradients_sum = o.gradients_sum;
    tri_tensor *lanes = o.gradients_sum ? tri_scalar(g, "lanes") : NULL;
    for (int i = 0; lanes && i < n; i++) grads[i] = tri_mul(lanes, grads[i]);
    if (o.clip_norm > 0) tri_clip_by_norm(grads, n, o.clip_norm);
    tri_update(params, grads, n, o, condition);
}
