/* SPDX-License-Identifier: Apache-2.0
 * The zoo: its table, and what its models share. Models use only the public header, as
 * users' models do. */
#ifndef MODELS_MODELS_H
#define MODELS_MODELS_H

#include <trireme.h>

#undef TRI_HERE /* lines of the zoo help no user */
#define TRI_HERE ((void)0)

struct model {
    const char *name;
    const char *about;   /* one line */
    const char *options; /* after the colon, with defaults: "classes=10 hidden=512" */
    const char *input;   /* default shape of one sample: "1x28x28" */
    tri_builder *build;
    tri_data *(*data)(void); /* the default data; null: synthetic */
};

/* The i-th model of the zoo; null after the last. */
const struct model *model_at(int i);
/* The row that a spec ("resnet50:classes=100") names; null if it names none. */
const struct model *model_find(const char *spec);

/* Whether a word names a model: one of the zoo, FILE.tri or FILE.so. */
bool model_is_named(const char *spec);

/* Arguments: a number from low to high, a divisor of `of`, or one of several words ("imagenet
 * small"; the first is the default; returns the word's position). For any other value they report a
 * mistake through the graph and return the default; model_divisor returns 1. */
int64_t model_int(tri_args *a, const char *name, int64_t otherwise, int64_t low, int64_t high);
int64_t model_divisor(tri_args *a, const char *name, int64_t otherwise, int64_t of);
int model_choice(tri_args *a, const char *name, const char *words);

/* Shared by image classifiers: inputs "image" f32 [n,c,h,h] and "label" i64 [n]; options classes,
 * channels, size, smoothing and ignore; output "logits"; cross-entropy loss; metrics top1 and, with
 * more than five classes, top5. */
struct classifier {
    tri_args *args;
    tri_tensor *image, *label;
    int64_t classes;
};
struct classifier classifier_begin(tri_graph *g, tri_args *a, int64_t classes, int64_t channels,
                                   int64_t size);
void classifier_end(const struct classifier *c, tri_tensor *logits);

/* Shared by transformers. The arguments of the model set all sizes. */
struct transformer {
    tri_graph *graph;
    tri_args *args;
    int64_t layers, hidden, heads, inner, vocab, positions, seq;
    double dropout;
    bool logits; /* make them an output, which needs memory for the whole batch */
};
/* `t` has the defaults. A default of seq above the number of positions is reduced to it. */
struct transformer transformer_begin(tri_graph *g, tri_args *a, struct transformer t);
/* A new parameter [rows, hidden]. */
tri_tensor *transformer_table(const struct transformer *t, const char *name, int64_t rows);
/* A new parameter [positions, hidden]; returns its first seq rows. */
tri_tensor *transformer_places(const struct transformer *t, const char *name);
/* x itself if dropout is 0. */
tri_tensor *transformer_dropout(const struct transformer *t, tri_tensor *x);

/* A mean over places of which some do not count: sum(weight * each) / total. The total depends only
 * on the data, so that lanes divide by the total of the whole batch. */
struct places {
    tri_tensor *weight; /* f32, of the shape of the labels */
    tri_tensor *total;
};
/* Counts the places whose label is not -100; the total is at least 1. */
struct places places_labelled(tri_tensor *label);
/* The total is the sum of the given weights plus 1e-5, as in the original BERT. */
struct places places_weighted(tri_tensor *weight);
/* For logits [..., classes] and labels [...]: the mean cross-entropy, and the share of places whose
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
