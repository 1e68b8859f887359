/* SPDX-License-Identifier: Apache-2.0
 * The hosts of a run, as --hosts names them: "h0,h1:4", or a file with a line for each, or the rank
 * table in JSON that MindSpore users have. */
#ifndef LAUNCH_HOST_LIST_H
#define LAUNCH_HOST_LIST_H

#include "base/base.h"
#include "crew/hosts.h"

struct host_list {
    int n;
    struct named_host {
        char name[HOSTS_NAME];
        int workers; /* 0: as -n says */
    } host[HOSTS_MOST];
};

/* text: the names, or the path of a file, which has a slash. In a file, # begins a comment. */
tri_status host_list_read(const char *text, struct host_list *out);
/* Whether the name means this machine. */
bool host_list_is_here(const char *name);

#endif
