/* SPDX-License-Identifier: Apache-2.0
 * Matches the tensors of a file to those of the network, also if other programs named them. */
#ifndef RUN_IMPORT_H
#define RUN_IMPORT_H

#include "io/safetensors.h"
#include "run/run.h"

struct import {
    bool exact, fresh;
    /* By entry of the store: the file's entry; null: it is missing, or has another shape. */
    const struct safetensors_entry **of;
    size_t taken;      /* how many of them are not null */
    size_t n_wrong;    /* differences: tensors that are missing, unexpected, of another shape */
    struct text wrong;  /* the first of them; all, if the match is exact */
    struct text reason; /* how the file's model differs: "it was made with width=8; " */
};

/* optimizer: the file has the state of the optimizer, not the parameters and states of the model.
 * exact: names and types must be the same, as in the network's own checkpoints. fresh: estimates
 * (plan/estimates.h) of the run and of the file are left out. */
tri_status import_match(const struct safetensors *file, const tri_run *run, bool optimizer,
                        bool exact, bool fresh, struct import *out);
void import_free(struct import *i);

#endif
