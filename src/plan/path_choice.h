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

/* What is counted in the schedule of a path, executed in unit time; the same for all buckets. */
struct path_price {
    int chunks;  /* of a bucket; 0: the hosts or the tree do not allow the path */
    int rounds;
    int busiest; /* chunks: the sum over all rounds of what the busiest host sends or receives */
    int most;    /* chunks that the busiest host sends and receives in all */
};

/* share: the hosts, and which of them are alive. */
tri_status path_prices(const struct lane_tree *tree, const struct transfer_share *share,
                       struct path_price price[PATHS]);
/* What a bucket of so many bytes takes by a path, if nothing else moves:
 *
 *   rounds * latency / 2 + the larger one of
 *     busiest chunks / bandwidth
 *     most chunks * cpu / 2
 *
 * Negative: the path is not allowed. */
double path_seconds(const struct path_price *p, const struct path_link *link, double bytes);
/* The path that takes least, the first one among equals. The same on all machines. */
enum path path_fastest(const struct path_price price[PATHS], const struct path_link *link,
                       double bytes);
/* The path that was asked for, as option --path has it: if hosts and tree do not allow it, or the
 * fastest is wanted and the bandwidth is 0, it is the exchange. */
enum path path_taken(const struct path_price price[PATHS], int asked, const struct path_link *link,
                     double bytes);
/* Into how many chunks each chunk of a path is cut, over so many hosts, of a bucket of so many
 * bytes. */
int path_multiple(double bytes, int hosts);

#endif
