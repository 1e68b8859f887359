/* SPDX-License-Identifier: Apache-2.0
 * Networks whose losses or updates use results of the whole batch for each sample:
 * "across.so:loss=KIND". test_across.sh trains them. */
#include <string.h>
#include <trireme.h>

typedef tri_tensor *part(tri_graph *g, tri_tensor *x, tri_tensor *h, tri_tensor *label);

static tri_tensor *square(tri_tensor *m) { return tri_sum(tri_mul(m, m), TRI_ALL); }

/* The balance of a mixture of experts: the square of a mean over the batch. */
static tri_tensor *balance(tri_graph *g, tri_tensor *x, tri_tensor *h, tri_tensor *label) {
    (void)g, (void)x, (void)label;
    return square(tri_mean(h, TRI_SHAPE(0)));
}

/* The batch's own statistics, several operators from the sum to the samples. */
static tri_tensor *whiten(tri_graph *g, tri_tensor *x, tri_tensor *h, tri_tensor *label) {
    (void)g, (void)x, (void)label;
    tri_tensor *centred = tri_sub(h, tri_mean(h, TRI_SHAPE(0)));
    tri_tensor *var = tri_mean(tri_mul(centred, centred), TRI_SHAPE(0));
    tri_tensor *y = tri_mul(centred, tri_rsqrt(tri_add_number(var, 1e-3)));
    tri_metric(tri_cast(tri_all_finite(&h, 1), TRI_F32), "finite");
    tri_metric(tri_max(var, TRI_ALL), "largest");
    tri_metric(tri_cast(tri_greater(tri_sum(var, TRI_ALL), tri_constant(g, 1, TRI_F32)), TRI_F32),
               "above");
    return tri_mean(tri_softplus(y), TRI_ALL);
}

/* A memory of the last batch: updates that read a value, an input and a bool of each sample. */
static tri_tensor *memory(tri_graph *g, tri_tensor *x, tri_tensor *h, tri_tensor *label) {
    tri_shape shape = tri_shape_of(h);
    tri_tensor *old = tri_state(g, "memory.h", TRI_F32, shape, (tri_init){0});
    tri_tensor *seen = tri_state(g, "memory.x", TRI_F32, tri_shape_of(x), (tri_init){0});
    tri_tensor *known = tri_state(g, "memory.label", TRI_I64, tri_shape_of(label), (tri_init){0});
    tri_tensor *positive = tri_state(g, "memory.positive", TRI_BOOL, shape, (tri_init){0});
    tri_tensor *before = tri_where(positive, old, tri_scale(old, 0.5));
    tri_tensor *same = tri_equal(known, label);
    tri_tensor *loss = tri_mean(tri_mul(h, before), TRI_ALL);
    tri_tensor *moved = tri_mean(tri_mul(seen, x), TRI_ALL);
    tri_assign(old, tri_stop_gradient(h));
    tri_assign(seen, x);
    tri_assign(known, label);
    tri_assign(positive, tri_greater(h, tri_constant(g, 0, TRI_F32)));
    tri_metric(tri_mean(tri_cast(same, TRI_F32), TRI_ALL), "same");
    return tri_add(loss, moved);
}

/* Each sample against all others. */
static tri_tensor *contrast(tri_graph *g, tri_tensor *x, tri_tensor *h, tri_tensor *label) {
    (void)label;
    tri_tensor *other = tri_dense(x, "other", tri_dim(h, 1));
    tri_tensor *scores = tri_matmul(h, other, .trans_b = true);
    tri_tensor *far = tri_mul(tri_sub(tri_constant(g, 1, TRI_F32), tri_eye(h)), scores);
    tri_output(scores, "scores");
    tri_output(tri_transpose(h, TRI_SHAPE(1, 0)), "columns");
    return tri_add(tri_cross_entropy(scores, tri_arange(h)), tri_scale(square(far), 1e-4));
}

/* The same as `balance`, of each lane. */
static tri_tensor *lanes(tri_graph *g, tri_tensor *x, tri_tensor *h, tri_tensor *label) {
    (void)g, (void)x, (void)label;
    tri_tensor *m = tri_mean(h, TRI_SHAPE(0), .per_lane = true);
    tri_tensor *top = tri_max(h, TRI_ALL, .per_lane = true);
    tri_tensor *sum = tri_sum(h, TRI_SHAPE(0, 1), .keep = true, .per_lane = true);
    tri_tensor *each = tri_sum(tri_mul(m, m), TRI_SHAPE(1));
    tri_metric(tri_mean(top, TRI_ALL), "top");
    tri_metric(tri_mean(sum, TRI_ALL), "sum");
    return tri_mean(tri_add(each, tri_scale(top, 0.1)), TRI_ALL);
}

/* The same in one lane, with the samples that each of three lanes would have. */
static tri_tensor *slices(tri_graph *g, tri_tensor *x, tri_tensor *h, tri_tensor *label) {
    (void)x, (void)label;
    int64_t n = tri_batch(g), at = 0;
    tri_tensor *all = tri_constant(g, 0, TRI_F32), *tops = all, *sums = all;
    for (int i = 0; i < 3; i++) {
        int64_t end = at + n / 3 + (i < n % 3);
        tri_tensor *lane = tri_slice(h, 0, at, end), *top = tri_max(lane, TRI_ALL);
        at = end;
        all = tri_add(all, tri_add(square(tri_mean(lane, TRI_SHAPE(0))), tri_scale(top, 0.1)));
        tops = tri_add(tops, top);
        sums = tri_add(sums, tri_sum(lane, TRI_ALL));
    }
    tri_metric(tri_scale(tops, 1.0 / 3), "top");
    tri_metric(tri_scale(sums, 1.0 / 3), "sum");
    return tri_scale(all, 1.0 / 3);
}

/* A mistake: a parameter has no samples. */
static tri_tensor *weights(tri_graph *g, tri_tensor *x, tri_tensor *h, tri_tensor *label) {
    (void)x, (void)h, (void)label;
    tri_tensor *w = tri_param(g, "w", TRI_SHAPE(tri_batch(g), 2), (tri_init){0});
    return tri_mean(tri_sum(w, TRI_ALL, .per_lane = true), TRI_ALL);
}

/* Another: a parameter cannot have as many rows as there are lanes. */
static tri_tensor *rows(tri_graph *g, tri_tensor *x, tri_tensor *h, tri_tensor *label) {
    (void)x, (void)label;
    tri_tensor *w = tri_param(g, "w", TRI_SHAPE(1, tri_dim(h, 1)), (tri_init){0});
    return tri_mean(tri_mul(w, tri_mean(h, TRI_SHAPE(0), .per_lane = true)), TRI_ALL);
}

static const struct {
    const char *name;
    part *make;
} parts[] = {{"balance", balance}, {"whiten", whiten}, {"memory", memory}, {"contrast", contrast},
             {"lanes", lanes}, {"slices", slices}, {"weights", weights},
             {"rows", rows}};

void tri_model(tri_graph *g, tri_args *args) {
    int64_t n = tri_batch(g);
    const char *loss = tri_args_text(args, "loss", "balance");
    double dropout = tri_args_float(args, "dropout", 0);
    tri_tensor *x = tri_input(g, "x", TRI_F32, TRI_SHAPE(n, 8));
    tri_tensor *label = tri_input(g, "label", TRI_I64, TRI_SHAPE(n), .below = 4);
    tri_tensor *h = tri_dense(x, "fc1", 12);
    if (dropout > 0) h = tri_dropout(h, dropout);
    h = tri_dense(tri_relu(h), "fc2", 6);
    tri_tensor *logits = tri_dense(tri_relu(h), "head", 4);
    tri_tensor *wrong = tri_cross_entropy(logits, label, .ignore = true, .ignore_index = -100);
    tri_metric(wrong, "wrong");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strcmp(parts[i].name, loss)) wrong = tri_add(wrong, parts[i].make(g, x, h, label));
    tri_loss(wrong);
}
