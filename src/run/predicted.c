/* SPDX-License-Identifier: Apache-2.0 */
#include "run/predicted.h"

#include <math.h>
#include <stdio.h>

#include "run/executor.h"
#include "run/price.h"
#include "run/profile.h"
#include "run/record.h"

static void keep_error(const tri_run *run, double ratio) {
    struct prices p = {0};
    struct text path = {0};
    if (!(ratio > 1e-3 && ratio < 1e3)) return; /* what the plan says is no prediction of ours */
    tri_status status = prices_open(&p, run->executor->cores(run), &path);
    const char *name = status ? NULL : price_network(&p.arena, run, PRICE_ERROR);
    if (name && path.size && !prices_add(&p, &(struct price){name, 1, ratio, PREDICTED_STEPS}))
        prices_keep(&p, &path);
    prices_free(&p);
    text_free(&path);
}

/* Options have changed what the prediction is of. */
static bool is_placed_otherwise(const tri_run *run) {
    struct text differs = {0};
    const bool other = run->own_plan.name && plan_differ(run->plan, &run->own_plan, PLAN_LANES,
                                                         PLAN_PREDICTED, &differs);
    text_free(&differs);
    return other || plan_is_edited(run->plan, PLAN_PLACEMENT);
}

void predicted_step(tri_run *run) {
    struct record *r = run->record;
    if (!run->plan || r->counted > PREDICTED_STEPS) return;
    struct crew_shown *shown = run->executor->shown(run);
    const double predicted = 1e-9 * (double)plan_number(run->plan, PLAN_PREDICTED);
    const double now = base_seconds() - r->aside;
    if (!(predicted > 0) || (!r->counted && is_placed_otherwise(run))) {
        r->counted = PREDICTED_STEPS + 1; /* there is nothing to tell */
        return;
    }
    if (r->counted) r->took[r->counted - 1] = now - r->since;
    r->since = now;
    if (r->counted++ < PREDICTED_STEPS || (shown && atomic_exchange(&shown->predicted, 1))) return;
    const double took = pace_quantile(r->took, PREDICTED_STEPS, 0.5), off = predicted / took - 1;
    if (!run->options.quiet)
        fprintf(stderr, "trireme: a step takes %.4g ms; the plan said %.4g, %.1f %% too %s\n",
                1e3 * took, 1e3 * predicted, 100 * fabs(off), off < 0 ? "little" : "much");
    keep_error(run, took / predicted);
}
