/* SPDX-License-Identifier: Apache-2.0
 * What `trireme bench links` has measured between hosts, and the file that keeps it: comments, and
 * lines "link HOST HOST LATENCY BANDWIDTH CPU". */
#ifndef LAUNCH_LINKS_H
#define LAUNCH_LINKS_H

#include "base/base.h"
#include "crew/hosts.h"

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

#endif
