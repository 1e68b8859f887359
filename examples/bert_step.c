/* SPDX-License-Identifier: Apache-2.0
 * BERT's pre-training with a step of one's own: gradients of the scaled loss, divided by the scale
 * again, clipped by their common norm, and an update that is skipped if one of them, or the loss,
 * is not finite. The options set all of it, also --amp; with the same options the weights are those
 * of bert_pretraining.c, whose step comes from the library.
 *
 *     ./bert_step VOCAB.txt TEXT [--amp O2]
 */
#include <stdio.h>
#include <stdlib.h>
#include <trireme.h>

/* The step of the optimizer `o`. */
static void step(tri_graph *g, tri_optimizer o) {
    int n = tri_param_count(g);
    tri_tensor **params = malloc(2 * sizeof *params * (size_t)n), **grads = params + n;
    if (!params) exit(TRI_FAILED);
    for (int i = 0; i < n; i++) params[i] = tri_param_at(g, i);

    tri_tensor *scaled = tri_scale_loss(tri_find(g, "loss"), o.loss_scale);
    tri_grad(scaled, params, n, grads);
    tri_tensor *finite = tri_unscale(scaled, grads, n);
    if (o.clip_norm > 0) tri_metric(tri_clip_by_norm(grads, n, o.clip_norm), "norm");
    tri_update(params, grads, n, o, finite);
    free(params);
}

int main(int argc, char **argv) {
    tri_options o = tri_options_default();
    o.batch = 32;
    o.optimizer = (tri_optimizer){.name = "adamw", .lr = 1e-4, .weight_decay = 0.01,
                                  .clip_norm = 1,
                                  .loss_scale = "dynamic:start=65536,every=1000",
                                  .schedule = "poly:power=1,end=0,warmup=100"};
    if (tri_options_parse(&o, &argc, argv)) return TRI_USAGE;
    if (argc != 3) {
        fprintf(stderr, "usage: %s VOCAB.txt TEXT [options]; --help lists them\n", argv[0]);
        return TRI_USAGE;
    }
    char tokenizer[1024], data[1024];
    snprintf(tokenizer, sizeof tokenizer, "bert:%s", argv[1]);
    snprintf(data, sizeof data, "text:%s", argv[2]);
    o.tokenizer = tokenizer;
    o.data = data;
    tri_graph *g = tri_model_open("bert-tiny:seq=64,predictions=10", o.batch);
    if (!tri_graph_status(g)) step(g, o.optimizer);
    return tri_train(g, &o, TRI_CALLBACKS(tri_loss_monitor(10)));
}
