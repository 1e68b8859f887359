/* SPDX-License-Identifier: Apache-2.0
 * state: a value that persists across steps; only updates change it. `top`: it is an estimate of
 * that part of a sum over the lanes (plan/estimates.h); -1: it is none. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    tri_init init;
    out[0].type = (tri_type)tri_attr_int(n, "type");
    out[0].shape = tri_attr_list(n, "shape");
    if (!init_parse(tri_attr_text(n, "init"), &init))
        return tri_op_error(n, "initialiser \"%s\" is not known", tri_attr_text(n, "init"));
    if (init.kind != TRI_CONSTANT && !type_is_float(out[0].type))
        return tri_op_error(n, "a state of type %s can begin with a constant only, not with %s",
                            tri_type_name(out[0].type), tri_attr_text(n, "init"));
    if (init.kind == TRI_CONSTANT) return op_need_exact(n, init.a, out[0].type);
    return 1;
}

const tri_op op_state = {
    .name = "state",
    .attributes = "name:text type:type shape:ints init:text=constant(0,0) top:int=-1",
    .infer = infer,
    .gradient = tri_grad_none,
    .examples = EXAMPLES("{name=\"s\", type=f32, shape=[3]}"),
};

tri_tensor *tri_state(tri_graph *g, const char *name, tri_type type, tri_shape shape,
                      tri_init init) {
    if (!g) return NULL;
    const char *full = op_new_name(g, name), *text = init_print(&g->arena, &init);
    return graph_apply(g, "state", 0, NULL, 4,
                       (const tri_attr[]){AT("name", full), AI("type", type), AL("shape", shape),
                                          AT("init", text)});
}
