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

/* Arguments within bounds, or of a few words ("imagenet small"; the first is the default, and the
 * position is returned). Anything else is told through the graph, and the default returned. */
int64_t model_int(tri_args *a, const char *name, int64_t otherwise, int64_t low, int64_t high);
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

tri_builder linear_build, mlp_build, lenet5_build, cnn_build;
tri_builder resnet18_build, resnet34_build, resnet50_build, resnet101_build, resnet152_build;
tri_data *linear_data(void);

#endif
