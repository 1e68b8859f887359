/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/train_loop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/data.h"
#include "exec/run.h"
#include "observe/metrics.h"
#include "observe/progress.h"

struct loop {
    tri_run *run;
    const tri_callbacks *callbacks;
    double begin;
    struct observed seen;
    const char **name;
    double *value;
    struct progress progress;
    struct metrics metrics;
    bool quiet;
};

const char **train_loop_names(const tri_run *run, int *n) {
    int outputs = run_output_count(run);
    const char **name = calloc((size_t)outputs + 1, sizeof *name);
    *n = 0;
    if (!name) {
        base_no_memory("the names of metrics");
        return NULL;
    }
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < outputs; i++) {
            bool loss = !strcmp(run_output_name(run, i), "loss");
            if ((loss || run_output_is_metric(run, i)) && loss == !pass)
                name[(*n)++] = run_output_name(run, i);
        }
    return name;
}

static void begin_progress(struct loop *l, const char *model) {
    char device[256];
    run_device_text(l->run, device, sizeof device);
    const struct progress_head head = {
        .model = model,
        .device = device,
        .data = l->run->data->name,
        .parameters = run_parameter_elements(l->run),
        .lanes = run_lanes(l->run),
        .batch = run_batch(l->run),
        .threads = 1,
    };
    progress_begin(&l->progress, &head);
}

static tri_status begin(struct loop *l, const tri_options *o, const char *model) {
    int n;
    l->name = train_loop_names(l->run, &n);
    if (!l->name) return TRI_FAILED;
    l->value = calloc((size_t)n + 1, sizeof *l->value);
    if (!l->value) return base_no_memory("the values of metrics");
    l->seen = (struct observed){
        .total = tri_step_total(l->run), .n = n, .name = l->name, .value = l->value};
    FILE *people = o->quiet ? NULL : stderr;
    tri_status status = metrics_open(&l->metrics, o->out, n, l->name, people);
    if (status || !people) return status;
    status = progress_open(&l->progress, people, isatty(fileno(people)), run_batch(l->run), n);
    if (!status) begin_progress(l, model);
    return status;
}

/* Whether the step just done is the last of its epoch. */
static bool epoch_ended(const struct loop *l) {
    int64_t steps;
    return !sampler_steps(&l->run->sampler, &steps) && l->seen.step % steps == 0;
}

/* Whether to go on. */
static bool after_step(struct loop *l) {
    const tri_callbacks *c = l->callbacks;
    struct observed *s = &l->seen;
    s->step = tri_step_number(l->run);
    s->epoch = tri_epoch(l->run);
    s->lr = run_lr(l->run);
    s->now = base_seconds() - l->begin;
    for (int i = 0; i < s->n; i++) l->value[i] = tri_value(l->run, l->name[i]);
    metrics_step(&l->metrics, s);
    if (!l->quiet) progress_step(&l->progress, s);
    if (!c) return true;
    if (c->step && c->step(l->run, c->user)) return false;
    return !(c->epoch && epoch_ended(l) && c->epoch(l->run, c->user));
}

#define DONE_TEXT 512

/* The last line, which programs read. */
static tri_status write_done(const struct loop *l, char line[DONE_TEXT]) {
    char weights[65], state[65];
    tri_hash(l->run, weights, state);
    if (!*weights || !*state) return base_no_memory("the hash of the weights");
    snprintf(line, DONE_TEXT, "done steps=%lld loss=%.9g weights=sha256:%s state=sha256:%s "
             "seconds=%.3f\n", (long long)tri_step_number(l->run), tri_value(l->run, "loss"),
             weights, state, base_seconds() - l->begin);
    return TRI_OK;
}

static tri_status print_done(const char *line) {
    errno = 0;
    if (fputs(line, stdout) >= 0 && !fflush(stdout)) return TRI_OK;
    return base_fail(TRI_FAILED, "cannot write the last line to stdout: %s", strerror(errno));
}

tri_status train_loop(tri_graph *g, const tri_options *o, const tri_callbacks *callbacks,
                      const char *model) {
    struct loop l = {.callbacks = callbacks, .quiet = o->quiet, .begin = base_seconds()};
    l.run = tri_open(g, o);
    if (!l.run) return tri_close(NULL);
    tri_status status = begin(&l, o, model);
    if (status) run_fail(l.run, status);
    while (!status && tri_step(l.run) && after_step(&l)) continue;
    if (l.progress.to) progress_close(&l.progress);
    char line[DONE_TEXT] = "";
    if (!tri_run_status(l.run)) run_fail(l.run, write_done(&l, line));
    /* Before the run's end frees the names; but told after it, so that the weights are saved. */
    tri_status own = metrics_close(&l.metrics);
    char *why = own ? strdup(tri_message()) : NULL;
    free(l.name);
    free(l.value);
    status = tri_close(l.run);
    if (own) fprintf(stderr, "trireme: %s\n", why ? why : "out of memory");
    free(why);
    if (status || own) return status ? status : own;
    status = print_done(line);
    if (status) fprintf(stderr, "trireme: %s\n", tri_message());
    return status;
}

tri_status tri_train(tri_graph *g, const tri_options *o, const tri_callbacks *callbacks) {
    return train_loop(g, o, callbacks, program_invocation_short_name);
}
