/* SPDX-License-Identifier: Apache-2.0
 * The JSON files of a profile: items.jsonl and clocks.json. */
#ifndef PROFILE_ITEMS_H
#define PROFILE_ITEMS_H

#include "profile/read.h"

/* Reads those of a host. They may be missing. */
tri_status items_read(struct profile *p, int host, const char *folder);

#endif
