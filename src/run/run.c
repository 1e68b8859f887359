/* SPDX-License-Identifier: Apache-2.0
 * Access to a run, for its own parts and for programs. */
#include "run/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

tri_status run_fail(tri_run *run, tri_status status) {
    if (run->status || !status) return run->status;
    run->status = status;
    run->message = strdup(tri_message());
    return status;
}

/* ---- scalars ---- */

void run_set_scalars(tri_run *run, int64_t step) {
    run->rate = isnan(run->set_rate)
                    ? schedule_rate(&run->schedule, run->options.optimizer.lr, step, run->total)
                    : run->set_rate;
    if (run->lr) run->lr->value = (float)run->rate;
    if (run->number) run->number->value = (float)step;
    if (run->samples)
        run->samples->value = (float)(run->data ? sampler_counted(&run->sampler, step - 1)
                                                : run_batch(run));
}

/* Replaces the rate of the schedule; NaN returns to it. */
static tri_status set_rate(tri_run *run, double rate) {
    if (rate < 0 || isinf(rate))
        return base_fail(TRI_USAGE, "tri_set_scalar: \"lr\" is %g; it must be finite and at least "
                         "0, or NaN for the schedule", rate);
    run->set_rate = rate;
    return TRI_OK;
}

static bool is_own(const char *name) {
    return !strcmp(name, "step") || !strcmp(name, "lanes") || !strcmp(name, "samples");
}

static tri_status set_scalar(tri_run *run, const char *name, double value) {
    struct run_scalar *scalar = machine_scalar(run->executable, name);
    if (is_own(name))
        return base_fail(TRI_USAGE, "tri_set_scalar: the run itself sets \"%s\"", name);
    if (!scalar)
        return base_fail(TRI_USAGE, "tri_set_scalar: the network has no tri_scalar \"%s\"", name);
    if (scalar == run->lr && !run->options.forward) return set_rate(run, value);
    scalar->value = (float)value;
    return TRI_OK;
}

void tri_set_scalar(tri_run *run, const char *name, double value) {
    if (run) run_fail(run, set_scalar(run, name ? name : "", value));
}

/* ---- getters ---- */

tri_status tri_run_status(const tri_run *run) {
    if (!run) return TRI_FAILED;
    return run->status ? base_fail(run->status, "%s", run->message ? run->message : "") : TRI_OK;
}

int64_t tri_step_number(const tri_run *run) { return run ? run->done : 0; }
int64_t tri_step_total(const tri_run *run) { return run ? run->total : 0; }
int64_t tri_epoch(const tri_run *run) { return run ? run->epoch : 0; }

int run_output_count(const tri_run *run) { return run->machine->n_outputs; }
const char *run_output_name(const tri_run *run, int i) { return run->machine->output[i].name; }
bool run_output_is_scalar(const tri_run *run, int i) {
    return run->machine->output[i].spec.shape.rank == 0;
}
bool run_epoch_ended(const tri_run *run) {
    int64_t steps;
    return run->data && !sampler_steps(&run->sampler, &steps) && run->done % steps == 0;
}

int64_t run_lanes(const tri_run *run) { return run->executable->lanes; }
int run_threads(const tri_run *run) { return team_threads(run->team); }
int64_t run_batch(const tri_run *run) { return run->executable->batch; }
double run_lr(const tri_run *run) { return run->rate; }

int64_t run_parameter_elements(const tri_run *run) {
    int64_t n = 0;
    for (size_t i = 0; i < run->store.n; i++)
        if (run->store.entry[i].param) n += tri_shape_count(&run->store.entry[i].spec.shape);
    return n;
}

void run_device_text(const tri_run *run, char *text, size_t bytes) {
    char what[128];
    run->dev->kind->describe(run->dev, math_is_native(&run->options), what, sizeof what);
    snprintf(text, bytes, "%s (%s)", run->dev->kind->name, what);
}
