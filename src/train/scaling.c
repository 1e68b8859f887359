/* SPDX-License-Identifier: Apache-2.0 */
#include "train/scaling.h"

#include <math.h>
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

static tri_tensor *number(const struct scaling *s, double value) {
    return op_constant_like(value, s->scale);
}

static tri_tensor *state(tri_graph *g, const char *name, double value) {
    return tri_state(g, name, TRI_F32, TRI_SCALAR, (tri_init){.kind = TRI_CONSTANT, .a = value});
}

tri_tensor *scaling_begin(struct scaling *s, tri_tensor *loss) {
    tri_graph *g = loss->node->graph;
    if (s->start == 0) return loss;
    s->loss = loss;
    s->scale = s->every ? state(g, OPTIMIZER_PREFIX "loss_scale", s->start)
                        : tri_constant(g, s->start, TRI_F32);
    return tri_mul(tri_cast(loss, TRI_F32), s->scale);
}

/* Halves the scale after an overflow and doubles it after `every` consecutive good steps. */
static void move_scale(const struct scaling *s, tri_tensor *finite) {
    tri_tensor *good = state(s->scale->node->graph, OPTIMIZER_PREFIX "good_steps", 0);
    tri_tensor *now = tri_where(finite, tri_add_number(good, 1), number(s, 0));
    tri_tensor *grows = tri_greater_equal(now, number(s, (double)s->every));
    tri_tensor *twice = tri_minimum(tri_scale(s->scale, 2), number(s, SCALE_MOST));
    tri_tensor *half = tri_maximum(tri_scale(s->scale, 0.5), number(s, 1));
    tri_tensor *next = tri_where(finite, tri_where(grows, twice, s->scale), half);
    tri_assign(good, tri_where(grows, number(s, 0), now));
    tri_assign(s->scale, next);
    tri_metric(next, "loss_scale");
}

static void count_skipped(const struct scaling *s, tri_tensor *finite) {
    tri_tensor *skipped = state(s->scale->node->graph, OPTIMIZER_PREFIX "skipped", 0);
    tri_tensor *now = tri_add(skipped, tri_where(finite, number(s, 0), number(s, 1)));
    tri_assign(skipped, now);
    tri_metric(now, "skipped");
}

tri_tensor *scaling_end(struct scaling *s, tri_tensor **grads, int n) {
    if (!s->scale || s->scale->node->graph->status) return NULL;
    tri_tensor *back = tri_div(number(s, 1), s->scale);
    for (int i = 0; i < n; i++) grads[i] = tri_mul(grads[i], back);
    grads[n] = s->loss;
    tri_tensor *finite = tri_all_finite(grads, n + 1);
    if (s->every) move_scale(s, finite);
    count_skipped(s, finite);
    return finite;
}
