/* SPDX-License-Identifier: Apache-2.0
 * scalar: an f32 that the run sets before every step ("lr", "step"). */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    (void)n;
    out[0] = (tri_spec){TRI_F32, TRI_SCALAR};
    return 1;
}

const tri_op op_scalar = {
    .name = "scalar",
    .attributes = "name:text",
    .infer = infer,
    .gradient = tri_grad_none,
    .examples = EXAMPLES("{name=\"lr\"}"),
};

/* Returns the same tensor each time for the same name. */
tri_tensor *tri_scalar(tri_graph *g, const char *name) {
    if (g && (!name || !*name))
        graph_mistake(g, "a scalar's name is missing (null or empty)");
    tri_tensor *t = tri_find(g, name);
    if (t && node_is(t->node, "scalar")) return t;
    if (t) graph_mistake(g, "\"%s\" is already the name of something else", name);
    return graph_apply(g, "scalar", 0, NULL, 1, (const tri_attr[]){AT("name", name)});
}
