/* SPDX-License-Identifier: Apache-2.0 */
#include "run/predicted.h"

#include <math.h>
#include <stdio.h>

#include "run/price.h"
#include "run/record.h"

#define SETTLE_STEPS 3 /* these do not count */
#define TOLD_STEPS 10

static void keep_error(const tri_run *run, double ratio) {
    struct prices p = {0};
    struct text path = {0};
    tri_status status = prices_open(&p, &path);
    const char *name = status ? NULL : price_network(&p.arena, run, PRICE_ERROR);
    if (name && path.size && !prices_add(&p, &(struct price){name, 1, ratio, TOLD_STEPS}))
        prices_keep(&p, &path);
    prices_free(&p);
    text_free(&path);
}

void predicted_step(tri_run *run) {
    struct record *r = run->record;
    const double predicted = run->plan ? 1e-6 * (double)plan_number(run->plan, PLAN_PREDICTED) : 0;
    const double now = base_seconds();
    if (!(predicted > 0) || r->counted > SETTLE_STEPS + TOLD_STEPS) return;
    if (r->counted++ == SETTLE_STEPS) r->since = now - r->aside;
    if (r->counted <= SETTLE_STEPS + TOLD_STEPS) return;
    const double took = (now - r->aside - r->since) / TOLD_STEPS;
    const double off = predicted / took - 1;
    if (!run->options.quiet)
        fprintf(stderr, "trireme: a step takes %.4g ms; the plan said %.4g, %.1f %% too %s\n",
                1e3 * took, 1e3 * predicted, 100 * fabs(off), off < 0 ? "little" : "much");
    keep_error(run, took / predicted);
}
