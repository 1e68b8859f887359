/* SPDX-License-Identifier: Apache-2.0
 * GPT-2 with its language-model head. Names, shapes and initial values are those of Hugging Face's
 * GPT2LMHeadModel, where weights of dense layers are [in, out]. */
#include <math.h>

#include "models/models.h"

/* x [n, s, in] times a new weight [in, out], plus a new bias. */
static tri_tensor *conv1d(tri_tensor *x, const char *name, int64_t out, double deviation) {
    tri_graph *g = tri_graph_of(x);
    tri_push(g, "%s", name);
    tri_tensor *weight = tri_param(g, "weight", TRI_SHAPE(tri_dim(x, -1), out),
                                   (tri_init){TRI_NORMAL, 0, deviation});
    tri_tensor *bias = tri_param(g, "bias", TRI_SHAPE(out), (tri_init){0});
    tri_tensor *y = tri_add(tri_matmul(x, weight), bias);
    tri_pop(g);
    return y;
}

/* The end of a residual branch. The more branches there are, the smaller its initial weights. */
static tri_tensor *project(const struct transformer *t, tri_tensor *x) {
    double deviation = 0.02 / sqrt(2 * (double)t->layers);
    return transformer_dropout(t, conv1d(x, "c_proj", t->hidden, deviation));
}

static tri_tensor *block(const struct transformer *t, tri_tensor *x) {
    tri_graph *g = t->graph;
    tri_tensor *y = tri_ln(x, "ln_1");
    tri_push(g, "attn");
    y = conv1d(y, "c_attn", 3 * t->hidden, 0.02);
    y = tri_attention(y, NULL, NULL, .heads = t->heads, .causal = true, .dropout = t->dropout);
    y = project(t, y);
    tri_pop(g);
    x = tri_add(y, x);
    y = tri_ln(x, "ln_2");
    tri_push(g, "mlp");
    y = project(t, tri_gelu_tanh(conv1d(y, "c_fc", t->inner, 0.02)));
    tri_pop(g);
    return tri_add(x, y);
}

/* ids [n, s] to [n, s, hidden]; *words [vocab, hidden] */
static tri_tensor *transformer(const struct transformer *t, tri_tensor *ids, tri_tensor **words) {
    tri_graph *g = t->graph;
    tri_push(g, "transformer");
    *words = transformer_table(t, "wte.weight", t->vocab);
    tri_tensor *position = transformer_places(t, "wpe.weight");
    tri_tensor *x = transformer_dropout(t, tri_add(tri_gather(*words, ids), position));
    for (int i = 0; i < t->layers; i++) {
        tri_push(g, "h.%d", i);
        x = block(t, x);
        tri_pop(g);
    }
    x = tri_ln(x, "ln_f");
    tri_pop(g);
    return x;
}

/* Position i predicts the label of position i + 1; the last position predicts none. Shifting the
 * labels is cheaper than shifting the scores, which are far larger. */
static tri_tensor *next_labels(const struct transformer *t, tri_tensor *labels) {
    return tri_pad(tri_slice(labels, 1, 1, t->seq), TRI_SHAPE(0, 0), TRI_SHAPE(0, 1), -100);
}

static void build(tri_graph *g, tri_args *args, int64_t layers, int64_t hidden, int64_t heads) {
    struct transformer t = transformer_begin(
        g, args, (struct transformer){.layers = layers, .hidden = hidden, .heads = heads,
                                      .vocab = 50257, .positions = 1024, .seq = 1024});
    tri_shape tokens = TRI_SHAPE(tri_batch(g), t.seq);
    tri_tensor *ids = tri_input(g, "input_ids", TRI_I64, tokens, .below = t.vocab);
    tri_tensor *labels = tri_input(g, "labels", TRI_I64, tokens, .below = t.vocab), *words;
    tri_tensor *x = transformer(&t, ids, &words);
    tri_tensor *logits = tri_matmul(x, words, .trans_b = true);
    tri_tie(words, "lm_head.weight");
    if (t.logits) tri_output(logits, "logits");
    tri_tensor *next = next_labels(&t, labels);
    struct places places = places_labelled(next);
    tri_metric(places_accuracy(&places, logits, next, 1), "accuracy");
    tri_loss(places_loss(&places, logits, next));
}

void gpt2_tiny_build(tri_graph *g, tri_args *args) { build(g, args, 2, 128, 2); }
void gpt2_small_build(tri_graph *g, tri_args *args) { build(g, args, 12, 768, 12); }
void gpt2_medium_build(tri_graph *g, tri_args *args) { build(g, args, 24, 1024, 16); }
void gpt2_large_build(tri_graph *g, tri_args *args) { build(g, args, 36, 1280, 20); }
void gpt2_xl_build(tri_graph *g, tri_args *args) { build(g, args, 48, 1600, 25); }
