/* SPDX-License-Identifier: Apache-2.0
 * An operator of your own: hardswish, x * clip(x + 3, 0, 6) / 6. One row describes it completely;
 * the library differentiates, splits and checks it like its own operators. */
#include <stdio.h>
#include <trireme.h>

/* The output has the type and shape of the input. */
static int infer(const tri_node *n, tri_spec *out) {
    const tri_tensor *x = tri_node_in(n, 0);
    if (tri_type_of(x) != TRI_F32)
        return tri_op_error(n, "it takes f32, not %s", tri_type_name(tri_type_of(x)));
    out[0] = (tri_spec){TRI_F32, tri_shape_of(x)};
    return 1;
}

/* dy times the derivative, as a graph: 0 below -3, 1 above 3, (2x + 3) / 6 between. */
static void gradient(const tri_node *n, tri_tensor *const *dy, tri_tensor **dx) {
    tri_tensor *x = tri_node_in(n, 0);
    tri_graph *g = tri_graph_of(x);
    tri_tensor *zero = tri_constant(g, 0, TRI_F32), *one = tri_constant(g, 1, TRI_F32);
    tri_tensor *slope = tri_scale(tri_add_number(tri_scale(x, 2), 3), 1.0 / 6);
    slope = tri_where(tri_less(x, tri_constant(g, -3, TRI_F32)), zero, slope);
    slope = tri_where(tri_greater(x, tri_constant(g, 3, TRI_F32)), one, slope);
    dx[0] = tri_mul(dy[0], slope);
}

static void kernel(const tri_call *call) {
    tri_shape shape = tri_shape_of(tri_node_out(call->node, 0));
    int64_t n = tri_shape_count(&shape);
    const float *x = call->in[0];
    float *y = call->out[0];
    for (int64_t i = 0; i < n; i++) {
        float gate = x[i] + 3;
        gate = gate < 0 ? 0 : gate > 6 ? 6 : gate;
        y[i] = x[i] * gate / 6;
    }
}

static const tri_op hardswish_row = {
    .name = "hardswish",
    .inputs = 1,
    .infer = infer,
    .gradient = gradient,
    .factors = "...->...", /* elementwise: it may be split along any dimension */
    .examples = (const char *const[]){"f32[3,5]@-2.5:2.5", "f32[7]@-6:-3.5", "f32[2,2]@3.5:6",
                                      NULL},
    .kernel = kernel,
};

/* The builder, which models call. */
static tri_tensor *hardswish(tri_tensor *x) {
    return tri_apply(tri_graph_of(x), "hardswish", &x, 1, NULL, 0);
}

int main(int argc, char **argv) {
    tri_options o = tri_options_default();
    if (tri_options_parse(&o, &argc, argv)) return TRI_USAGE;
    /* Checks the gradient against finite differences, and split against unsplit. */
    if (tri_register(&hardswish_row) || tri_op_check(&hardswish_row, o.device)) {
        fprintf(stderr, "%s\n", tri_message());
        return TRI_FAILED;
    }
    tri_graph *g = tri_graph_new(o.batch);
    tri_tensor *x = tri_input(g, "image", TRI_F32, TRI_SHAPE(tri_batch(g), 1, 28, 28));
    tri_tensor *y = tri_input(g, "label", TRI_I64, TRI_SHAPE(tri_batch(g)), .below = 10);
    tri_tensor *h = hardswish(tri_dense(tri_flatten(x, 1), "fc1", 128));
    tri_tensor *logits = tri_dense(h, "fc2", 10);
    tri_metric(tri_accuracy(logits, y, 1), "top1");
    tri_loss(tri_cross_entropy(logits, y));
    return tri_train(g, &o, NULL);
}
