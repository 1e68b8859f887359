/* SPDX-License-Identifier: Apache-2.0 */
#include "run/kinds.h"

#include <string.h>

/* Of a core. */
#define USUAL_FLOPS 5e10
#define USUAL_BYTES 1e10
#define LAUNCH 1e-6 /* seconds, of any unit */

double kinds_usual(double flops, double bytes) {
    return LAUNCH + flops / USUAL_FLOPS + bytes / USUAL_BYTES;
}

static tri_status add(struct price_kinds *k, const char *kind, double seconds, double usual) {
    const struct price *before = prices_find(&k->sum, kind, 1);
    const struct price now = {kind, 1, (before ? before->seconds : 0) + seconds,
                              (before ? before->calls : 0) + (int64_t)(1e12 * usual)};
    return prices_add(&k->sum, &now);
}

tri_status kinds_add(struct price_kinds *k, const char *kind, double seconds, double usual) {
    tri_status status = add(k, kind, seconds, usual);
    return status ? status : add(k, "", seconds, usual);
}

double kinds_rate(const struct price_kinds *k, const char *kind, double usual) {
    const struct price *is = prices_find(&k->sum, kind, 1);
    if (!is) is = prices_find(&k->sum, "", 1);
    return is ? usual * is->seconds / (1e-12 * (double)is->calls) : usual;
}

/* As units that begin with it, if none has it alone. */
double kinds_operator(const struct price_kinds *k, const char *op, double flops, double bytes) {
    const size_t n = strlen(op);
    const char *kind = op;
    for (size_t i = 0; i < k->sum.n && !prices_find(&k->sum, op, 1); i++)
        if (!strncmp(k->sum.price[i].unit, op, n) && k->sum.price[i].unit[n] == '+')
            kind = k->sum.price[i].unit;
    return kinds_rate(k, kind, kinds_usual(flops, bytes));
}

double kinds_move(const struct price_kinds *k, int rounds, double bytes) {
    return rounds * KINDS_WAIT + kinds_rate(k, "", bytes / USUAL_BYTES);
}

void kinds_free(struct price_kinds *k) { prices_free(&k->sum); }
