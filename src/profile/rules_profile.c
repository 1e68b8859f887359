/* SPDX-License-Identifier: Apache-2.0
 * Rules that need a profile. */
#include "profile/rules.h"

#define STUB(name) \
    bool rule_##name(const struct figures *f, struct finding *found) { return f && found && false; }
STUB(bubble)
STUB(uneven_stages)
STUB(seats)
STUB(slow_split)
STUB(low_rate)
STUB(unfused)
STUB(small_sums)
STUB(small_lanes)
