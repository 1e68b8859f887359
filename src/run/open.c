/* SPDX-License-Identifier: Apache-2.0
 * Opens and closes runs. */
#include "run/open.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pipes.h"
#include "crew/messages.h"
#include "data/data.h"
#include "data/over.h"
#include "io/outfile.h"
#include "observe/events.h"
#include "plan/explain.h"
#include "plan/option_rows.h"
#include "plan/rebatch.h"
#include "plan/wire_ask.h"
#include "run/checkpointer.h"
#include "run/crash.h"
#include "run/diverge.h"
#include "run/evaluate.h"
#include "run/executables.h"
#include "run/executor.h"
#include "run/feed.h"
#include "run/fit.h"
#include "run/loader.h"
#include "run/padding.h"
#include "run/policy.h"
#include "run/profiler.h"
#include "run/record.h"
#include "run/trial.h"
#include "run/worker.h"

/* A run with its parts, in one allocation. */
struct whole {
    tri_run run;
    struct loader loader;
    struct record record;
    struct checkpointer checkpointer;
    struct policy policy;
    struct crash crash;
};

/* ---- opening ---- */

static tri_status check_options(const tri_options *o) {
    const struct {
        const char *what;
        int64_t value;
    } counts[] = {{"batch", o->batch}, {"steps", o->steps}, {"epochs", o->epochs},
                  {"metrics_every", o->metrics_every}, {"bucket", o->bucket},
                  {"memory_limit", o->memory_limit}, {"save_every", o->save_every},
                  {"keep", o->keep}, {"keep_every", o->keep_every}, {"sink_size", o->sink_size}};
    for (size_t i = 0; i < COUNT(counts); i++)
        if (counts[i].value < 0)
            return base_fail(TRI_USAGE, "%s is %lld; it must be at least 1 (0: the default)",
                             counts[i].what, (long long)counts[i].value);
    if (o->memory_limit && o->memory_limit < 1 << 20)
        return base_fail(TRI_USAGE, "--memory-limit (tri_options.memory_limit) is %lld bytes, less "
                         "than any run needs; do you mean %lldM?", (long long)o->memory_limit,
                         (long long)(o->memory_limit / (o->memory_limit % 1024 ? 1 : 1024)));
    if (o->threads < 0 || o->threads > PLAN_MOST_THREADS)
        return base_fail(TRI_USAGE, "threads is %lld; it must be from 1 to %d (0: one for each "
                         "core)", (long long)o->threads, PLAN_MOST_THREADS);
    if (o->data_threads < -1 || o->data_threads > LOADER_MOST_THREADS)
        return base_fail(TRI_USAGE, "data_threads is %lld; it must be from 1 to %d (0: as needed; "
                         "-1: none)", (long long)o->data_threads, LOADER_MOST_THREADS);
    if (o->steps && o->epochs > 1) /* 1 is the default */
        return base_fail(TRI_USAGE, "both %lld step(s) and %lld epoch(s) are asked for; give one",
                         (long long)o->steps, (long long)o->epochs);
    if (!(o->max_time >= 0 && o->save_minutes >= 0))
        return base_fail(TRI_USAGE, "max_time and save_minutes (tri_options) must be at least 0");
    tri_status status = options_check(o);
    if (!status) status = wire_ask_check(o);
    if (!status && o->save) status = outfile_check(o->save);
    return !status && o->save_plan ? outfile_check(o->save_plan) : status;
}

/* A source of the program's, or of a model of the zoo, takes the place of what these name. */
static tri_status check_source(const tri_options *o) {
    const bool tokens = !data_is_usual(o->tokenizer);
    if (!o->source || !(o->data || tokens)) return TRI_OK;
    return base_fail(TRI_USAGE, "%s %s has no effect: the program or the model has a source of "
                     "samples of its own (tri_options.source)",
                     o->data ? "--data" : "--tokenizer", o->data ? o->data : o->tokenizer);
}

/* Sets the options that the plan states. */
static tri_status take_plan(tri_run *run) {
    if (!run->options.plan) return TRI_OK;
    run->plan = plan_read(run->options.plan, true);
    return run->plan ? plan_take(run->plan, &run->options) : base_last();
}

/* Before passes change the network, which has the run's batch now. */
static tri_status settle_plan(tri_run *run) {
    if (!run->options.plan) return TRI_OK;
    plan_replace_recompute(run->plan, run->model);
    return plan_check_network(run->plan, run->model);
}

/* For the data: whether threads stop waiting for samples. */
static bool gives_up(void *arg) {
    tri_run *run = arg;
    return atomic_load(&run->loader->quit) || run->executor->gives_up(run);
}

/* A run that trains needs data if the network has inputs, unless --recompute fit has opened it. */
static tri_status open_source(tri_run *run) {
    tri_options *o = &run->options;
    if (run->data) return TRI_OK;
    run->data = o->source;
    o->source = NULL;
    if (!run->data && (o->forward || (!run->machine->n_inputs && !o->data))) return TRI_OK;
    if (!run->data) {
        run->data = data_open(o->data ? o->data : "synthetic", run->model, o->seed, o->tokenizer,
                              NULL);
        if (run->data && !o->data)
            run->data->about.note = "no data is given, so the samples are random numbers; give "
                                    "--data (tri_options.data), or --data synthetic for these";
    }
    if (o->subset) run->data = data_subset(run->data, o->subset);
    return run->data ? TRI_OK : base_last();
}

/* The program may feed a run. */
static tri_status open_data(tri_run *run) {
    tri_options *o = &run->options;
    struct machine *m = run->machine;
    if (data_is_fed(o->data) && !o->forward) return feed_open(run);
    tri_status status = open_source(run);
    run->total = o->steps ? o->steps : 1;
    if (status || !run->data) return status;
    data_give_up(run->data, gives_up, run);
    if (run->data->alone && run->worker)
        return base_fail(TRI_USAGE, "data %s can be read only once, by one process; with several "
                         "workers (-n) each must be able to read it, as with tar:pipe:COMMAND, "
                         "where each runs the command", run->data->name);
    status = feed_match(m, run->data);
    if (!run->data->concurrent) m->n_buffers = 1; /* nothing of it is read ahead */
    int64_t limit[LENGTHS_MOST];
    int limits;
    executables_limits(run, limit, &limits);
    const int tail = option_choice("--tail", o->tail);
    const struct sampler_settings order = {.kind = o->sampler,
                                           .share = o->share,
                                           .no_shuffle = o->no_shuffle,
                                           .tail = (enum tail_way)tail,
                                           .batch = m->batch,
                                           .lanes = m->lanes,
                                           .seed = o->seed,
                                           .limit = limit,
                                           .limits = limits};
    if (!status) status = sampler_open(&run->sampler, run->data, &order);
    if (!status && run->sampler.pad) status = padding_plan(run->model, m);
    if (status) return status;
    int64_t steps;
    m->held = run->data->about.held + sampler_bytes(&run->sampler);
    status = sampler_steps(&run->sampler, &steps);
    int64_t epochs = o->epochs ? o->epochs : 1;
    if (!status && epochs > INT64_MAX / (steps ? steps : 1))
        return base_fail(TRI_USAGE, "%lld epoch(s) of %lld step(s) are too many", (long long)epochs,
                         (long long)steps);
    run->total = o->steps ? o->steps : steps * epochs;
    return status;
}

/* Changes the network's batch size to the one of the options. */
static tri_status settle_batch(tri_run *run) {
    const tri_options *o = &run->options;
    if (o->forward || !o->batch || o->batch == run->model->batch) return TRI_OK;
    tri_graph *other = graph_rebatch(run->model, o->batch, run->model->lanes, false);
    if (!other) return base_last();
    for (; other->n_shorter < run->model->n_shorter; other->n_shorter++)
        other->shorter[other->n_shorter] = run->model->shorter[other->n_shorter];
    run->model->n_shorter = 0;
    tri_graph_free(run->model);
    run->model = other;
    return TRI_OK;
}

/* If the network has its own update, its learning rate and schedule are defaults for the options.
 * Other settings of an optimizer must be those that it was built with; they are then the network's
 * and no longer the options'. */
static tri_status settle_optimizer(tri_optimizer *o, const tri_graph *model, bool forward) {
    bool own = graph_trains(model) && !forward;
    const char *lacks = own ? optimizer_lacks(&model->used, o) : NULL;
    if (lacks)
        return base_fail(TRI_USAGE, "the network updates its parameters itself, without the %s "
                         "given: of the optimizer only the learning rate, its schedule and what "
                         "the program passes to its step can be set (tri_update, tri_clip_by_norm, "
                         "tri_scale_loss)", lacks);
    if (o->lr == 0) o->lr = model->lr;
    if (!o->schedule) o->schedule = model->schedule;
    tri_status status = optimizer_check(o);
    if (own) *o = (tri_optimizer){.lr = o->lr, .schedule = o->schedule};
    return status;
}

/* The numbers of the run's own plan. */
static tri_status finish_plan(tri_run *run) {
    const struct {
        enum plan_key key;
        int64_t is;
    } number[] = {{PLAN_BATCH, run_batch(run)},
                  {PLAN_LANES, run_lanes(run)},
                  {PLAN_WIRE_NODES, wire_ask_nodes(&run->options)},
                  {PLAN_WORKERS, run->executor->size(run)},
                  {PLAN_THREADS, run_threads(run)},
                  {PLAN_STAGES, run->options.stages},
                  {PLAN_CHUNKS, run->options.chunks},
                  {PLAN_BUCKET, run->options.bucket}}; /* 0: the usual size, without a line */
    tri_status status = TRI_OK;
    for (size_t i = 0; i < COUNT(number) && run->own_plan.name && !status; i++)
        if (number[i].is) status = plan_add_number(&run->own_plan, number[i].key, number[i].is);
    return status;
}

static tri_status save_plan(const tri_run *run) {
    struct text t = {0};
    if (!run->options.save_plan || !run->executor->writes(run)) return TRI_OK;
    plan_print(&run->own_plan, &t);
    tri_status status = outfile_text(run->options.save_plan, &t);
    text_free(&t);
    return status;
}

static const struct machine *like;
void run_like(const struct machine *m) { like = m; }

static tri_status plan_run(tri_run *run) {
    tri_options *o = &run->options;
    struct machine_place place = {.store = &run->store};
    tri_status status = tri_graph_status(run->model);
    if (!status) status = take_plan(run);
    options_forget_usual(o);
    if (!status) status = check_options(o);
    if (!status) status = checkpointer_check(run->checkpointer, o);
    if (!status) status = settle_batch(run);
    if (!status) status = settle_plan(run);
    if (!status) status = settle_optimizer(&o->optimizer, run->model, o->forward);
    if (!status && !run->dev) run->dev = dev_find(o->device);
    if (!status) status = run->dev ? dev_open(run->dev) : base_last();
    if (!status) status = schedule_parse(o->optimizer.schedule, &run->schedule);
    if (!status) status = team_plan(run->executor->threads(run), &run->team);
    place.dev = run->dev;
    place.team = run->team;
    run->executor->place(run, &place);
    if (!run->worker && like) {
        place.levels = 1 + like->compilation.levels;
        place.apart = like->all_threads > 0;
    }
    if (!status) status = fit_settle_cuts(run);
    if (!status) status = fit_settle(run);
    if (!status && !(run->written = graph_duplicate(run->model, run->model->batch)))
        status = base_last();
    const bool planned = o->save_plan || o->ckpt || visit_is_on();
    /* In run.json, or if it is printed, without the plan if need be. */
    const bool described = o->out || run->worker || run->wants_plan;
    if (!status && (planned || described)) { /* as written */
        const tri_status made = plan_make(run->model, o, &run->own_plan);
        if (planned) status = made;
    }
    if (!status && o->ckpt && !(run->network = tri_graph_print(run->model))) status = base_last();
    if (!status) status = machine_plan(run->model, o, &place, run->machine);
    if (!status && place.hosts > 0 && !o->forward)
        status = tree_check_hosts(&run->machine->tree[1], o->wire, place.hosts);
    return status;
}

static tri_status join(tri_run *run) {
    bool trains = !run->options.forward && !run->passed;
    tri_status status = trains ? worker_join(&run->worker) : TRI_OK;
    if (run->worker) run->executor = &executor_worker;
    return status;
}

static bool told;
bool run_print_notes(bool whether) {
    const bool before = !told;
    told = !whether;
    return before;
}

/* Notes are printed once, even if all workers are restarted. */
static bool has_told(tri_run *run) {
    struct crew_shown *shown = run->executor->shown(run);
    return told || (shown && atomic_load(&shown->notes));
}

static void print_notes(tri_run *run) {
    struct crew_shown *shown = run->executor->shown(run);
    struct text split = {0};
    if (!run->executor->reports(run) || has_told(run)) return;
    if (shown) atomic_store(&shown->notes, 1);
    if (!run->options.forward)
        explain_notes(&run->machine->compilation, false, "trireme: ", &split);
    if (split.data && !split.failed) fputs(split.data, stderr);
    text_free(&split);
    data_print_notes(run->data, run->options.quiet);
    data_print_notes(run->policy->data, run->options.quiet);
}

static tri_status open_run(tri_run *run) {
    tri_options *o = &run->options;
    tri_status status = join(run);
    crash_begin(run);
    run->holds_pipes = !o->forward;
    if (run->holds_pipes) pipes_hold();
    run->executor->at(run, CREW_AT_COMPILE, -1);
    if (!status) status = check_source(o);
    if (!status) status = search_settles(run);
    if (!status) status = plan_run(run);
    if (!status && o->ckpt) status = checkpoint_prepare(o->ckpt);
    if (!status) status = team_start(run->team);
    if (!status) crash_add_team(run);
    if (!status && run->machine->compilation.note && !has_told(run))
        fprintf(stderr, "trireme: %s\n", run->machine->compilation.note);
    if (!status && run->fit_note && run->executor->reports(run) && !has_told(run))
        fprintf(stderr, "trireme: %s\n", run->fit_note);
    if (!status) status = open_data(run);
    if (!status) status = executables_plan(run);
    if (!status) status = policy_open(run->policy, run);
    if (!status) status = run->executor->settle(run);
    if (run->too_large) status = trial_advise(run);
    tri_graph_free(run->written);
    run->written = NULL;
    if (!status) status = finish_plan(run);
    if (!status) status = save_plan(run);
    run->lr = machine_scalar(run->machine, "lr");
    run->number = machine_scalar(run->machine, "step");
    run->samples = machine_scalar(run->machine, "samples");
    if (!status) status = policy_settle(run->policy, run);
    if (!status) print_notes(run);
    if (!status && o->load && run->executor->writes(run)) status = tri_load(run, o->load);
    if (!status) status = checkpointer_resume(run->checkpointer, run);
    if (!status) status = profiler_take(run);
    if (!status) status = options_keep_texts(o, &run->kept);
    if (!status) status = record_open(run->record, run);
    if (!status) status = run->executor->start(run);
    if (!status && run->checkpointer->resumed) policy_catch_up(run->policy, run);
    if (status) run->executor->failed(run, tri_message());
    run->executor->at(run, o->forward ? CREW_AT_REST : CREW_AT_CALLBACK, -1);
    return status;
}

void run_leave_nothing(tri_options *o) {
    o->save = o->save_plan = o->ckpt = o->eval_data = o->best = o->out = o->on_event =
        o->profile = NULL;
    o->save_every = o->keep = o->keep_every = o->metrics_every = o->eval_every = o->early_stop = 0;
    o->save_minutes = o->early_stop_change = o->max_time = 0;
    o->resume = o->changed = false;
    o->eval_source = NULL;
    if (!o->load) o->ckpt_key = NULL;
    o->quiet = true;
}

static tri_status open_passed(tri_run *run) {
    run->options.load = NULL;
    run_leave_nothing(&run->options);
    run->passed = true;
    tri_data_free(run->policy->data);
    run->policy->data = NULL;
    tri_status status = open_run(run);
    run->total = 0;
    return status;
}

void run_free(tri_run *run) {
    bool hangs = !loader_free(run->loader);
    checkpointer_free(run->checkpointer);
    policy_free(run->policy);
    record_close(run->record);
    evaluation_free(run->evaluation);
    run->executor->release(run);
    crash_end(run);
    if (run->holds_pipes) pipes_release();
    if (hangs) { /* the thread may still use all the rest */
        fprintf(stderr, "trireme: data %s does not return to a thread that reads ahead; the "
                "thread is abandoned\n", run->data->name);
        return;
    }
    for (int i = 0; i < run->n_executables; i++) machine_free(&run->executable[i]);
    store_free(&run->store);
    sampler_close(&run->sampler);
    tri_data_free(run->data);
    team_free(run->team);
    run->executor->free(run);
    tri_graph_free(run->model);
    tri_graph_free(run->written);
    for (int i = 0; i < run->n_executables; i++) tri_graph_free(run->shape_model[i]);
    free(run->message);
    plan_free(&run->own_plan);
    free(run->network);
    arena_free(&run->kept);
    free(run->fit);
    free(run);
}

/* With what evaluations need. */
static tri_status plan_rest(tri_run *run) {
    tri_status status = policy_open(run->policy, run);
    return status || !run->worker ? status : worker_measure(run->worker, run);
}

static tri_status plan_alone(tri_run *run) {
    tri_status status = plan_run(run);
    if (!status) status = plan_rest(run);
    return status ? status : finish_plan(run);
}

static tri_status plan_with_data(tri_run *run) {
    run->wants_plan = true;
    tri_status status = plan_run(run);
    if (!status) status = open_data(run);
    if (!status) status = executables_plan(run);
    if (!status) status = plan_rest(run);
    return status ? status : finish_plan(run);
}

/* Takes the graph and the sources in the options. dev: see run_open_on; workers: see run_plan. */
static tri_run *make_run(tri_graph *g, const tri_options *o, tri_status (*how)(tri_run *run),
                         struct dev *dev, const struct crew_size *workers) {
    struct whole *w = g ? calloc(1, sizeof *w) : NULL;
    if (!w) {
        if (g) base_no_memory("a run");
        if (!*tri_message()) base_fail(TRI_USAGE, "tri_open: the graph is a null pointer");
        if (o) tri_data_free(o->source);
        if (o) tri_data_free(o->eval_source);
        tri_graph_free(g);
        return NULL;
    }
    tri_run *run = &w->run;
    *run = (tri_run){.model = g,
                     .options = o ? *o : tri_options_default(),
                     .dev = dev,
                     .machine = run->executable,
                     .n_executables = 1,
                     .set_rate = NAN,
                     .executor = &executor_alone,
                     .loader = &w->loader,
                     .record = &w->record,
                     .checkpointer = &w->checkpointer,
                     .policy = &w->policy,
                     .crash = &w->crash};
    run->policy->data = run->options.eval_source;
    if (workers && (run->worker = worker_for_plan(workers))) run->executor = &executor_worker;
    if (!(workers && !run->worker ? base_last() : how(run))) return run;
    if (!run->data) run->data = run->options.source;
    run_free(run);
    return NULL;
}

tri_run *tri_open(tri_graph *g, const tri_options *o) {
    launched_opens(o);
    return make_run(g, o, g && visit_opens(g, o) ? open_passed : open_run, NULL, NULL);
}

tri_run *run_open_on(tri_graph *g, const tri_options *o, struct dev *dev) {
    return make_run(g, o, open_run, dev, NULL);
}

tri_run *run_plan(tri_graph *g, const tri_options *o, const struct crew_size *workers) {
    return make_run(g, o, plan_alone, NULL, workers);
}

tri_run *run_plan_with_data(tri_graph *g, const tri_options *o, const struct crew_size *workers) {
    return make_run(g, o, plan_with_data, NULL, workers);
}

/* ---- closing ---- */

static void report_end(const tri_run *run) {
    char text[128];
    if (!run->events) return;
    base_format(text, sizeof text, "%s after %lld of %lld step(s)",
                run->stopped ? "stopped" : "ended", (long long)run->done, (long long)run->total);
    const struct event end = {
        .name = "end",
        .worker = -1,
        .step = run->done,
        .message = run->status && run->message ? run->message : text,
        .code = (int)(run->status ? run->status : run->stopped ? TRI_STOPPED : TRI_OK)};
    events_close(run->events, &end);
}

static tri_status leave(tri_run *run) {
    tri_status status = run->status;
    const char *message = run->message ? run->message : "out of memory";
    if (status) fprintf(stderr, "trireme: %s\n", message);
    report_end(run);
    if (status) run->executor->failed(run, message);
    run->executor->leave(run, status);
    if (!status && run->unread) status = base_fail(TRI_STOPPED, RUN_IS_UNREAD);
    run_free(run);
    return status;
}

tri_status tri_close(tri_run *run) {
    if (!run) {
        fprintf(stderr, "trireme: %s\n", tri_message());
        return base_last();
    }
    if (!run->executor->finish(run)) return leave(run);
    run->executor->at(run, CREW_AT_SAVE, -1);
    if (!run->status) run_fail(run, diverge_end(run));
    if (!run->status && run->options.save) run_fail(run, tri_save(run, run->options.save));
    run_fail(run, checkpointer_end(run->checkpointer, run));
    run_fail(run, policy_end(run->policy));
    run_fail(run, record_close(run->record)); /* last: its failure must not stop the others */
    return leave(run);
}
