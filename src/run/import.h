/* SPDX-License-Identifier: Apache-2.0
 * Which tensor of a file is which of the network's, also where others have named them. */
#ifndef RUN_IMPORT_H
#define RUN_IMPORT_H

#include "run/run.h"
#include "io/safetensors.h"

struct import {
    const struct safetensors_entry **of; /* by entry of the store: the file's; null: it is not there, or has another shape */
    size_t taken;                        /* of these, how many there are */
    size_t n_wrong;    /* differences: tensors that are missing, unexpected, of another shape */
    struct text wrong;  /* the first of them */
    struct text reason; /* how the file's model differs from the network, "it was made with width=8; " */
};

/* optimizer: the file has what that keeps, else the model's parameters and statistics. */
tri_status import_match(const struct safetensors *file, const tri_run *run, bool optimizer, struct import *out);
void import_free(struct import *i);

#endif
