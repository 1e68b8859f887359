/* SPDX-License-Identifier: Apache-2.0
 * Files and hashes of the store, for the public calls and for checkpoints. */
#ifndef RUN_ACCESS_H
#define RUN_ACCESS_H

#include "io/safetensors.h"
#include "io/sha256.h"
#include "run/run.h"

/* Takes the values of a checkpoint's file, and closes it. optimizer: it has the state of the
 * optimizer, not the model. If a tensor does not fit or is missing, adds the first difference to
 * wrong; takes and lists what fits if the run has `changed`, else takes nothing. path: for
 * messages. fresh: see import_match. */
tri_status access_resume(tri_run *run, struct safetensors *file, const char *path, bool optimizer,
                         bool fresh, struct text *wrong);

/* Computes what tri_hash does, from the store's entries one by one, in the store's order. */
struct hashing {
    struct sha256 weights, state;
};
void hashing_begin(struct hashing *h);
void hashing_add(struct hashing *h, const struct stored *e, const void *host, size_t bytes);
void hashing_end(struct hashing *h, int64_t done, char weights[65], char state[65]);

#endif
