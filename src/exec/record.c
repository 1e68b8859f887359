/* SPDX-License-Identifier: Apache-2.0 */
#include "exec/record.h"

#include <stdlib.h>
#include <string.h>

#include "exec/run.h"

/* The loss first. */
static int list_names(const tri_run *run, const char **name) {
    int n = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < run_output_count(run); i++) {
            bool loss = !strcmp(run_output_name(run, i), "loss");
            if ((loss || run_output_is_metric(run, i)) && loss == !pass)
                name[n++] = run_output_name(run, i);
        }
    return n;
}

tri_status record_open(struct record *r, const tri_run *run, const char *directory, bool quiet) {
    size_t outputs = (size_t)run_output_count(run) + 1;
    r->begin = base_seconds();
    r->name = calloc(outputs, sizeof *r->name);
    r->value = calloc(outputs, sizeof *r->value);
    if (!r->name || !r->value) return base_no_memory("the names of metrics");
    int n = list_names(run, r->name);
    r->seen = (struct observed){
        .total = tri_step_total(run), .n = n, .name = r->name, .value = r->value};
    return metrics_open(&r->metrics, directory, n, r->name, quiet ? NULL : stderr);
}

void record_step(struct record *r, const tri_run *run) {
    struct observed *s = &r->seen;
    s->step = tri_step_number(run);
    s->epoch = tri_epoch(run);
    s->lr = run_lr(run);
    s->now = base_seconds() - r->begin;
    for (int i = 0; i < s->n; i++) r->value[i] = tri_value(run, r->name[i]);
    metrics_step(&r->metrics, s);
}

tri_status record_close(struct record *r) {
    tri_status status = metrics_close(&r->metrics);
    free(r->name);
    free(r->value);
    r->name = NULL;
    r->value = NULL;
    return status;
}
