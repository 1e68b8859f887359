/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/ready.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "run/executor.h"
#include "run/open.h"
#include "run/record.h"
#include "run/run.h"

/* A ready-made callback. `at`: its place in the list. */
struct tri_ready {
    tri_status (*prepare)(struct callbacks *c, const tri_callback *own, tri_options *o);
    void (*step)(struct callbacks *c, int at, tri_run *run);
    void (*epoch)(struct callbacks *c, int at, tri_run *run);
};

static void print(const struct callbacks *c, struct text *line) {
    if (line->failed || c->quiet)
        ; /* skip this line */
    else if (c->progress)
        progress_note(c->progress, line->data);
    else
        fprintf(stderr, "%s\n", line->data);
    text_free(line);
}

/* ---- monitors ---- */

static void print_values(struct callbacks *c, int at, tri_run *run) {
    const struct observed *o = record_seen(run->record);
    struct text line = {0};
    (void)at;
    text_add(&line, "epoch %lld, step %lld/%lld:", (long long)o->epoch, (long long)o->step,
             (long long)o->total);
    for (int i = 0; i < o->n; i++)
        text_add(&line, "%s %s %.6g", i ? " " : "", o->name[i], o->value[i]);
    print(c, &line);
}

static void print_time(struct callbacks *c, struct ready_mark *since, tri_run *run,
                       const char *what, int64_t number) {
    const struct observed *o = record_seen(run->record);
    const struct ready_mark before = *since;
    double time = o->now - o->aside, passed = time - before.time;
    int64_t steps = o->step - before.step;
    struct text line = {0};
    *since = (struct ready_mark){time, o->step};
    if (before.step < 0 || steps < 1) return;
    text_add(&line, "%s %lld: %.3f s, %.2f ms a step, %.0f samples/s", what, (long long)number,
             passed, 1e3 * passed / (double)steps, (double)(steps * run_batch(run)) / passed);
    print(c, &line);
}

static void print_step_time(struct callbacks *c, int at, tri_run *run) {
    print_time(c, &c->since[at], run, "step", run->done);
}

static void print_epoch_time(struct callbacks *c, int at, tri_run *run) {
    print_time(c, &c->epoch[at], run, "epoch", run->epoch);
}

static const struct tri_ready loss_monitor = {.step = print_values};
static const struct tri_ready loss_by_epoch = {.epoch = print_values};
static const struct tri_ready time_monitor = {.step = print_step_time, .epoch = print_epoch_time};
static const struct tri_ready time_by_epoch = {.epoch = print_epoch_time};

tri_callback tri_loss_monitor(int64_t every) {
    return (tri_callback){.every = every, .ready = every > 0 ? &loss_monitor : &loss_by_epoch};
}

tri_callback tri_time_monitor(int64_t every) {
    return (tri_callback){.every = every, .ready = every > 0 ? &time_monitor : &time_by_epoch};
}

/* ---- settings ---- */

static tri_status prepare_saver(struct callbacks *c, const tri_callback *own, tri_options *o) {
    const tri_saver_options *s = own->settings;
    if (!s->directory) return base_fail(TRI_USAGE, "tri_saver lacks its directory");
    if (!o->ckpt && s->prefix && !visit_is_on() && mkdir(s->directory, 0777) && errno != EEXIST)
        return base_fail(TRI_FAILED, "cannot make the directory %s for checkpoints: %s",
                         s->directory, strerror(errno));
    base_format(c->directory, sizeof c->directory, "%s%s%s", s->directory, s->prefix ? "/" : "",
                s->prefix ? s->prefix : "");
    if (!o->ckpt) o->ckpt = c->directory;
    if (!o->save_every) o->save_every = s->every;
    if (!(o->save_minutes > 0)) o->save_minutes = s->minutes;
    if (!o->keep) o->keep = s->keep;
    if (!o->keep_every) o->keep_every = s->keep_every;
    o->resume |= s->resume;
    o->changed |= s->changed;
    return TRI_OK;
}

static tri_status prepare_evaluator(struct callbacks *c, const tri_callback *own, tri_options *o) {
    const tri_evaluator_options *s = own->settings;
    (void)c;
    if (!s->data && !s->source) return base_fail(TRI_USAGE, "tri_evaluator lacks its data");
    if (o->eval_data || o->eval_source)
        tri_data_free(s->source == o->eval_source ? NULL : s->source); /* the options override it */
    else
        o->eval_source = s->source;
    if (!o->eval_data && !o->eval_source) o->eval_data = s->data;
    if (!o->eval_every) o->eval_every = s->every;
    if (!o->best) o->best = s->best;
    if (!o->early_stop) o->early_stop = s->early_stop;
    if (!(o->early_stop_change > 0)) o->early_stop_change = s->early_stop_change;
    return TRI_OK;
}

static const struct tri_ready saver = {.prepare = prepare_saver};
static const struct tri_ready evaluator = {.prepare = prepare_evaluator};

tri_callback tri_saver_(const tri_saver_options *o) {
    return (tri_callback){.ready = &saver, .settings = o};
}

tri_callback tri_evaluator_(const tri_evaluator_options *o) {
    return (tri_callback){.ready = &evaluator, .settings = o};
}

/* ---- the list ---- */

static bool is_end(const tri_callback *c) { return !c->step && !c->epoch && !c->ready; }

tri_status callbacks_open(struct callbacks *c, const tri_callback *list, tri_options *o) {
    size_t n = 0;
    tri_status status = TRI_OK;
    *c = (struct callbacks){.list = list, .quiet = o->quiet};
    while (list && !is_end(&list[n])) n++;
    c->since = calloc(n + 1, sizeof *c->since);
    c->epoch = calloc(n + 1, sizeof *c->epoch);
    if (!c->since || !c->epoch) return base_no_memory("callbacks");
    for (size_t i = 0; i < n && !status; i++)
        if (list[i].ready && list[i].ready->prepare)
            status = list[i].ready->prepare(c, &list[i], o);
    return status;
}

void callbacks_begin(struct callbacks *c, const tri_run *run) {
    int64_t step = run->executor->writes(run) ? run->done : -1;
    for (int i = 0; c->list && !is_end(&c->list[i]); i++)
        c->since[i] = c->epoch[i] = (struct ready_mark){.step = step};
}

static bool call_step(struct callbacks *c, int i, tri_run *run) {
    const tri_callback *own = &c->list[i];
    int64_t sink = run->options.sink_size;
    bool due = own->every > 0 ? run->done % own->every == 0
                              : sink <= 1 || run->done % sink == 0 || run->done >= run->total;
    if (!due) return true;
    run->executor->at(run, CREW_AT_CALLBACK, i + 1);
    if (own->ready && own->ready->step) own->ready->step(c, i, run);
    return !own->step || !own->step(run, own->user);
}

static bool call_epoch(struct callbacks *c, int i, tri_run *run) {
    const tri_callback *own = &c->list[i];
    run->executor->at(run, CREW_AT_CALLBACK, i + 1);
    if (own->ready && own->ready->epoch) own->ready->epoch(c, i, run);
    return !own->epoch || !own->epoch(run, own->user);
}

bool callbacks_step(struct callbacks *c, tri_run *run) {
    bool epoch = run_epoch_ended(run);
    for (int i = 0; c->list && !is_end(&c->list[i]); i++)
        if (!call_step(c, i, run) || (epoch && !call_epoch(c, i, run))) return false;
    run->executor->at(run, CREW_AT_CALLBACK, -1);
    return true;
}

void callbacks_close(struct callbacks *c) {
    free(c->since);
    free(c->epoch);
}
