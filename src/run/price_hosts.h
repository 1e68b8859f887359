/* SPDX-License-Identifier: Apache-2.0
 * What several hosts add to the price of a step: what their sums move, by the links that `trireme
 * bench links` has measured. */
#ifndef RUN_PRICE_HOSTS_H
#define RUN_PRICE_HOSTS_H

#include "price/prices.h"
#include "price/step.h"
#include "machine/dealt.h"

struct price_hosts {
    struct dealt dealt[2]; /* by phase */
    int most;              /* lanes of the host that has most */
    int operands[2];       /* by phase: sums that hosts make of their lanes */
};

/* Fails if the links are not known of a machine whose steps several hosts share. */
tri_status price_hosts_find(const struct machine *m, const struct prices *p,
                            struct price_hosts *out);
void price_hosts_step(const struct price_hosts *h, const struct machine *m, const struct prices *p,
                      struct step_hosts *to);
/* to: with its buckets and sums. Adds what they move; false: out of memory. */
bool price_hosts_phase(const struct price_hosts *h, const struct prices *p, int phase,
                       struct arena *a, struct step_lanes *to);

#endif
