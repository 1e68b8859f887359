/* SPDX-License-Identifier: Apache-2.0
 * input: one field of the data; dimension 0 is the batch. */
#include "ops/op.h"

static int infer(const tri_node *n, tri_spec *out) {
    out[0].type = (tri_type)tri_attr_int(n, "type");
    out[0].shape = tri_attr_list(n, "shape");
    if (out[0].shape.rank < 1 || out[0].shape.dim[0] != n->graph->batch)
        return tri_op_error(n, "input \"%s\": dimension 0 must be the batch, %lld",
                            tri_attr_text(n, "name"), (long long)n->graph->batch);
    return 1;
}

const tri_op op_input = {
    .name = "input",
    .attributes = "name:text type:type shape:shape below:int=0",
    .infer = infer,
    .gradient = tri_grad_none,
    .examples = EXAMPLES("{name=\"x\", type=f32, shape=[4,2]}"),
};

tri_tensor *tri_input_(tri_graph *g, const char *name, tri_type type, tri_shape shape,
                       tri_input_options o) {
    if (g && (!name || !*name))
        graph_mistake(g, "an input's name is missing (null or empty)");
    if (tri_find(g, name)) graph_mistake(g, "there are two inputs named \"%s\"", name);
    return graph_apply(g, "input", 0, NULL, 4,
                       (const tri_attr[]){AT("name", name), AI("type", type), AL("shape", shape),
                                          AI("below", o.below)});
}
