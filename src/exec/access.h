/* SPDX-License-Identifier: Apache-2.0
 * Files and hashes of the store, for more than the public calls. */
#ifndef EXEC_ACCESS_H
#define EXEC_ACCESS_H

#include "exec/run.h"
#include "io/sha256.h"

/* As tri_load; optimizer: what that keeps from step to step instead of the model. */
tri_status access_load(tri_run *run, const char *path, bool optimizer);

/* What tri_hash gives, of the store's entries one after the other, in its order. */
struct hashing {
    struct sha256 weights, state;
};
void hashing_begin(struct hashing *h);
void hashing_add(struct hashing *h, const struct stored *e, const void *host);
void hashing_end(struct hashing *h, int64_t done, char weights[65], char state[65]);

#endif
