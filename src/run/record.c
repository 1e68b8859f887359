/* SPDX-License-Identifier: Apache-2.0 */
#include "run/record.h"

#include <stdlib.h>
#include <string.h>

#include "run/run.h"

/* Lists the loss first. */
static int list_outputs(const tri_run *run, struct record *r) {
    int n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < run->machine->n_outputs; i++) {
            const struct run_output *o = &run->machine->output[i];
            bool loss = !strcmp(o->name, "loss");
            if ((!loss && !o->metric) || loss == pass) continue;
            r->output[n] = i;
            r->name[n++] = o->name;
        }
    return n;
}

tri_status record_open(struct record *r, const tri_run *run) {
    size_t outputs = (size_t)run_output_count(run) + 1;
    r->begin = base_seconds();
    r->every = run->options.metrics_every;
    r->output = calloc(outputs, sizeof *r->output);
    r->name = calloc(outputs, sizeof *r->name);
    r->value = calloc(outputs, sizeof *r->value);
    if (!r->output || !r->name || !r->value) return base_no_memory("the names of metrics");
    int n = list_outputs(run, r);
    r->seen = (struct observed){
        .total = tri_step_total(run), .n = n, .name = r->name, .value = r->value};
    return TRI_OK;
}

tri_status record_file(struct record *r, const char *directory, bool goes_on, int64_t done) {
    tri_status status = goes_on ? metrics_resume(&r->metrics, directory, r->seen.n, r->name)
                                : metrics_open(&r->metrics, directory, r->seen.n, r->name);
    r->metrics.every = r->every;
    if (r->metrics.through < done) r->metrics.through = done;
    return status;
}

const struct observed *record_seen(struct record *r) {
    r->seen.now = base_seconds() - r->begin;
    r->seen.aside = r->aside;
    return &r->seen;
}

void record_step(struct record *r, const tri_run *run) {
    const struct machine *m = run->machine;
    struct observed *s = &r->seen;
    s->step = tri_step_number(run);
    s->epoch = tri_epoch(run);
    s->samples = m->batch;
    s->lr = run_lr(run);
    for (int i = 0; i < s->n; i++) r->value[i] = machine_value(m, &m->output[r->output[i]]);
    if (r->metrics.file) metrics_step(&r->metrics, record_seen(r));
}

static void log_evaluation(struct record *r, const struct observed *o) {
    struct text t = {0};
    if (!r->own.run) return;
    for (int i = 0; i < o->n; i++) text_add(&t, "%s%s=%.6g", i ? " " : "", o->name[i], o->value[i]);
    log_event(&r->own.log, LOG_INFO, "evaluation", "step=%lld text=%s", (long long)o->step,
              t.data ? t.data : "");
    text_free(&t);
}

void record_evaluation(struct record *r, int64_t step, int64_t epoch, int n,
                       const char *const *name, const double *value) {
    const struct observed o = {.step = step,
                               .epoch = epoch,
                               .now = base_seconds() - r->begin,
                               .n = n,
                               .name = name,
                               .value = value};
    metrics_evaluation(&r->metrics, &o);
    log_evaluation(r, &o);
}

tri_status record_close(struct record *r) {
    tri_status status = metrics_close(&r->metrics);
    free(r->output);
    free(r->name);
    free(r->value);
    r->output = NULL;
    r->name = NULL;
    r->value = NULL;
    return status;
}
