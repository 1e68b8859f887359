/* SPDX-License-Identifier: Apache-2.0
 * BERT's pre-training on texts: masked words and pairs of sentences, gradients clipped by their
 * norm, a loss scale that follows overflows. A callback prints the loss and its two parts, whether
 * the step overflowed, and the scale.
 *
 *     ./bert_pretraining VOCAB.txt TEXT... [--amp O2]
 */
#include <stdio.h>
#include <string.h>
#include <trireme.h>

/* Only one worker calls this. `skipped` counts the steps that were skipped because a gradient was
 * infinite. */
static int report(tri_run *run, void *user) {
    double *before = user, skipped = tri_value(run, "skipped");
    printf("step %lld: loss %.4f, masked words %.4f, next sentence %.4f, overflow %s, scale %.0f\n",
           (long long)tri_step_number(run), tri_value(run, "loss"),
           tri_value(run, "masked_lm_loss"), tri_value(run, "next_sentence_loss"),
           skipped > *before ? "yes" : "no", tri_value(run, "loss_scale"));
    *before = skipped;
    return 0;
}

int main(int argc, char **argv) {
    tri_options o = tri_options_default();
    o.batch = 32;
    o.optimizer = (tri_optimizer){.name = "adamw", .lr = 1e-4, .weight_decay = 0.01,
                                  .clip_norm = 1,
                                  .loss_scale = "dynamic:start=65536,every=1000",
                                  .schedule = "poly:power=1,end=0,warmup=100"};
    if (tri_options_parse(&o, &argc, argv)) return TRI_USAGE;
    if (argc < 3) {
        fprintf(stderr, "usage: %s VOCAB.txt TEXT... [options]; --help lists them\n", argv[0]);
        return TRI_USAGE;
    }
    char tokenizer[1024], data[8192] = "text";
    size_t length = strlen(data);
    snprintf(tokenizer, sizeof tokenizer, "bert:%s", argv[1]);
    for (int i = 2; i < argc && length < sizeof data; i++)
        length += (size_t)snprintf(data + length, sizeof data - length, ":%s", argv[i]);
    if (length >= sizeof data) {
        fprintf(stderr, "too many files: a pattern stands for many, 'texts/*.txt'\n");
        return TRI_USAGE;
    }
    o.tokenizer = tokenizer;
    o.data = data;
    double skipped = 0;
    tri_graph *g = tri_model_open("bert-tiny:seq=64,predictions=10", o.batch);
    return tri_train(g, &o, TRI_CALLBACKS({.step = report, .user = &skipped, .every = 10}));
}
