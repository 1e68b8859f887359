/* SPDX-License-Identifier: Apache-2.0
 * The items of a profile, as its rules go through them. */
#ifndef PROFILE_RULES_ITEMS_H
#define PROFILE_RULES_ITEMS_H

#include "profile/rules.h"
#include "profile/study.h"

#define RULES_DIMS TRI_MAX_RANK

/* for (struct each e = EACH_ITEM(p); each_item(&e);): all items that have been called. */
struct each {
    const struct profile *p;
    int host, item;
    const struct profile_host *h;
    const struct profile_item *is;
    const struct tables_item *of;
    enum tables_comm comm;
    double ns, share; /* of all threads; of a step (study_share) */
};
#define EACH_ITEM(profile) {.p = (profile), .item = -1}
bool each_item(struct each *e);

/* Of the first spec in a text, as "f32[8,3]": its rank. */
int rules_spec(const char *spec, int64_t dim[RULES_DIMS], double *bytes);

/* The smallest number of lanes from `least` on that divides the batch, if that is known, and is a
 * multiple; 0: there is none. */
int64_t rules_lanes(const struct figures *f, double least, int64_t multiple);

#endif
