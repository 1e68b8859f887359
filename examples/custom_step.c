/* SPDX-License-Identifier: Apache-2.0
 * A training step composed by hand: two losses, a loss scale that follows overflows, gradients
 * clipped by their norm, an update that is skipped if a gradient is not finite, and own results in
 * the progress line and metrics.jsonl. */
#include <stdio.h>
#include <trireme.h>

#define MAX_PARAMS 16
#define RAISE_AFTER 20 /* good steps until the loss scale doubles */

/* The network classifies images, and reconstructs them from the classifier's hidden layer. Returns
 * the sum of both losses. */
static tri_tensor *losses(tri_graph *g) {
    int64_t n = tri_batch(g);
    tri_tensor *image = tri_input(g, "image", TRI_F32, TRI_SHAPE(n, 1, 28, 28));
    tri_tensor *label = tri_input(g, "label", TRI_I64, TRI_SHAPE(n), .below = 10);
    tri_tensor *flat = tri_flatten(image, 1);
    tri_tensor *code = tri_relu(tri_dense(flat, "encoder", 64));
    tri_tensor *logits = tri_dense(code, "classes", 10);
    tri_tensor *classes = tri_cross_entropy(logits, label);
    tri_tensor *again = tri_mse(tri_dense(code, "decoder", 28 * 28), flat);
    tri_metric(tri_accuracy(logits, label, 1), "top1");
    tri_metric(classes, "classes");
    tri_metric(again, "again");
    return tri_add(classes, tri_scale(again, 0.1));
}

/* The scale halves after an overflow and doubles after RAISE_AFTER steps without one. */
static void move_scale(tri_graph *g, tri_tensor *scale, tri_tensor *finite) {
    tri_tensor *good = tri_state(g, "good_steps", TRI_F32, TRI_SCALAR, (tri_init){0});
    tri_tensor *zero = tri_constant(g, 0, TRI_F32);
    tri_tensor *count = tri_where(finite, tri_add_number(good, 1), zero);
    tri_tensor *raise = tri_greater_equal(count, tri_constant(g, RAISE_AFTER, TRI_F32));
    tri_tensor *raised = tri_where(raise, tri_scale(scale, 2), scale);
    tri_assign(scale, tri_where(finite, raised, tri_scale(scale, 0.5)));
    tri_assign(good, tri_where(raise, zero, count));
}

static void step(tri_graph *g) {
    tri_tensor *loss = losses(g);
    tri_loss(loss);

    tri_tensor *params[MAX_PARAMS], *grads[MAX_PARAMS];
    int n = tri_param_count(g);
    for (int i = 0; i < n; i++) params[i] = tri_param_at(g, i);

    tri_tensor *scale = tri_state(g, "loss_scale", TRI_F32, TRI_SCALAR,
                                  (tri_init){.kind = TRI_CONSTANT, .a = 1024});
    tri_grad(tri_mul(loss, scale), params, n, grads);
    tri_tensor *finite = tri_all_finite(grads, n);
    for (int i = 0; i < n; i++) grads[i] = tri_div(grads[i], scale);
    tri_tensor *norm = tri_clip_by_norm(grads, n, 1.0);

    tri_update(params, grads, n, (tri_optimizer){.name = "adamw", .weight_decay = 0.01}, finite);
    move_scale(g, scale, finite);

    tri_metric(norm, "norm");
    tri_metric(scale, "scale");
}

/* A callback of the loop, which reads an own result. */
static int after_epoch(tri_run *run, void *user) {
    double *best = user, again = tri_value(run, "again");
    if (again < *best) *best = again;
    fprintf(stderr, "after %lld steps: images again to %.4f, best %.4f\n",
            (long long)tri_step_number(run), again, *best);
    return 0;
}

int main(int argc, char **argv) {
    tri_options o = tri_options_default();
    o.optimizer.lr = 1e-3; /* the schedule starts from it; tri_update follows the schedule */
    if (tri_options_parse(&o, &argc, argv)) return TRI_USAGE;
    double best = 1e30;
    tri_graph *g = tri_graph_new(o.batch);
    step(g);
    return tri_train(g, &o, TRI_CALLBACKS({.epoch = after_epoch, .user = &best}));
}
