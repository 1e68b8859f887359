/* SPDX-License-Identifier: Apache-2.0
 * A network for tests of meshes, and what its operators are asked; include it after cmocka.h. */
#ifndef MESH_NET_H
#define MESH_NET_H

#include "plan/strategy.h"

/* x f32[8,6] times [6,4], relu, times [4,10], a loss. */
struct net {
    tri_graph *g;
    tri_tensor *x, *w, *v, *h, *a, *y;
    int line; /* where the mistake is */
};

static inline struct net network(void) {
    struct net n = {.g = tri_graph_new(8)};
    n.x = tri_input(n.g, "x", TRI_F32, TRI_SHAPE(8, 6));
    tri_tensor *label = tri_input(n.g, "label", TRI_I64, TRI_SHAPE(8));
    tri_push(n.g, "first");
    n.w = tri_param(n.g, "w", TRI_SHAPE(6, 4), (tri_init){.kind = TRI_HE_NORMAL});
    n.h = tri_matmul(n.x, n.w);
    tri_pop(n.g);
    n.a = tri_relu(n.h);
    tri_push(n.g, "second");
    n.v = tri_param(n.g, "v", TRI_SHAPE(4, 10), (tri_init){.kind = TRI_HE_NORMAL});
    n.y = tri_matmul(n.a, n.v);
    tri_pop(n.g);
    tri_loss(tri_mean(tri_cross_entropy(n.y, label, .reduction = TRI_NONE), TRI_ALL));
    return n;
}

static inline void made(tri_graph *g, const tri_options *o, struct strategies *s) {
    if (strategies_make(g, o, s)) fail_msg("%s", tri_message());
}

/* "out -": what the tensor's operator is asked along each axis. '.': nothing, '-': whole. */
static inline const char *asked(const struct strategies *s, const tri_tensor *t) {
    static char text[256];
    struct ask ask[MESH_MOST_AXES];
    struct factors f;
    size_t n = 0;
    assert_true(factors_of(t->node, &f));
    if (strategies_ask(s, t->node, &f, ask)) fail_msg("%s", tri_message());
    *text = 0;
    for (int i = 0; i < s->mesh.n; i++) {
        const char *name = ask[i].kind == ASK_NOTHING ? "."
                           : ask[i].kind == ASK_WHOLE ? "-"
                                                      : factor_name(t->node, &f, ask[i].factor);
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? " " : "", name);
        if (ask[i].kind == ASK_FACTOR && ask[i].outer > 1)
            n += (size_t)snprintf(text + n, sizeof text - n, "/%d", (int)ask[i].outer);
    }
    factors_free(&f);
    return text;
}

static inline const char *mesh_text(const struct mesh *m) {
    static char copy[256];
    struct text t = {0};
    mesh_print(m, &t);
    snprintf(copy, sizeof copy, "%s", t.data ? t.data : "");
    text_free(&t);
    return copy;
}

#endif
