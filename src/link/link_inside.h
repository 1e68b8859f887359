/* SPDX-License-Identifier: Apache-2.0
 * What all rows of links have: the begin of each row's own struct. */
#ifndef LINK_LINK_INSIDE_H
#define LINK_LINK_INSIDE_H

#include "link/link.h"

struct link {
    const struct link_row *row;
    struct link_options o;
    int fd;
    char address[LINK_ADDRESS];
    struct link_event *event; /* from `first` on: not yet told */
    size_t first, n_events, capacity;
    bool failed; /* an event found no memory, and went here: */
    struct link_event lost;
};

/* Adds an event, which is the caller's to fill; in any case not null. */
struct link_event *link_tell(struct link *l, enum link_what what, int host);
/* Forgets events of a session that the user has ended. */
void link_untell(struct link *l, int host);
/* The path of the shared object of the row ucx. */
tri_status link_ucx_find(char path[], size_t bytes);

#endif
