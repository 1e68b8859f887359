/* SPDX-License-Identifier: Apache-2.0
 * ResNet-50 on pictures in folders, arranged like ImageNet: DIR/train/CLASS/NAME.JPEG and
 * DIR/val/CLASS/NAME.JPEG.
 *
 *     ./resnet50 DIR [CLASSES [SIZE]]
 *     trireme run -n auto -- ./resnet50 DIR --resume
 *
 * Options of `trireme train` on the command line override the settings below. */
#include <stdio.h>
#include <trireme.h>

int main(int argc, char **argv) {
    tri_options o = tri_options_default();
    o.batch = 256;
    o.epochs = 90;
    o.optimizer = (tri_optimizer){.name = "momentum", .lr = 0.1, .weight_decay = 1e-4,
                                  .schedule = "cosine:warmup=5000"};
    if (tri_options_parse(&o, &argc, argv)) return TRI_USAGE;
    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: %s DIR [CLASSES [SIZE]] [options]; --help lists them\n", argv[0]);
        return TRI_USAGE;
    }
    const char *classes = argc > 2 ? argv[2] : "1000", *size = argc > 3 ? argv[3] : "224";
    char model[128], train[4096], val[4096];
    snprintf(model, sizeof model, "resnet50:classes=%s,size=%s,smoothing=0.1", classes, size);
    snprintf(train, sizeof train, "images:%s,size=%s", argv[1], size);
    snprintf(val, sizeof val, "images:%s,size=%s,split=val", argv[1], size);

    o.data = train;
    tri_graph *g = tri_model_open(model, o.batch);
    return tri_train(g, &o, TRI_CALLBACKS(
        tri_loss_monitor(10),
        tri_time_monitor(0),
        tri_saver(.directory = "ckpt", .prefix = "resnet50", .every = 1000, .keep = 10),
        tri_evaluator(.data = val, .best = "top1")));
}
