/* SPDX-License-Identifier: Apache-2.0
 * The fastest path of a bucket, by a small model of its schedule. */
#ifndef PLAN_PATH_CHOICE_H
#define PLAN_PATH_CHOICE_H

#include "plan/transfer.h"

/* The slowest link, as `bench links` measures it. */
struct path_link {
    double latency;   /* seconds of a small message and its answer */
    double bandwidth; /* bytes per second, in each direction at the same time */
    double cpu;       /* seconds of processor time of both ends, per GB */
};

/* What a bucket of so many bytes takes by the path, if nothing else moves:
 *
 *   rounds * latency / 2 + the larger one of
 *     the sum over all rounds of what the busiest host sends or receives in each / bandwidth
 *     what the busiest host sends and receives in all * cpu / 2
 *
 * Rounds and bytes are counted in the schedule, executed in unit time. *seconds is negative if the
 * hosts or the tree do not allow the path. share: its hosts, and which of them are alive. */
tri_status path_seconds(const struct lane_tree *tree, const struct transfer_share *share,
                        enum path path, const struct path_link *link, double bytes,
                        double *seconds);
/* The path that takes least, the first one among equals; seconds: of each. The same on all
 * machines. */
tri_status path_choose(const struct lane_tree *tree, const struct transfer_share *share,
                       const struct path_link *link, double bytes, double seconds[PATHS],
                       enum path *out);

#endif
