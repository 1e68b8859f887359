/* SPDX-License-Identifier: Apache-2.0
 * One archive of `trireme pack`: NAME, and beside it NAME.sha256 in the form that sha256sum -c reads. Both are
 * written under other names and renamed, the second when the first has been read back and found to be what was
 * written. An archive that has its second file, of the same samples, and its hash is not written again. */
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
    /* In the archives, written now or before; left out of them; the archives' size. */
    atomic_llong samples, bad, bytes;
};

/* file: room for the pictures, one behind the other. *made: it was written; else it was there. */
tri_status pack_shard(struct pack *p, int64_t shard, struct data_file *file, bool *made);

#endif
