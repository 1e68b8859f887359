/* SPDX-License-Identifier: Apache-2.0
 * Files and hashes of the store, for more than the public calls. */
#ifndef EXEC_ACCESS_H
#define EXEC_ACCESS_H

#include "exec/run.h"

/* As tri_load; optimizer: what that keeps from step to step instead of the model. */
tri_status access_load(tri_run *run, const char *path, bool optimizer);

/* The store's entries in its order, and what tri_hash makes of them. */
struct hashed_entry {
    const void *data;
    size_t bytes;
    bool param;
};
void hash_entries(const struct hashed_entry *e, size_t n, int64_t done, char weights[65], char state[65]);

#endif
