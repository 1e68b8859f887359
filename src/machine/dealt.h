/* SPDX-License-Identifier: Apache-2.0
 * How the lanes of a phase are dealt to several hosts, and by which paths their sums move. */
#ifndef MACHINE_DEALT_H
#define MACHINE_DEALT_H

#include "crew/hosts.h"
#include "machine/machine.h"
#include "plan/path_choice.h"

struct dealt {
    const struct tree *tree;
    int phase, hosts, begin[HOSTS_MOST + 1];
    struct path_price price[PATHS];
};

/* To the hosts of the machine, by their weights. */
tri_status dealt_make(const struct machine *m, int phase, struct dealt *d);
/* Whether hosts send sums of the bucket. */
static inline bool dealt_moves(const struct dealt *d, int bucket) {
    return d->tree->bucket[bucket].n_parts > 0;
}
/* Bytes of a range of blocks as they are sent; of packed ones about, as it follows from the
 * numbers. */
double dealt_range_bytes(const struct wire_map *m, uint64_t first, uint64_t n);
double dealt_bytes(const struct dealt *d, int bucket);
/* By which path a bucket goes, as a ferry decides (ferry/schedule.c), which takes packed buckets
 * for larger. asked: as option --path has it. */
enum path dealt_path(const struct dealt *d, int asked, const struct path_link *link, int bucket);
/* What a bucket takes by a path, if nothing else moves. Negative: it is not known, or the path is
 * not allowed. */
double dealt_seconds(const struct dealt *d, const struct path_link *link, int bucket,
                     enum path path);

#endif
