/* SPDX-License-Identifier: Apache-2.0
 * ResNet-50 for 100 classes as a pipeline of two stages: conv1 to layer2, and layer3 to the head.
 * The lanes are the micro-batches; the network is the same as without stages, and so are the bits.
 *
 *     ./two_stages images:DIR                       # one process
 *     trireme run -n 2 -- ./two_stages images:DIR   # each worker computes a stage
 *     ./two_stages images:DIR --stages 1            # no pipeline: the same result
 *     ./two_stages images:DIR --pipeline gpipe      # another order of the legs
 *
 * Data is anything that --data takes. SIZE, after it, is the size of the pictures. */
#include <stdio.h>
#include <trireme.h>

int main(int argc, char **argv) {
    tri_options o = tri_options_default();
    o.batch = 32;
    o.lanes = 8;
    o.epochs = 10;
    o.optimizer = (tri_optimizer){.name = "momentum", .lr = 0.01};
    if (tri_options_parse(&o, &argc, argv)) return TRI_USAGE;
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: %s DATA [SIZE] [options]; --help lists them\n", argv[0]);
        return TRI_USAGE;
    }
    char model[64];
    snprintf(model, sizeof model, "resnet50:classes=100,size=%s", argc > 2 ? argv[2] : "224");
    o.data = argv[1];
    tri_graph *g = tri_model_open(model, o.batch);
    if (!g) return TRI_USAGE;
    tri_stage(g, "layer[34].*", 1); /* all before it is in stage 0, all after it follows it */
    return tri_train(g, &o, TRI_CALLBACKS(tri_loss_monitor(1), tri_time_monitor(0)));
}
