/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PROFILE_H
#define CLI_PROFILE_H

#include "base/base.h"

/* Makes trace.json and the tables of a profile, the latest if name is null. Adds what there is. */
tri_status profile_make_tables(const char *directory, const char *name, struct text *out);
/* The name of the profile that was made last of those that begin at this step. */
void profile_last_of(const char *directory, int64_t first, char name[64]);

#endif
