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
#include "crew/head.h"
#include "machine/finite.h"
#include "run/run.h"
#include "loop/ready.h"
#include "run/checkpointer.h"
#include "run/executor.h"
#include "run/policy.h"
#include "run/record.h"

/* What this process shows. Where it is one of several, another may have begun, and have died. */
struct view {
    struct progress p; /* its `to` is null before anything was shown */
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
        .threads = run_threads(run),
    };
    progress_begin(p, &head);
}

static void begin_view(struct view *v, tri_run *run) {
    struct crew_shown *shown = run->executor->shown(run);
    tri_status status = progress_open(&v->p, stderr, isatty(fileno(stderr)), run->record->seen.n,
                                      run->done - 1);
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
    if (!v->p.to) begin_view(v, run);
    if (!v->p.to || run->done <= v->p.shown) return;
    progress_step(&v->p, record_seen(run->record));
    if (shown) atomic_store(&shown->step, v->p.shown);
}

/* Once, though another may report this step again. */
static void show_evaluation(struct view *v, tri_run *run) {
    struct crew_shown *shown = run->executor->shown(run);
    struct text line = {0};
    if (!v->p.to || !run->policy->here || (shown && atomic_load(&shown->evaluation) >= run->done)) return;
    policy_describe(run->policy, run->done, &line);
    if (!line.failed) progress_note(&v->p, line.data);
    if (shown) atomic_store(&shown->evaluation, run->done);
    text_free(&line);
}

/* Of the last step too, if that was another's to show. */
static void end_view(struct view *v, tri_run *run, bool last) {
    if (last && run->done > v->p.last.step && run->executor->shown(run)) show(v, run);
    if (v->p.to) progress_close(&v->p);
    if (last && run->executor->shown(run) && !v->quiet) atomic_store(&run->executor->shown(run)->step, run->done);
}

/* Asked to end: the step is finished, what can be saved is saved. A second signal of the kind ends
 * it at once. Workers hear of it from their agent. */
static volatile sig_atomic_t asked, on_terminal;

#define SAYS(what) "\ntrireme: " what ": " RUN_ENDS_SOON "\n"

static const struct {
    int number;
    const char *text;
} ends[] = {
    {SIGINT, SAYS("interrupted")},
    {SIGTERM, SAYS("asked to end")},
    {SIGHUP, SAYS("hung up")},
};

/* Said at once, for a step may take its time; on a terminal below the line of progress. */
static void ask(int sig) {
    int before = errno;
    size_t i = 0, gap = on_terminal ? 0 : 1;
    while (ends[i].number != sig) i++;
    const char *text = ends[i].text + gap;
    ssize_t told = write(STDERR_FILENO, text, strlen(text));
    (void)told; /* maybe nobody reads it */
    asked = 1;
    errno = before;
}

/* Only of signals that the program neither handles nor ignores (as under nohup). */
static void listen_to_ends(bool handles, struct sigaction old[COUNT(ends)]) {
    asked = 0;
    on_terminal = isatty(STDERR_FILENO);
    for (size_t i = 0; i < COUNT(ends); i++) {
        struct sigaction mine = {.sa_handler = ask, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
        sigaction(ends[i].number, NULL, &old[i]);
        if (handles && old[i].sa_handler == SIG_DFL) sigaction(ends[i].number, &mine, NULL);
    }
}

static void listen_no_more(const struct sigaction old[COUNT(ends)]) {
    for (size_t i = 0; i < COUNT(ends); i++) sigaction(ends[i].number, &old[i], NULL);
}

static void loop(tri_run *run, struct callbacks *callbacks, struct view *v) {
    while (!asked && tri_step(run)) {
        if (!run->executor->tells(run)) continue;
        show(v, run);
        show_evaluation(v, run);
        callbacks->progress = v->p.to ? &v->p : NULL;
        if (!callbacks_step(callbacks, run)) break;
    }
}

#define DONE_TEXT 512

/* That of the last step, though an earlier process may have done it; NaN: there was none. */
static double last_loss(const tri_run *run) {
    if (run->done > run->checkpointer->resumed) return tri_value(run, "loss");
    return run->done ? run->checkpointer->state.loss : NAN;
}

/* The last line, which programs read. */
static tri_status write_done(const tri_run *run, char line[DONE_TEXT]) {
    char weights[65], state[65];
    tri_hash(run, weights, state);
    if (!*weights || !*state) return base_no_memory("the hash of the weights");
    char best[160] = "";
    const struct policy_state *is = &run->policy->is;
    if (is->best_step)
        base_format(best, sizeof best, " best_%s=%.9g best_step=%lld", run->policy->of, is->best,
                    (long long)is->best_step);
    base_format(line, DONE_TEXT, "done steps=%lld loss=%.9g weights=sha256:%s state=sha256:%s%s "
                "seconds=%.3f\n", (long long)tri_step_number(run), last_loss(run), weights,
                state, best, base_seconds() - run->record->begin);
    return TRI_OK;
}

/* Of a run that was stopped nobody may be left to read it. */
static tri_status print_done(const char *line, bool stopped) {
    errno = 0;
    if (fputs(line, stdout) >= 0 && !fflush(stdout)) return TRI_OK;
    if (stopped && errno == EPIPE) return TRI_OK;
    return base_fail(TRI_FAILED, "cannot write the last line to stdout: %s", strerror(errno));
}

/* A run that has diverged is done all the same; it should not pass for one that learned. */
static void tell_diverged(const tri_run *run) {
    double loss = tri_value(run, "loss");
    bool has = false;
    for (int i = 0; i < run_output_count(run); i++) has |= !strcmp(run_output_name(run, i), "loss");
    if (has && finite_stops(&run->options) && run->done > run->checkpointer->resumed && !isfinite(loss))
        fprintf(stderr, "trireme: the loss of the last step is %s, no number to learn by: a "
                "smaller --lr or a --clip-norm may help\n", isnan(loss) ? "nan" : "infinite");
}

/* Why it ended early, and where the best one is. */
static void tell_judged(const tri_run *run) {
    const struct policy *j = run->policy;
    if (run->done < run->total && policy_stops(j))
        fprintf(stderr, "trireme: %lld evaluation%s in succession found no better %s than %.6g: the run ends behind "
                "step %lld\n", (long long)j->is.no_better, j->is.no_better == 1 ? "" : "s", j->of, j->is.best,
                (long long)run->done);
    if (!run->options.quiet && j->is.best_step)
        fprintf(stderr, "trireme: the best %s, %.6g, was at step %lld%s\n", j->of, j->is.best,
                (long long)j->is.best_step, j->keeps ? ", whose checkpoint is kept" : "");
}

static tri_status train(tri_graph *g, const tri_options *o, struct callbacks *callbacks, const char *model) {
    struct view v = {.quiet = o->quiet, .model = model};
    char line[DONE_TEXT] = "";
    tri_run *run = tri_open(g, o);
    if (!run) return tri_close(NULL);
    struct sigaction old[COUNT(ends)];
    if (!v.quiet && run->executor->reports(run)) begin_view(&v, run);
    listen_to_ends(!run->worker, old);
    run->asked = &asked;
    show_evaluation(&v, run);
    callbacks_begin(callbacks, run);
    loop(run, callbacks, &v);
    listen_no_more(old);
    run->asked = NULL;
    run->stopped |= asked && tri_step_number(run) < tri_step_total(run);
    bool last = run->executor->finish(run), stopped = run->stopped;
    end_view(&v, run, last);
    if (last && !run->status) {
        tell_judged(run);
        tell_diverged(run);
    }
    /* All steps are done: what fails from here on, as a file of metrics or the last save, is for the exit code to tell. */
    bool done = last && (!run->status || run->done >= run->total);
    if (done) run_fail(run, write_done(run, line));
    bool handed = *line && run->executor->hand_over(run, line);
    tri_status status = tri_close(run), printed = TRI_OK;
    if (*line && !handed) printed = print_done(line, stopped);
    if (printed) fprintf(stderr, "trireme: %s\n", tri_message());
    return status ? status : printed ? printed : stopped ? TRI_STOPPED : TRI_OK;
}

tri_status train_loop(tri_graph *g, const tri_options *o, const tri_callback *list, const char *model) {
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
        pipes_hold(); /* also while the last line is printed */
        status = train(g, &all, &callbacks, model);
        pipes_release();
    }
    callbacks_close(&callbacks);
    return status;
}

tri_status tri_train(tri_graph *g, const tri_options *o, const tri_callback *callbacks) {
    return train_loop(g, o, callbacks, program_invocation_short_name);
}
