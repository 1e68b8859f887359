/* SPDX-License-Identifier: Apache-2.0
 * What is derived from a profile: trace.json and the tables. */
#ifndef PROFILE_DERIVE_H
#define PROFILE_DERIVE_H

#include "profile/read.h"

/* Makes the study of p, and writes them to p->folder, which may be missing. */
tri_status profile_derive(struct profile *p);

#endif
