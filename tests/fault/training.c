/* SPDX-License-Identifier: Apache-2.0
 * Scenarios of test_fault.c: training in f32 with two threads, and checkpoints. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fault/scenarios.h"
#include "trireme.h"

static tri_tensor *convolve(tri_tensor *x, const char *conv, const char *norm, int64_t channels,
                            int stride) {
    x = tri_conv(x, conv, channels, 3, .pad = 1, .stride = stride, .no_bias = true);
    return tri_relu(tri_bn(x, norm));
}

/* Convolutions of few channels, of blocks of 16 and with Winograd, then an attention block: kernels
 * of our own. oneDNN only reorders weights. */
static tri_graph *network(void) {
    tri_graph *g = tri_graph_new(16);
    int64_t n = tri_batch(g);
    tri_tensor *x = tri_input(g, "image", TRI_F32, TRI_SHAPE(n, 3, 16, 16));
    tri_tensor *label = tri_input(g, "label", TRI_I64, TRI_SHAPE(n), .below = 4);
    x = convolve(x, "few", "bn1", 16, 1);
    x = convolve(x, "direct", "bn2", 32, 2);
    x = tri_max_pool(convolve(x, "winograd", "bn3", 32, 1), .size = 2);
    x = tri_transpose(tri_reshape(x, TRI_SHAPE(n, 32, 16)), TRI_SHAPE(0, 2, 1));
    tri_tensor *q = tri_dense(x, "q", 32), *k = tri_dense(x, "k", 32), *v = tri_dense(x, "v", 32);
    tri_tensor *y = tri_attention(q, k, v, .heads = 2, .dropout = 0.1);
    x = tri_ln(tri_add(tri_dropout(tri_dense(y, "out", 32), 0.1), x), "ln1");
    y = tri_dense(tri_gelu(tri_dense(x, "fc1", 64)), "fc2", 32);
    x = tri_ln(tri_add(y, x), "ln2");
    tri_loss(tri_cross_entropy(tri_dense(tri_mean(x, TRI_SHAPE(1)), "head", 4), label));
    return g;
}

/* Two steps, and a checkpoint after each. */
static tri_status attempt(const char *passes, bool resume, bool *opened, uint64_t *result) {
    char weights[65], state[65];
    tri_options o = {.steps = 2, .lanes = 2, .threads = 2, .quiet = true, .passes = passes,
                     .data = "synthetic:size=40", .ckpt = in_directory("training"),
                     .save_every = 1, .resume = resume,
                     .optimizer = {.name = "adamw", .clip_norm = 1, .weight_decay = 0.1}};
    tri_run *run = tri_open(network(), &o);
    *opened = run;
    while (tri_step(run)) continue;
    tri_hash(run, weights, state);
    tri_status status = tri_close(run);
    if (!status && !*state) status = base_last();
    if (!status) add_text(result, state);
    return status;
}

/* After a failure, a second run continues from what the first one saved, with the same result. */
static bool train(const char *passes, uint64_t *result) {
    static uint64_t right; /* of all scenarios: passes change no bit */
    static char again[1024];
    char message[1024], command[256];
    bool opened;
    snprintf(command, sizeof command, "rm -rf %s", in_directory("training"));
    if (system(command)) broken = command;
    tri_status status = attempt(passes, false, &opened, result);
    if (!status && !right) right = *result;
    if (!status || !opened) return !status;
    snprintf(message, sizeof message, "%s", tri_message());
    *result = 0;
    snprintf(again, sizeof again, "after the failure: ");
    if (attempt(passes, true, &opened, result))
        broken = strncat(again, tri_message(), sizeof again - strlen(again) - 1);
    else if (*result != right)
        broken = "the second run has another result";
    base_fail(status, "%s", message);
    return false;
}

bool train_fused(uint64_t *result) { return train(NULL, result); }
bool train_unfused(uint64_t *result) { return train("-fuse", result); }
