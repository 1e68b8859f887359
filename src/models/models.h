/* SPDX-License-Identifier: Apache-2.0
 * The zoo: its table, and what its models share. Models are written against the public header, as a
 * user's own would be. */
#ifndef MODELS_MODELS_H
#define MODELS_MODELS_H

#include <trireme.h>

struct model {
    const char *name;
    const char *about;   /* one line */
    const char *options; /* what may stand behind the colon: "classes=10 hidden=512" */
    const char *input;   /* shape of one sample by default: "1x28x28" */
    tri_builder *build;
    tri_data *(*data)(void); /* a source of its own where none is named; null: synthetic */
};

/* The i-th model of the zoo; null behind the last. */
const struct model *model_at(int i);
/* The row that a spec ("resnet50:classes=100") names; null if it names none. */
const struct model *model_find(const char *spec);

/* Whether a word names a model, rather than a file to be worked on: one of the zoo, FILE.tri or
 * FILE.so. */
bool model_is_named(const char *spec);

/* Arguments within bounds, or of a few words ("imagenet small"; the first is the default, and the
 * position is returned). Anything else is told through the graph, and the default returned. */
int64_t model_int(tri_args *a, const char *name, int64_t otherwise, int64_t low, int64_t high);
int64_t model_divisor(tri_args *a, const char *name, int64_t otherwise, int64_t of);
int model_choice(tri_args *a, const char *name, const char *words);

/* What classifiers of images have in common: inputs "image" f32 [n,c,h,h] and "label" i64 [n],
 * options classes, channels, size, smoothing; output "logits", cross-entropy, metrics top1 and,
 * where there are more than five classes, top5. */
struct classifier {
    tri_args *args;
    tri_tensor *image, *label;
    int64_t classes;
};
struct classifier classifier_begin(tri_graph *g, tri_args *a, int64_t classes, int64_t channels,
                                   int64_t size);
void classifier_end(const struct classifier *c, tri_tensor *logits);

/* What transformers have in common, and the arguments that set it. */
struct transformer {
    tri_graph *graph;
    tri_args *args;
    int64_t layers, hidden, heads, inner, vocab, positions, seq;
    double dropout;
    bool logits; /* are to be an output, which takes memory for the whole batch's */
};
/* `t` has the defaults; a default sequence that is too long for the positions is cut to them. */
struct transformer transformer_begin(tri_graph *g, tri_args *a, struct transformer t);
/* The parameter `name` [rows, hidden]; that of all positions, of which [seq, hidden] is
 * returned. */
tri_tensor *transformer_table(const struct transformer *t, const char *name, int64_t rows);
tri_tensor *transformer_places(const struct transformer *t, const char *name);
/* x itself where the network has none. */
tri_tensor *transformer_dropout(const struct transformer *t, tri_tensor *x);

/* A mean over places of which some do not count: sum(weight x each) / total. The total follows from
 * the data alone, so that with lanes it is that of the whole batch. */
struct places {
    tri_tensor *weight; /* f32, of the shape of the labels */
    tri_tensor *total;
};
/* Those whose label is not -100, at least one. */
struct places places_labelled(tri_tensor *label);
/* Those of the weights given, and 1e-5, as BERT was published. */
struct places places_weighted(tri_tensor *weight);
/* Of logits [..., classes] and labels [...] the mean cross-entropy, and the share of places whose
 * label is among the k largest logits. */
tri_tensor *places_loss(const struct places *p, tri_tensor *logits, tri_tensor *label);
tri_tensor *places_accuracy(const struct places *p, tri_tensor *logits, tri_tensor *label,
                            int64_t k);

tri_builder linear_build, mlp_build, lenet5_build, cnn_build;
tri_builder resnet18_build, resnet34_build, resnet50_build, resnet101_build, resnet152_build;
tri_builder bert_tiny_build, bert_mini_build, bert_small_build, bert_medium_build, bert_base_build,
    bert_large_build;
tri_builder gpt2_tiny_build, gpt2_small_build, gpt2_medium_build, gpt2_large_build, gpt2_xl_build;
tri_data *linear_data(void);

#endif
