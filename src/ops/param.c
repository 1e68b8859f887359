/* SPDX-License-Identifier: Apache-2.0
 * param: a trainable parameter, f32. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    tri_init init;
    out[0].type = TRI_F32;
    out[0].shape = tri_attr_list(n, "shape");
    if (!init_parse(tri_attr_text(n, "init"), &init))
        return tri_op_error(n, "initialiser \"%s\" is not known", tri_attr_text(n, "init"));
    return 1;
}

const tri_op op_param = {
    .name = "param",
    .attributes = "name:text shape:ints init:text=constant(0,0)",
    .infer = infer,
    .gradient = tri_grad_none,
    .examples = EXAMPLES("{name=\"w\", shape=[3,2], init=\"normal(0,1)\"}"),
};

tri_tensor *tri_param(tri_graph *g, const char *name, tri_shape shape, tri_init init) {
    if (!g) return NULL;
    const char *full = op_new_name(g, name), *text = init_print(&g->arena, &init);
    return graph_apply(
        g, "param", 0, NULL, 3,
        (const tri_attr[]){AT("name", full), AL("shape", shape), AT("init", text)});
}
