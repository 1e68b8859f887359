/* SPDX-License-Identifier: Apache-2.0
 * One archive of `trireme pack`: NAME, and NAME.sha256, which sha256sum -c reads. Both are written
 * under other names and renamed; NAME.sha256 follows after NAME has been read back and compared. An
 * archive is not written again if its NAME.sha256 lists the same samples and its hash matches. */
#ifndef CLI_PACK_SHARD_H
#define CLI_PACK_SHARD_H

#include <stdatomic.h>

#include "data/pictures.h"

struct pack {
    struct tri_data *data;
    const uint64_t *order; /* [size]: the sample at each place */
    const int64_t *begin;  /* [shards + 1]: the first place of each archive */
    int64_t shards;
    struct text *name; /* [shards] */
    int64_t max_bad;
    /* Over all archives, old and new: samples in them, files left out, size. */
    atomic_llong samples, bad, bytes;
};

/* Writes the archive unless it exists; *made: it was written. file: a buffer for pictures. */
tri_status pack_shard(struct pack *p, int64_t shard, struct data_file *file, bool *made);

#endif
