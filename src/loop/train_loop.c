/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/train_loop.h"

#include <errno.h>
#include <signal.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/pipes.h"
#include "data/data.h"
#include "crew/messages.h"
#include "machine/finite.h"
#include "run/run.h"
#include "loop/ready.h"
#include "run/checkpointer.h"
#include "run/executor.h"
#include "run/policy.h"
#include "run/record.h"

/* The progress that this process prints. Another worker may have begun it and have died. */
struct view {
    struct progress p; /* p.to is null before the first line */
    bool quiet;
    const char *model;
};

static void print_head(struct progress *p, const tri_run *run, const char *model) {
    char device[256];
    run_device_text(run, device, sizeof device);
    const struct progress_head head = {
        .model = model,
        .device = device,
        .data = run->data ? run->data->name : "no data",
        .parameters = run_parameter_elements(run),
        .lanes = run_lanes(run),
        .batch = run_batch(run),
        .seats = mesh_seats(&run->machine->compilation.strategies.mesh),
        .stages = run->machine->compilation.stages,
        .workers = run->executor->size(run),
        .threads = run_threads(run),
    };
    progress_begin(p, &head);
    const struct strategies *s = &run->machine->compilation.strategies;
    if (s->tuple_parts && !s->mesh.n)
        fprintf(stderr, "trireme: without a mesh the tuples of the network (tri_shard) split "
                "nothing; --mesh %lld (tri_mesh) splits it so\n", (long long)s->tuple_parts);
}

/* done: the steps that are done when its time begins. */
static void begin_view(struct view *v, tri_run *run, int64_t done) {
    struct crew_shown *shown = run->executor->shown(run);
    tri_status status =
        progress_open(&v->p, stderr, isatty(fileno(stderr)), run->record->seen.n, done);
    if (run_fail(run, status)) {
        v->quiet = true;
        return;
    }
    if (!shown || !atomic_exchange(&shown->head, 1)) print_head(&v->p, run, v->model);
    int64_t step = shown ? atomic_load(&shown->step) : 0;
    if (step) progress_resume(&v->p, record_seen(run->record), step);
}

static void show(struct view *v, tri_run *run) {
    struct crew_shown *shown = run->executor->shown(run);
    if (v->quiet) return;
    if (!v->p.to) begin_view(v, run, run->done - 1);
    if (!v->p.to || run->done <= v->p.shown) return;
    progress_step(&v->p, record_seen(run->record));
    if (shown) atomic_store(&shown->step, v->p.shown);
}

/* Once, even if a new reporter reports this step again. */
static void show_evaluation(struct view *v, tri_run *run) {
    struct crew_shown *shown = run->executor->shown(run);
    struct text line = {0};
    if (!v->p.to || !run->policy->here) return;
    if (shown && atomic_load(&shown->evaluation) >= run->done) return;
    policy_describe(run->policy, run->done, &line);
    if (!line.failed) progress_note(&v->p, line.data);
    if (shown) atomic_store(&shown->evaluation, run->done);
    text_free(&line);
}

/* Also prints the last step if its reporter could not. */
static void end_view(struct view *v, tri_run *run, bool last) {
    struct crew_shown *shown = run->executor->shown(run);
    if (last && run->done > v->p.last.step && shown &&
        record_seen(run->record)->step == run->done)
        show(v, run);
    if (v->p.to) progress_close(&v->p);
    if (last && shown && !v->quiet) atomic_store(&shown->step, run->done);
}

/* The signal that asks the run to end: the step is finished and files are saved. A second one ends
 * the process at once. With an agent, that receives the signals. */
static volatile sig_atomic_t asked, on_terminal;

#define MESSAGE(what) "\ntrireme: " what ": " RUN_ENDS_SOON "\n"

static const struct {
    int number;
    const char *name, *text;
} ends[] = {
    {SIGINT, "SIGINT", MESSAGE("interrupted")},
    {SIGTERM, "SIGTERM", MESSAGE("asked to end")},
    {SIGHUP, "SIGHUP", MESSAGE("hung up")},
};

/* Prints the message at once, because a step may take long; on a terminal, below the progress. */
static void ask(int sig) {
    int before = errno;
    size_t i = 0, gap = on_terminal ? 0 : 1;
    while (ends[i].number != sig) i++;
    const char *text = ends[i].text + gap;
    ssize_t written = write(STDERR_FILENO, text, strlen(text));
    (void)written; /* stderr may be closed */
    asked = sig;
    errno = before;
}

/* Catches the signals that the program neither handles nor ignores, as under nohup. */
static void catch_signals(bool handles, struct sigaction old[COUNT(ends)]) {
    asked = 0;
    on_terminal = isatty(STDERR_FILENO);
    for (size_t i = 0; i < COUNT(ends); i++) {
        struct sigaction mine = {.sa_handler = ask, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
        sigaction(ends[i].number, NULL, &old[i]);
        if (handles && old[i].sa_handler == SIG_DFL) sigaction(ends[i].number, &mine, NULL);
    }
}

static void restore_signals(const struct sigaction old[COUNT(ends)]) {
    for (size_t i = 0; i < COUNT(ends); i++) sigaction(ends[i].number, &old[i], NULL);
}

/* What stopped the run; null if something else has reported it. */
static const char *stopped_by(const tri_run *run) {
    if (run->status || run->done >= run->total || policy_stops(run->policy)) return NULL;
    for (size_t i = 0; i < COUNT(ends); i++)
        if (ends[i].number == asked) return ends[i].name;
    return run_is_late(run) ? "--max-time" : NULL;
}

static void loop(tri_run *run, struct callbacks *callbacks, struct view *v) {
    while (!asked && tri_step(run)) {
        if (!run->executor->reports_step(run)) continue;
        show(v, run);
        show_evaluation(v, run);
        callbacks->progress = v->p.to ? &v->p : NULL;
        if (!callbacks_step(callbacks, run)) break;
    }
}

/* The reader of stdout may be gone if the run was stopped; this is no failure then. */
static tri_status print_done(const char *line, bool stopped) {
    errno = 0;
    if (puts(line) >= 0 && !fflush(stdout)) return TRI_OK;
    if (stopped && errno == EPIPE) return TRI_OK;
    return base_fail(TRI_FAILED, "cannot write the last line to stdout: %s", strerror(errno));
}

/* A warning if the last step diverged, because the exit code does not show that. */
static void warn_diverged(const tri_run *run) {
    double loss = tri_value(run, "loss");
    bool has = false;
    for (int i = 0; i < run_output_count(run); i++) has |= !strcmp(run_output_name(run, i), "loss");
    if (has && run->machine->finite.stops && run->done > run->checkpointer->resumed &&
        !isfinite(loss))
        fprintf(stderr, "trireme: the loss of the last step is %s: a smaller --lr or --clip-norm "
                "may help\n", isnan(loss) ? "nan" : "infinite");
}

/* Reports an early stop, and the best evaluation. */
static void print_evaluations(const tri_run *run) {
    const struct policy *j = run->policy;
    if (run->done < run->total && policy_stops(j))
        fprintf(stderr, "trireme: %lld evaluation%s in a row found no better %s than %.6g: the run "
                "ends after step %lld\n", (long long)j->is.no_better,
                j->is.no_better == 1 ? "" : "s", j->of, j->is.best, (long long)run->done);
    if (!run->options.quiet && j->is.best_step)
        fprintf(stderr, "trireme: the best %s is %.6g, of step %lld%s\n", j->of, j->is.best,
                (long long)j->is.best_step, j->keeps ? ", whose checkpoint is kept" : "");
}

static tri_status train(tri_graph *g, const tri_options *o, struct callbacks *callbacks,
                        const char *model) {
    struct view v = {.quiet = o->quiet, .model = model};
    char line[512] = "";
    tri_run *run = tri_open(g, o);
    if (!run) return tri_close(NULL);
    struct sigaction old[COUNT(ends)];
    if (!v.quiet && run->executor->reports(run)) begin_view(&v, run, run->done);
    catch_signals(!run->worker, old);
    run->asked = &asked;
    show_evaluation(&v, run);
    callbacks_begin(callbacks, run);
    loop(run, callbacks, &v);
    restore_signals(old);
    run->asked = NULL;
    run->stopped |= asked && tri_step_number(run) < tri_step_total(run);
    bool last = run->executor->finish(run), stopped = run->stopped;
    const char *reason = last ? stopped_by(run) : NULL;
    const long long steps = run->done, total = run->total;
    end_view(&v, run, last);
    if (last && !run->status) {
        print_evaluations(run);
        warn_diverged(run);
    }
    if (last) run_fail(run, tri_result_line(run, line, sizeof line));
    bool passed = *line && run->executor->take_last_line(run, line); /* the agent prints it */
    tri_status status = tri_close(run), printed = TRI_OK;
    if (reason)
        fprintf(stderr, "trireme: stopped by %s after %lld of %lld steps\n", reason, steps, total);
    if (*line && !passed) printed = print_done(line, stopped);
    if (printed) fprintf(stderr, "trireme: %s\n", tri_message());
    return status ? status : printed ? printed : stopped ? TRI_STOPPED : TRI_OK;
}

tri_status train_loop(tri_graph *g, const tri_options *o, const tri_callback *list,
                      const char *model) {
    struct callbacks callbacks;
    tri_options all = *o;
    tri_status status = callbacks_open(&callbacks, list, &all);
    if (!status) status = data_refuse_fed(all.data);
    if (status) {
        fprintf(stderr, "trireme: %s\n", tri_message());
        tri_data_free(all.source);
        tri_data_free(all.eval_source);
        tri_graph_free(g);
    } else {
        pipes_hold(); /* until the last line has been printed */
        status = train(g, &all, &callbacks, model);
        pipes_release();
    }
    callbacks_close(&callbacks);
    return status;
}

tri_status tri_train(tri_graph *g, const tri_options *o, const tri_callback *callbacks) {
    return train_loop(g, o, callbacks, program_invocation_short_name);
}
