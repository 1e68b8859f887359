/* SPDX-License-Identifier: Apache-2.0
 * Opening a run, stepping, closing. */
#include "run/diverge.h"
#include "run/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pipes.h"
#include "base/host.h"
#include "data/data.h"
#include "data/over.h"
#include "run/worker.h"
#include "run/padding.h"
#include "run/executables.h"
#include "io/outfile.h"
#include "plan/rebatch.h"

#define MAX_THREADS 1024

tri_status run_fail(tri_run *run, tri_status status) {
    if (run->status || !status) return run->status;
    run->status = status;
    run->message = strdup(tri_message());
    return status;
}

/* ---- opening ---- */

static tri_status check_options(const tri_options *o) {
    const struct {
        const char *what;
        int64_t value;
    } counts[] = {{"batch", o->batch}, {"steps", o->steps}, {"epochs", o->epochs},
                  {"metrics_every", o->metrics_every}};
    for (size_t i = 0; i < COUNT(counts); i++)
        if (counts[i].value < 0)
            return base_fail(TRI_USAGE, "%s is %lld; it must be at least 1 (0: the default)",
                             counts[i].what, (long long)counts[i].value);
    if (o->threads < 0 || o->threads > MAX_THREADS)
        return base_fail(TRI_USAGE, "threads is %lld; it must be from 1 to %d (0: one for each "
                         "core)", (long long)o->threads, MAX_THREADS);
    if (o->data_threads < -1 || o->data_threads > LOADER_MOST_THREADS)
        return base_fail(TRI_USAGE, "data_threads is %lld; it must be from 1 to %d (0: as many as pay; -1: none)",
                         (long long)o->data_threads, LOADER_MOST_THREADS);
    if (o->parallel && strcmp(o->parallel, "data"))
        return base_fail(TRI_USAGE, "--parallel (tri_options.parallel) is \"%s\"; this version splits "
                         "data only: data", o->parallel);
    if (o->steps && o->epochs)
        return base_fail(TRI_USAGE, "both %lld steps and %lld epochs are asked for; give one",
                         (long long)o->steps, (long long)o->epochs);
    tri_status status = finite_check_option(o->on_nan);
    return !status && o->save ? outfile_check(o->save) : status;
}

static tri_status find_device(tri_run *run) {
    struct text names = {0};
    const char *name = run->options.device;
    run->dev = name ? dev_find(name) : dev_at(0);
    for (int i = 0; dev_at(i); i++) text_add(&names, "%s%s", i ? ", " : "", dev_at(i)->name);
    tri_status status = TRI_OK;
    if (!run->dev)
        status = base_fail(TRI_USAGE, "there is no device \"%s\"; this build has: %s", name,
                           names.data ? names.data : "");
    text_free(&names);
    return !status && run->dev->open ? run->dev->open() : status;
}

#define PATIENCE 3000000000 /* nanoseconds that samples of the last step are waited for once it is to be the last */

/* For the data: whether nobody waits for samples any more. Of several workers the agent decides it. */
static bool gives_up(void *arg) {
    tri_run *run = arg;
    int64_t never = 0, now = wait_now();
    if (atomic_load(&run->loader.quit) || (run->worker && atomic_load(&run->worker->head->ending))) return true;
    if (run->worker || !(run_is_asked_to_end(run) || run_is_late(run))) return false;
    atomic_compare_exchange_strong(&run->asked_since, &never, now);
    if (now - atomic_load(&run->asked_since) < PATIENCE) return false;
    atomic_store(&run->gave_up, true);
    return true;
}

/* Data is needed to train, if there are inputs; a forward run may be fed by hand. */
static tri_status open_data(tri_run *run) {
    tri_options *o = &run->options;
    struct machine *m = run->machine;
    if (data_is_fed(o->data) && !o->forward) return feed_open(run);
    run->data = o->source;
    o->source = NULL;
    run->total = o->steps ? o->steps : 1;
    if (!run->data && (o->forward || (!m->n_inputs && !o->data))) return TRI_OK;
    if (!run->data) {
        run->data = data_open(o->data ? o->data : "synthetic", run->model, o->seed, o->tokenizer, NULL);
        if (run->data && !o->data)
            run->data->about.note = "no data is named, so the samples are made up at random; --data "
                                    "(tri_options.data) names some, or synthetic";
    }
    if (o->subset) run->data = data_subset(run->data, o->subset);
    if (!run->data) return base_last();
    data_give_up(run->data, gives_up, run);
    if (run->data->alone && run->worker)
        return base_fail(TRI_USAGE, "data %s comes once and to one process; several workers (-n) need data that each "
                         "can read, as from tar:pipe:COMMAND, which each runs for itself", run->data->name);
    tri_status status = feed_match(m, run->data);
    if (!run->data->concurrent) m->n_buffers = 1; /* nothing of it is read ahead */
    int64_t limit[LENGTHS_MOST];
    int limits;
    executables_limits(run, limit, &limits);
    const struct sampler_settings order = {.kind = o->sampler, .share = o->share, .no_shuffle = o->no_shuffle,
                                           .tail = o->tail, .batch = m->batch, .lanes = m->lanes, .seed = o->seed,
                                           .limit = limit, .limits = limits};
    if (!status) status = sampler_open(&run->sampler, run->data, &order);
    if (!status && run->sampler.pad) status = padding_plan(run->model, m);
    if (status) return status;
    int64_t steps;
    m->held = run->data->about.held + sampler_bytes(&run->sampler);
    status = sampler_steps(&run->sampler, &steps);
    int64_t epochs = o->epochs ? o->epochs : 1;
    if (!status && epochs > INT64_MAX / (steps ? steps : 1))
        return base_fail(TRI_USAGE, "%lld epochs of %lld steps are too many", (long long)epochs,
                         (long long)steps);
    run->total = o->steps ? o->steps : steps * epochs;
    return status;
}

/* The usual step is built for the batch that it runs with. */
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

/* What an update composed by the user says of the rate counts where the options say nothing; the
 * rest of an optimizer would be ignored. */
static tri_status settle_optimizer(tri_optimizer *o, const tri_graph *model, bool forward) {
    bool given = o->name || o->momentum != 0 || o->beta1 != 0 || o->beta2 != 0 || o->eps != 0 || o->trust != 0 ||
                 o->weight_decay != 0 || o->gradients_sum || o->clip_norm != 0 || o->loss_scale;
    if (graph_trains(model) && !forward && given)
        return base_fail(TRI_USAGE, "the network updates its parameters itself: of the optimizer "
                         "only the learning rate and its schedule can be given");
    if (o->lr == 0) o->lr = model->lr;
    if (!o->schedule) o->schedule = model->schedule;
    return TRI_OK;
}

/* Texts of the options that are needed later, by an evaluation or at the end. */
static tri_status keep_texts(tri_run *run) {
    tri_options *o = &run->options;
    const char **text[COUNT(run->kept)] = {&o->save, &o->passes, &o->conv, &o->amp_type, &o->recompute,
                                            &o->out, &o->ckpt, &o->sampler, &o->subset, &o->share, &o->tail,
                                            &o->on_nan};
    for (size_t i = 0; i < COUNT(text); i++) {
        if (*text[i] && !(run->kept[i] = strdup(*text[i]))) return base_no_memory("a name");
        *text[i] = run->kept[i];
    }
    return TRI_OK;
}

static tri_status plan_run(tri_run *run) {
    tri_options *o = &run->options;
    struct machine_place place = {.store = &run->store};
    tri_status status = tri_graph_status(run->model);
    if (!status) status = check_options(o);
    if (!status) status = checkpointer_check(&run->checkpointer, o);
    if (!status) status = settle_batch(run);
    if (!status) status = settle_optimizer(&o->optimizer, run->model, o->forward);
    if (!status) status = find_device(run);
    if (!status) status = optimizer_check(&o->optimizer);
    if (!status) status = schedule_parse(o->optimizer.schedule, &run->schedule);
    int threads = o->threads ? (int)o->threads : host_cores();
    if (!status) status = team_make(run->worker ? run->worker->threads : threads, &run->team);
    place.dev = run->dev;
    place.team = run->team;
    if (run->worker) {
        place.all_threads = worker_all_threads(run->worker);
        place.processes = worker_processes(run->worker);
        place.more_slots = worker_audit_slots(run->worker);
    }
    if (!status) status = executables_keep(run);
    if (!status) status = machine_plan(run->model, o, &place, run->machine);
    return status;
}

/* Of several workers one alone writes to parameters, and before the first step: a program's lines before
 * its loop run in every worker, also in those that come later. */
bool run_writes(const tri_run *run) {
    return !run->worker || (run->worker->writes && worker_reports(run->worker));
}

bool run_is_whole(const tri_run *run) {
    return run->worker ? worker_is_between(run->worker) : !run->machine->updating;
}

static tri_status open_run(tri_run *run) {
    tri_options *o = &run->options;
    tri_status status = o->forward ? TRI_OK : worker_join(&run->worker);
    crash_begin(run);
    run->holds_pipes = !o->forward;
    if (run->holds_pipes) pipes_hold();
    run_at(run, CREW_AT_COMPILE, -1);
    if (!status) status = plan_run(run);
    if (!status) crash_add_team(run);
    if (!status && run->machine->compilation.note)
        fprintf(stderr, "trireme: %s\n", run->machine->compilation.note);
    if (!status) status = open_data(run);
    if (!status) status = executables_plan(run);
    if (!status) status = policy_open(&run->policy, run);
    if (!status)
        status = run->worker ? worker_settle(run->worker, run) : machine_settle(run->machine, o);
    run->lr = machine_scalar(run->machine, "lr");
    run->number = machine_scalar(run->machine, "step");
    if (!status && !run->worker) status = executables_settle(run);
    if (!status) status = policy_settle(&run->policy, run);
    if (!status && run->worker) worker_count_bad(run->worker, run);
    if (!status && run_reports(run)) data_tell(run->data, o->quiet);
    if (!status && run_reports(run)) data_tell(run->policy.data, o->quiet);
    if (!status && o->load && run_writes(run)) status = tri_load(run, o->load);
    if (!status) status = checkpointer_resume(&run->checkpointer, run);
    if (!status && !run->worker && run->data) {
        status = loader_make(&run->loader, run, NULL);
        loader_done(&run->loader, run->done);
    }
    if (!status && o->metrics_every && !o->out && !run->worker)
        status = base_fail(TRI_USAGE, "--metrics-every (tri_options.metrics_every) is for metrics.jsonl: name its "
                           "directory with --out");
    if (!status) status = keep_texts(run);
    if (!status) status = record_open(&run->record, run);
    if (!status)
        status = run->worker ? worker_open_record(run->worker, run)
                           : record_file(&run->record, o->out, run->done, o->quiet);
    if (!status && !run->worker && !o->forward) status = events_open(o->on_event, o->out, NULL, &run->events);
    if (!status && run->checkpointer.resumed) policy_catch_up(&run->policy, run);
    if (status && run->worker) worker_log_failure(run->worker, tri_message());
    if (!run->worker) run_at(run, o->forward ? CREW_AT_REST : CREW_AT_CALLBACK, -1);
    return status;
}

void run_free(tri_run *run) {
    bool hangs = !loader_free(&run->loader);
    checkpointer_free(&run->checkpointer);
    policy_free(&run->policy);
    record_close(&run->record);
    evaluation_free(run->evaluation);
    if (run->worker) worker_release(run->worker, run->team);
    crash_end(run);
    if (run->holds_pipes) pipes_release();
    if (hangs) { /* and has its hands on all the rest */
        fprintf(stderr, "trireme: data %s does not come back to a thread that reads ahead, which is left behind\n",
                run->data->name);
        return;
    }
    for (int i = 0; i < run->n_executables; i++) machine_free(&run->executable[i]);
    store_free(&run->store);
    sampler_close(&run->sampler);
    tri_data_free(run->data);
    team_free(run->team);
    worker_free(run->worker);
    tri_graph_free(run->model);
    tri_graph_free(run->written);
    for (int i = 0; i < run->n_executables; i++) tri_graph_free(run->shape_model[i]);
    free(run->message);
    for (size_t i = 0; i < COUNT(run->kept); i++) free(run->kept[i]);
    free(run);
}

static tri_status plan_all(tri_run *run) {
    tri_status status = plan_run(run);
    return status ? status : policy_open(&run->policy, run);
}

static tri_status plan_workers(tri_run *run) {
    tri_status status = run->worker ? plan_all(run) : base_last();
    return status ? status : worker_measure(run->worker, run);
}

/* Takes the graph, and the options' source. shape: of the workers that are imagined; or null. */
static tri_run *make_run(tri_graph *g, const tri_options *o, tri_status (*how)(tri_run *run),
                         const struct crew_shape *shape) {
    tri_run *run = g ? calloc(1, sizeof *run) : NULL;
    if (!run) {
        if (g) base_no_memory("a run");
        if (!*tri_message()) base_fail(TRI_USAGE, "tri_open: the graph is a null pointer");
        if (o) tri_data_free(o->source);
        if (o) tri_data_free(o->eval_source);
        tri_graph_free(g);
        return NULL;
    }
    run->machine = run->executable;
    run->n_executables = 1;
    run->model = g;
    run->options = o ? *o : tri_options_default();
    run->set_rate = NAN;
    run->policy.data = run->options.eval_source;
    if (shape) run->worker = worker_imagine(shape);
    if (!how(run)) return run;
    if (!run->data) run->data = run->options.source;
    run_free(run);
    return NULL;
}

tri_run *tri_open(tri_graph *g, const tri_options *o) { return make_run(g, o, open_run, NULL); }
tri_run *run_plan(tri_graph *g, const tri_options *o) { return make_run(g, o, plan_all, NULL); }
tri_run *run_plan_workers(tri_graph *g, const tri_options *o, const struct crew_shape *shape) {
    return make_run(g, o, plan_workers, shape);
}

tri_status run_plan_data(tri_run *run) { return run->options.data ? open_data(run) : TRI_OK; }

/* ---- stepping ---- */

void run_at(tri_run *run, enum worker_at at, int part) {
    struct crash *c = &run->crash;
    if (run->worker) worker_at(run->worker, at, part);
    atomic_store_explicit(&c->at, (int)at, memory_order_relaxed);
    atomic_store_explicit(&c->part, part, memory_order_relaxed);
}

static void run_at_step(tri_run *run, enum worker_at at, int64_t step) {
    atomic_store_explicit(&run->crash.step, step, memory_order_relaxed);
    run_at(run, at, -1);
}

tri_status run_fetch(tri_run *run) {
    tri_status status = TRI_OK;
    if (run->data) {
        run->machine = executables_at(run, run->done + 1);
        machine_use_buffer(run->machine, loader_buffer(&run->loader, run->done + 1));
        status = loader_fetch_all(&run->loader, run->done + 1);
        run->epoch = sampler_epoch(&run->sampler, run->done);
    } else if (run->fed) {
        status = feed_take(run, run->done + 1);
    }
    feed_commit(run->machine);
    return status;
}

bool run_feeds(const tri_run *run) {
    const struct worker *c = run->worker;
    return !c || (run_writes(run) && c->told == run->done);
}

void run_set_scalars(tri_run *run, int64_t step) {
    run->rate = isnan(run->set_rate)
                    ? schedule_rate(&run->schedule, run->options.optimizer.lr, step, run->total)
                    : run->set_rate;
    if (run->lr) run->lr->value = (float)run->rate;
    if (run->number) run->number->value = (float)step;
}

/* Takes the schedule's place; NaN: the schedule's again. */
static tri_status set_rate(tri_run *run, double rate) {
    if (rate < 0 || isinf(rate))
        return base_fail(TRI_USAGE, "tri_set_scalar: \"lr\" is %g; it must be at least 0 and finite, "
                         "or NaN for the schedule", rate);
    run->set_rate = rate;
    return TRI_OK;
}

static bool is_own(const char *name) { return !strcmp(name, "step") || !strcmp(name, "lanes"); }

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

static tri_status run_machine(tri_run *run) {
    int64_t number = run->done + 1;
    run->fault.failed = false;
    machine_take_scalars(run->machine, run->executable);
    if (machine_step(run->machine, run->options.seed, number, &run->fault))
        return TRI_OK;
    loader_name_sample(&run->loader, number, &run->fault);
    return base_fail(TRI_FAILED, "step %lld: %s", (long long)number, run->fault.text);
}

/* What follows a step that this process tells of. */
static void follow_up(tri_run *run) {
    policy_step(&run->policy, run);
    checkpointer_step(&run->checkpointer, run);
    policy_publish(&run->policy, run);
}

static bool step_with_crew(tri_run *run) {
    tri_status status = TRI_OK;
    if (pipes_closed()) worker_note_unread(run->worker);
    bool more = worker_step(run->worker, run, &status);
    run->worker->writes = true;
    if (run_fail(run, status) || !more) return false;
    if (worker_tells(run->worker, run)) {
        diverge_warn(run);
        worker_record(run->worker, run);
        follow_up(run);
    }
    return true;
}

bool run_reports(const tri_run *run) { return !run->worker || worker_reports(run->worker); }
bool run_tells(const tri_run *run) { return !run->worker || worker_tells(run->worker, run); }

bool run_finish(tri_run *run) {
    if (!run->worker) return true;
    if (!worker_finish(run->worker, run)) return false;
    if (run->done && !run->status && !worker_tells(run->worker, run)) { /* who should have told it has died */
        run->worker->told = run->done;
        worker_record(run->worker, run);
    }
    return true;
}

struct crew_shown *run_shown(tri_run *run) { return run->worker ? crew_shown(run->worker) : NULL; }

bool run_hand_over(tri_run *run, const char *line) {
    if (run->worker) worker_last_line(run->worker, line);
    return run->worker;
}

int tri_rank(const tri_run *run) { return run && run->worker ? worker_rank(run->worker) : 0; }
int tri_size(const tri_run *run) { return run && run->worker ? worker_size(run->worker) : 1; }

bool run_is_asked_to_end(const tri_run *run) {
    const volatile sig_atomic_t *asked = atomic_load(&run->asked);
    return (asked && *asked) || (run->holds_pipes && pipes_closed()) ||
           (run->worker && worker_asked_to_end(run->worker));
}

bool run_is_late(const tri_run *run) {
    return run->options.max_time > 0 && base_seconds() - run->record.begin >= run->options.max_time;
}

bool tri_step(tri_run *run) {
    if (!run || run->status) return false;
    if (!run->worker && run_fail(run, diverge_check(run, run->done, run->skips))) return false;
    if (!run->worker && (run->done >= run->total || policy_stops(&run->policy))) return false;
    if (run->options.forward)
        return !run_fail(run, base_fail(TRI_USAGE, "tri_step: this run does not train "
                                        "(tri_options.forward); tri_feed, tri_forward, tri_read"));
    if (run->worker) return step_with_crew(run);
    if (pipes_closed() && !run->unread) {
        run->unread = true;
        fprintf(stderr, "trireme: " RUN_IS_UNREAD "\n"); /* of the two somebody may read this */
    }
    run->stopped = run->unread || run_is_late(run);
    if (run->stopped) return false;
    run_set_scalars(run, run->done + 1);
    run_at_step(run, CREW_AT_DATA, run->done + 1);
    tri_status status = run_fetch(run);
    if (!status) run_at(run, CREW_AT_COMPUTE, -1);
    if (!status) status = run_machine(run);
    run_at(run, CREW_AT_CALLBACK, -1);
    if (status && atomic_load(&run->gave_up)) {
        fprintf(stderr, "trireme: no samples came for step %lld: the run ends without it\n", (long long)run->done + 1);
        run->stopped = true;
        return false;
    }
    if (run_fail(run, status)) return false;
    run->done++;
    run->skips = finite_skips_in_row(run->machine, run->skips);
    if (run->data) loader_done(&run->loader, run->done);
    diverge_warn(run);
    record_step(&run->record, run);
    follow_up(run);
    return true;
}

tri_status tri_forward(tri_run *run) {
    if (!run) return TRI_FAILED;
    if (run->status) return base_fail(run->status, "%s", run->message ? run->message : "");
    if (!run->options.forward)
        return base_fail(TRI_USAGE, "tri_forward: this run trains (tri_step); tri_options.forward "
                         "opens one that does not");
    feed_commit(run->machine);
    run_at(run, CREW_AT_COMPUTE, -1);
    tri_status status = run_machine(run);
    run_at(run, CREW_AT_REST, -1);
    return status;
}

static void tell_end(const tri_run *run) {
    char text[128];
    if (!run->events) return;
    base_format(text, sizeof text, "%s %lld of %lld steps", run->stopped ? "stopped behind" : "ended behind",
                (long long)run->done, (long long)run->total);
    const struct event end = {.name = "end", .worker = -1, .step = run->done,
                              .message = run->status && run->message ? run->message : text,
                              .code = (int)(run->status ? run->status : run->stopped ? TRI_STOPPED : TRI_OK)};
    events_close(run->events, &end);
}

static tri_status leave(tri_run *run) {
    tri_status status = run->status;
    if (status) fprintf(stderr, "trireme: %s\n", run->message ? run->message : "out of memory");
    tell_end(run);
    if (run->worker && status) worker_log_failure(run->worker, run->message ? run->message : "out of memory");
    if (run->worker) worker_leave(run->worker, (int)status);
    if (!status && run->unread) status = base_fail(TRI_STOPPED, RUN_IS_UNREAD);
    run_free(run);
    return status;
}

tri_status tri_close(tri_run *run) {
    if (!run) {
        fprintf(stderr, "trireme: %s\n", tri_message());
        return base_last();
    }
    if (!run_finish(run)) return leave(run);
    if (!run->worker) run_at(run, CREW_AT_SAVE, -1);
    if (!run->status && run->options.save) run_fail(run, tri_save(run, run->options.save));
    run_fail(run, checkpointer_end(&run->checkpointer, run));
    run_fail(run, policy_end(&run->policy));
    run_fail(run, record_close(&run->record)); /* a broken file of metrics stops nothing before */
    return leave(run);
}

/* ---- looking ---- */

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
    run->dev->describe(what, sizeof what);
    snprintf(text, bytes, "%s (%s)", run->dev->name, what);
}
