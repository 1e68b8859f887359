/* SPDX-License-Identifier: Apache-2.0
 * Fine-tuning: a trained network gets a new head for other classes; the rest of it is frozen.
 *
 *     ./fine_tuning DIR CLASSES --load resnet18.safetensors
 *
 * The file is written by Trireme, or by
 * safetensors.torch.save_file(torchvision.models.resnet18(weights="DEFAULT").state_dict(), FILE).
 * Its head, fc, does not fit other classes: that is reported, and fc keeps its initial values. */
#include <stdio.h>
#include <trireme.h>

int main(int argc, char **argv) {
    tri_options o = tri_options_default();
    o.batch = 32;
    o.epochs = 5;
    o.partial = true; /* load what fits */
    o.optimizer = (tri_optimizer){.name = "momentum", .lr = 0.01, .schedule = "cosine:warmup=10"};
    if (tri_options_parse(&o, &argc, argv)) return TRI_USAGE;
    if (argc != 3 || !o.load) {
        fprintf(stderr, "usage: %s DIR CLASSES --load FILE [options]; --help lists them\n",
                argv[0]);
        return TRI_USAGE;
    }
    char model[64], train[4096], val[4096];
    snprintf(model, sizeof model, "resnet18:classes=%s", argv[2]);
    snprintf(train, sizeof train, "images:%s", argv[1]);
    snprintf(val, sizeof val, "images:%s,split=val", argv[1]);

    o.data = train;
    tri_graph *g = tri_model_open(model, o.batch);
    const char *const backbone[] = {"conv1.*", "bn1.*", "layer?.*"};
    for (int i = 0; i < 3; i++) tri_freeze(g, backbone[i]);
    return tri_train(g, &o, TRI_CALLBACKS(
        tri_evaluator(.data = val, .best = "top1", .early_stop = 3)));
}
