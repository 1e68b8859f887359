/* SPDX-License-Identifier: Apache-2.0
 * What a file of weights says besides its tensors: the model of the zoo, and how the data were prepared.
 * No paths, and nothing that varies from run to run: equal weights make equal files. */
#ifndef RUN_WEIGHTS_H
#define RUN_WEIGHTS_H

#include <trireme.h>

#include "io/safetensors.h"

#define WEIGHTS_PAIRS 3
/* The metadata of the run's weights; returns how many pairs. The texts are the run's. */
size_t weights_metadata(const tri_run *run, struct safetensors_pair pair[WEIGHTS_PAIRS]);

struct weights_about {
    char *model;    /* "resnet18:form=small,width=8"; null: the file does not say */
    char *prepared; /* options of data, "mean=0.5,std=0.25" (data_about.prepared); null likewise */
};
/* What o->load says, a file or a directory of checkpoints. */
tri_status weights_about(const tri_options *o, struct weights_about *out);
void weights_about_free(struct weights_about *a);

/* How the model of a file differs from that of a graph, for a message: "it was made with width=8". Adds
 * nothing where they agree, or one of them is not known. */
void weights_differ(const struct safetensors *file, const tri_graph *g, struct text *out);

#endif
