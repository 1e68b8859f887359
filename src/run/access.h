/* SPDX-License-Identifier: Apache-2.0
 * Files and hashes of the store, for more than the public calls. */
#ifndef RUN_ACCESS_H
#define RUN_ACCESS_H

#include "run/run.h"
#include "io/sha256.h"

/* What tri_load does with an open file, which it closes; optimizer: what that keeps from step to step instead of
 * the model. `path` stands in messages. */
tri_status access_take(tri_run *run, struct safetensors *file, const char *path, bool optimizer);
/* Whether all of it fits, and nothing is missing. */
tri_status access_fits(const tri_run *run, const struct safetensors *file, bool optimizer, bool *fits);

/* What tri_hash gives, of the store's entries one after the other, in its order. */
struct hashing {
    struct sha256 weights, state;
};
void hashing_begin(struct hashing *h);
void hashing_add(struct hashing *h, const struct stored *e, const void *host);
void hashing_end(struct hashing *h, int64_t done, char weights[65], char state[65]);

#endif
