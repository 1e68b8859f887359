/* SPDX-License-Identifier: Apache-2.0 */
#include "run/diverge.h"

#include <math.h>
#include <stdio.h>

#include "run/checkpointer.h"
#include "run/executor.h"

static tri_status skipped(int64_t done, int skips) {
    return base_fail(TRI_FAILED, "step %lld: the loss or its gradients were not finite in %d "
                     "consecutive steps, whose updates were skipped (--loss-scale)",
                     (long long)done, skips);
}

tri_status diverge_check(const tri_run *run, int64_t done, int skips) {
    const struct checkpointer *c = run->checkpointer;
    if (!run->machine->finite.stops) return TRI_OK;
    if (skips >= FINITE_SKIPS) return skipped(done, skips);
    if (!atomic_load(&c->not_finite)) return TRI_OK;
    return base_fail(TRI_FAILED, "the checkpoint of step %lld was not written: %s",
                     (long long)c->state.step, c->error);
}

/* Later reporters know it too. */
static bool begins(tri_run *run, bool now) {
    struct crew_shown *shown = run->executor->shown(run);
    bool before = shown ? atomic_exchange(&shown->not_finite, now) : run->not_finite;
    run->not_finite = now;
    return now && !before;
}

void diverge_warn(tri_run *run) {
    const struct machine *m = run->machine;
    if (m->finite.stops) return;
    const struct run_output *loss = m->finite.condition < 0 ? machine_output(m, "loss") : NULL;
    bool scalar = loss && !loss->spec.shape.rank, skips = run->skips >= FINITE_SKIPS;
    double is = scalar ? machine_value(m, loss) : 0;
    if (!begins(run, skips || !isfinite(is))) return;
    if (skips) skipped(run->done, run->skips);
    if (!skips)
        base_fail(TRI_FAILED, "step %lld: the loss is %s", (long long)run->done, finite_name(is));
    fprintf(stderr, "trireme: %s; the run continues (--on-nan warn)\n", tri_message());
}

/* The first element that is not finite; -1: none. */
static int64_t first_bad(const tri_run *run, const struct stored *e, bool *nan) {
    _Alignas(64) char host[4096];
    const int64_t n = tri_shape_count(&e->spec.shape);
    const size_t size = n ? base_spec_bytes(&e->spec) / (size_t)n : 1;
    const int64_t most = (int64_t)(sizeof host / size);
    for (int64_t from = 0; from < n && type_is_float(e->spec.type); from += most) {
        int64_t count = n - from < most ? n - from : most;
        dev_copy_out(run->store.dev, host, (const char *)e->memory + (size_t)from * size,
                     (size_t)count * size);
        int64_t at = finite_first(e->spec.type, host, count, nan);
        if (at >= 0) return from + at;
    }
    return -1;
}

tri_status diverge_end(const tri_run *run) {
    const bool stops = run->machine->finite.stops;
    if (run->options.forward || run->done <= run->checkpointer->resumed ||
        !machine_output(run->executable, "loss"))
        return TRI_OK;
    for (size_t i = 0; i < run->store.n; i++) {
        const struct stored *e = &run->store.entry[i];
        bool nan;
        int64_t at = e->param ? first_bad(run, e, &nan) : -1;
        if (at < 0) continue;
        base_fail(TRI_FAILED, "step %lld, the last, made parameter %s %s at element %lld",
                  (long long)run->done, e->name, nan ? "nan" : "infinite", (long long)at);
        if (stops) return TRI_FAILED;
        fprintf(stderr, "trireme: %s (--on-nan warn)\n", tri_message());
        return TRI_OK;
    }
    return TRI_OK;
}
