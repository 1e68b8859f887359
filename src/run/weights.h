/* SPDX-License-Identifier: Apache-2.0
 * The metadata of a file of weights: the model of the zoo, and how the data were prepared. It has
 * no paths and nothing that varies from run to run: equal weights make equal files. */
#ifndef RUN_WEIGHTS_H
#define RUN_WEIGHTS_H

#include <trireme.h>

#include "io/safetensors.h"

#define WEIGHTS_PAIRS 3
/* Sets the metadata of the run's weights and returns the number of pairs. The run owns the
 * texts. */
size_t weights_metadata(const tri_run *run, struct safetensors_pair pair[WEIGHTS_PAIRS]);

struct weights_about {
    char *model;    /* "resnet18:form=small,width=8"; null: the file has none */
    char *prepared; /* options of data, "mean=0.5,std=0.25" (data_about.prepared); or null */
};
/* Reads the metadata of o->load, a file or a directory of checkpoints. */
tri_status weights_about(const tri_options *o, struct weights_about *out);
void weights_about_free(struct weights_about *a);

/* Adds how a file's model differs from a graph's, for a message: "it was made with width=8". Adds
 * nothing if they agree, or one of them is not known. */
void weights_differ(const struct safetensors *file, const tri_graph *g, struct text *out);

#endif
