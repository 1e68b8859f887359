/* SPDX-License-Identifier: Apache-2.0
 * BERT with its pre-training heads. Names, shapes and initial values are those of Hugging Face's
 * BertForPreTraining. head=masked computes vocabulary scores only at masked positions, as the
 * original BERT does; head=every at every position, but those labelled -100 do not count. */
#include "models/models.h"

#define EPS 1e-12

static tri_tensor *dense(tri_tensor *x, const char *name, int64_t out) {
    static const tri_init weight = {TRI_NORMAL, 0, 0.02}, zeros = {TRI_CONSTANT, 0, 0};
    return tri_dense(x, name, out, .init = &weight, .bias_init = &zeros);
}

/* ids, types [n, s] to [n, s, hidden] */
static tri_tensor *embeddings(const struct transformer *t, tri_tensor *ids, tri_tensor *types,
                              tri_tensor **words) {
    tri_push(t->graph, "embeddings");
    *words = transformer_table(t, "word_embeddings.weight", t->vocab);
    tri_tensor *position = transformer_places(t, "position_embeddings.weight");
    tri_tensor *type = transformer_table(t, "token_type_embeddings.weight", 2);
    tri_tensor *x = tri_add(tri_gather(*words, ids), tri_gather(type, types));
    x = tri_ln(tri_add(x, position), "LayerNorm", .eps = EPS);
    tri_pop(t->graph);
    return transformer_dropout(t, x);
}

/* The end of attention and of the feed-forward part: layer norm of x + dropout(dense(y)). */
static tri_tensor *output(const struct transformer *t, tri_tensor *x, tri_tensor *y) {
    tri_push(t->graph, "output");
    y = transformer_dropout(t, dense(y, "dense", t->hidden));
    y = tri_ln(tri_add(y, x), "LayerNorm", .eps = EPS);
    tri_pop(t->graph);
    return y;
}

static tri_tensor *layer(const struct transformer *t, tri_tensor *x, tri_tensor *mask) {
    tri_push(t->graph, "attention");
    tri_push(t->graph, "self");
    tri_tensor *q = dense(x, "query", t->hidden), *k = dense(x, "key", t->hidden);
    tri_tensor *v = dense(x, "value", t->hidden);
    tri_tensor *y = tri_attention(q, k, v, .heads = t->heads, .mask = mask, .dropout = t->dropout);
    tri_pop(t->graph);
    x = output(t, x, y);
    tri_pop(t->graph);
    tri_push(t->graph, "intermediate");
    y = tri_gelu(dense(x, "dense", t->inner));
    tri_pop(t->graph);
    return output(t, x, y);
}

/* Scores over the vocabulary: x [n, places, hidden] to [n, places, vocab]. */
static tri_tensor *predictions(const struct transformer *t, tri_tensor *x, tri_tensor *words) {
    tri_push(t->graph, "predictions");
    tri_push(t->graph, "transform");
    x = tri_ln(tri_gelu(dense(x, "dense", t->hidden)), "LayerNorm", .eps = EPS);
    tri_pop(t->graph);
    tri_tensor *bias = tri_param(t->graph, "bias", TRI_SHAPE(t->vocab), (tri_init){0});
    tri_pop(t->graph);
    tri_tie(words, "cls.predictions.decoder.weight");
    tri_tie(bias, "cls.predictions.decoder.bias");
    return tri_add(tri_matmul(x, words, .trans_b = true), bias);
}

/* Rows of x [n, s, hidden] at positions [n, places]. The product with a one-hot matrix is exact and
 * can be split along the samples. */
static tri_tensor *rows_at(const struct transformer *t, tri_tensor *x, tri_tensor *positions) {
    return tri_matmul(tri_one_hot(positions, t->seq), x);
}

struct inputs {
    tri_tensor *ids, *types, *mask;
    tri_tensor *positions; /* head=masked only, else null */
    tri_tensor *label, *next;
    struct places places;
};

static struct inputs inputs(const struct transformer *t) {
    tri_graph *g = t->graph;
    tri_shape tokens = TRI_SHAPE(tri_batch(g), t->seq), masked = tokens;
    bool every = model_choice(t->args, "head", "masked every") == 1;
    masked.dim[1] = model_int(t->args, "predictions", t->seq < 20 ? t->seq : 20, 1, t->seq);
    struct inputs in = {
        .ids = tri_input(g, "input_ids", TRI_I64, tokens, .below = t->vocab),
        .types = tri_input(g, "token_type_ids", TRI_I64, tokens, .below = 2),
        .mask = tri_input(g, "attention_mask", TRI_I64, tokens, .below = 2),
    };
    if (every) {
        in.label = tri_input(g, "labels", TRI_I64, tokens, .below = t->vocab);
        in.places = places_labelled(in.label);
    } else {
        in.positions = tri_input(g, "masked_lm_positions", TRI_I64, masked, .below = t->seq);
        in.label = tri_input(g, "masked_lm_ids", TRI_I64, masked, .below = t->vocab);
        in.places = places_weighted(
            tri_input(g, "masked_lm_weights", TRI_F32, masked, .below = 2));
    }
    in.next = tri_input(g, "next_sentence_label", TRI_I64, TRI_SHAPE(tri_batch(g)), .below = 2);
    return in;
}

/* Returns [n, s, hidden]; *pooled [n, hidden] is computed from the first position. */
static tri_tensor *encoder(const struct transformer *t, const struct inputs *in,
                           tri_tensor **words, tri_tensor **pooled) {
    tri_graph *g = t->graph;
    tri_tensor *mask = tri_not_equal(in->mask, tri_constant(g, 0, TRI_I64));
    mask = tri_reshape(mask, TRI_SHAPE(tri_batch(g), 1, 1, t->seq));
    tri_push(g, "bert");
    tri_tensor *x = embeddings(t, in->ids, in->types, words);
    for (int i = 0; i < t->layers; i++) {
        tri_push(g, "encoder.layer.%d", i);
        x = layer(t, x, mask);
        tri_pop(g);
    }
    tri_tensor *first = tri_reshape(tri_slice(x, 1, 0, 1), TRI_SHAPE(tri_batch(g), t->hidden));
    tri_push(g, "pooler");
    *pooled = tri_tanh(dense(first, "dense", t->hidden));
    tri_pop(g);
    tri_pop(g);
    return x;
}

static void build(tri_graph *g, tri_args *args, int64_t layers, int64_t hidden, int64_t heads) {
    struct transformer t = transformer_begin(
        g, args, (struct transformer){.layers = layers, .hidden = hidden, .heads = heads,
                                      .vocab = 30522, .positions = 512, .seq = 128});
    struct inputs in = inputs(&t);
    tri_tensor *words, *pooled, *x = encoder(&t, &in, &words, &pooled);
    tri_push(g, "cls");
    if (in.positions) x = rows_at(&t, x, in.positions);
    tri_tensor *logits = predictions(&t, x, words);
    tri_tensor *next = dense(pooled, "seq_relationship", 2);
    tri_pop(g);
    if (t.logits) {
        tri_output(logits, "prediction_logits");
        tri_output(next, "seq_relationship_logits");
    }
    tri_tensor *masked_loss = places_loss(&in.places, logits, in.label);
    tri_tensor *next_loss = tri_cross_entropy(next, in.next);
    tri_metric(masked_loss, "masked_lm_loss");
    tri_metric(places_accuracy(&in.places, logits, in.label, 1), "masked_lm_accuracy");
    tri_metric(next_loss, "next_sentence_loss");
    tri_metric(tri_accuracy(next, in.next, 1), "next_sentence_accuracy");
    tri_loss(tri_add(masked_loss, next_loss));
}

void bert_tiny_build(tri_graph *g, tri_args *args) { build(g, args, 2, 128, 2); }
void bert_mini_build(tri_graph *g, tri_args *args) { build(g, args, 4, 256, 4); }
void bert_small_build(tri_graph *g, tri_args *args) { build(g, args, 4, 512, 8); }
void bert_medium_build(tri_graph *g, tri_args *args) { build(g, args, 8, 512, 8); }
void bert_base_build(tri_graph *g, tri_args *args) { build(g, args, 12, 768, 12); }
void bert_large_build(tri_graph *g, tri_args *args) { build(g, args, 24, 1024, 16); }
