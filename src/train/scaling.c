/* SPDX-License-Identifier: Apache-2.0 */
#include "train/scaling.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/op.h"
#include "train/settings.h"
#include "train/train.h"

#define START 0x1p16
#define EVERY 2000

static bool power_of_two(double x) {
    int exponent;
    return x >= 1 && x <= SCALE_MOST && frexp(x, &exponent) == 0.5;
}

tri_status scaling_parse(const char *text, struct scaling *s) {
    static const char dynamic[] = "dynamic";
    size_t n = strlen(dynamic);
    *s = (struct scaling){0};
    if (!text || !strcmp(text, "off")) return TRI_OK;
    bool ok = true;
    if (!strncmp(text, dynamic, n) && (!text[n] || text[n] == ':')) {
        const struct setting_key keys[] = {{"start", NULL, &s->start, 1},
                                           {"every", &s->every, NULL, 1}};
        *s = (struct scaling){.start = START, .every = EVERY};
        ok = settings_parse(text + n + (text[n] == ':'), keys, COUNT(keys));
    } else {
        char *end;
        s->start = base_number(text, &end);
        ok = end != text && !*end;
    }
    if (ok && power_of_two(s->start)) return TRI_OK;
    return base_fail(TRI_USAGE, "loss scale \"%s\" is not one of: off, dynamic, "
                     "dynamic:start=X,every=N, X; X is a power of two from 1 to %.0f", text,
                     SCALE_MOST);
}

static tri_tensor *state(tri_graph *g, const char *name, double value) {
    return tri_state(g, name, TRI_F32, TRI_SCALAR, (tri_init){.kind = TRI_CONSTANT, .a = value});
}

tri_tensor *tri_scale_loss(tri_tensor *loss, const char *loss_scale) {
    tri_graph *g = tri_graph_of(loss);
    struct scaling s;
    if (!g || g->status) return loss;
    if (loss->spec.shape.rank || !type_is_float(loss->spec.type))
        graph_mistake(g, "tri_scale_loss: %s must be one floating-point number; reduce it first",
                      tri_name_of(loss));
    else if (g->scaled)
        graph_mistake(g, "tri_scale_loss: a loss is scaled already; add the losses up first");
    else if (scaling_parse(loss_scale, &s))
        graph_mistake(g, "%s", tri_message());
    if (g->status || s.start == 0) return loss;
    tri_tensor *scale = s.every ? state(g, OPTIMIZER_PREFIX "loss_scale", s.start)
                                : tri_constant(g, s.start, TRI_F32);
    g->used.loss_scale = arena_copy(&g->arena, loss_scale);
    return g->scaled = tri_mul(tri_cast(loss, TRI_F32), scale);
}

/* Halves the scale after an overflow and doubles it after `every` consecutive good steps. */
static void move_scale(tri_tensor *scale, int64_t every, tri_tensor *finite) {
    tri_tensor *good = state(scale->node->graph, OPTIMIZER_PREFIX "good_steps", 0);
    tri_tensor *now = tri_where(finite, tri_add_number(good, 1), op_constant_like(0, scale));
    tri_tensor *grows = tri_greater_equal(now, op_constant_like((double)every, scale));
    tri_tensor *twice = tri_minimum(tri_scale(scale, 2), op_constant_like(SCALE_MOST, scale));
    tri_tensor *half = tri_maximum(tri_scale(scale, 0.5), op_constant_like(1, scale));
    tri_tensor *next = tri_where(finite, tri_where(grows, twice, scale), half);
    tri_assign(good, tri_where(grows, op_constant_like(0, scale), now));
    tri_assign(scale, next);
    tri_metric(next, "loss_scale");
}

static void count_skipped(tri_tensor *scale, tri_tensor *finite) {
    tri_tensor *skipped = state(scale->node->graph, OPTIMIZER_PREFIX "skipped", 0);
    tri_tensor *now = tri_add(skipped, tri_where(finite, op_constant_like(0, scale),
                                                 op_constant_like(1, scale)));
    tri_assign(skipped, now);
    tri_metric(now, "skipped");
}

tri_tensor *tri_unscale(tri_tensor *scaled, tri_tensor **grads, int n) {
    tri_graph *g = tri_graph_of(scaled);
    struct scaling s;
    if (!g || g->status || scaled != g->scaled || scaling_parse(g->used.loss_scale, &s))
        return NULL;
    tri_tensor *loss = scaled->node->in[0], *scale = scaled->node->in[1];
    tri_tensor **all = calloc((size_t)n + 1, sizeof *all);
    if (!all) {
        graph_fail(g, TRI_FAILED, "out of memory for gradients");
        return NULL;
    }
    tri_tensor *back = tri_div(op_constant_like(1, scale), scale);
    for (int i = 0; i < n; i++) all[i] = grads[i] = tri_mul(grads[i], back);
    all[n] = loss;
    tri_tensor *finite = tri_all_finite(all, n + 1);
    free(all);
    if (s.every) move_scale(scale, s.every, finite);
    count_skipped(scale, finite);
    return finite;
}
