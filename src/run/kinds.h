/* SPDX-License-Identifier: Apache-2.0
 * What units without a price take, and operators: by the operators of a unit, what those with a
 * price take, compared with usual rates. */
#ifndef RUN_KINDS_H
#define RUN_KINDS_H

#include "price/prices.h"

struct price_kinds {
    /* By operators, "matmul+add", and "" for all: the seconds of all units that are known; and in
     * `calls`, the picoseconds that they would take at usual rates. */
    struct prices sum;
};

/* Seconds from what a member of a replica publishes until another that waits for it goes on. */
#define KINDS_WAIT 4e-6

/* Seconds at usual rates, of which only the ratio counts where any unit is known. */
double kinds_usual(double flops, double bytes);
tri_status kinds_add(struct price_kinds *k, const char *kind, double seconds, double usual);
double kinds_rate(const struct price_kinds *k, const char *kind, double usual);
/* Seconds of an operator, and of a move between members of a replica in so many rounds. */
double kinds_operator(const struct price_kinds *k, const char *op, double flops, double bytes);
double kinds_move(const struct price_kinds *k, int rounds, double bytes);
void kinds_free(struct price_kinds *k);

#endif
