/* SPDX-License-Identifier: Apache-2.0
 * What `trireme bench links` has measured between hosts, and the file that keeps it: comments, and
 * lines "link HOST HOST LATENCY BANDWIDTH CPU". */
#ifndef LAUNCH_LINKS_H
#define LAUNCH_LINKS_H

#include "base/base.h"
#include "crew/hosts.h"
#include "launch/host_list.h"
#include "plan/path_choice.h"

/* Said where a path would be chosen by links that are not known. */
#define LINKS_UNKNOWN "every host sends its sums to every other (--path exchange): the links of " \
    "these hosts have not been measured, which `trireme bench links` does"

struct link_speed {
    char from[HOSTS_NAME], to[HOSTS_NAME];
    double latency;   /* seconds of a small message and its answer, the median */
    double bandwidth; /* bytes per second */
    double cpu;       /* seconds of processor time of both ends, per GB */
};

/* The file in the user's cache folder, whose folders are made; false: there is no such folder. */
bool links_file(struct text *path);
tri_status links_write(const char *path, const struct link_speed *link, size_t n);
/* *link is to be freed. A damaged line fails, and is named. */
tri_status links_read(const char *path, struct link_speed **link, size_t *n);
/* The worst of each that the user's file has: of the links among these hosts, or of all (null).
 * Bandwidth 0: there is no file, or it lacks a pair of them. */
tri_status links_slowest(const struct host_list *hosts, struct path_link *out);

#endif
