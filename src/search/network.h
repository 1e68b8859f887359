/* SPDX-License-Identifier: Apache-2.0
 * Splits for a network and its options: of the lanes as they are, and of lanes whose losses over
 * classes are rebuilt so that the classes can be split, too. */
#ifndef SEARCH_NETWORK_H
#define SEARCH_NETWORK_H

#include "plan/passes.h"
#include "search/splits.h"

struct network_splits {
    struct text lines; /* of a file of strategies: "use NODE USE" */
    int64_t cost;      /* picoseconds of a lane */
    int64_t bound;     /* no others cost less; below 0: not known */
    bool splits[SEARCH_AXES]; /* some operator is split along the axis */
};

/* model: as the user wrote it, not changed. o: with a mesh of one axis or two, and no strategies.
 * Needs network_splits_free also after a failure; TRI_USAGE: this network is not searched, and
 * why. */
tri_status network_search(const tri_graph *model, const tri_options *o,
                          const struct target *target, int all_threads,
                          const struct split_prices *p, struct network_splits *out);
void network_splits_free(struct network_splits *s);

#endif
