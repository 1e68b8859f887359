/* SPDX-License-Identifier: Apache-2.0
 * The executor of a run with one process. */
#include <math.h>
#include <stdio.h>

#include "base/host.h"
#include "base/pipes.h"
#include "crew/messages.h"
#include "data/data.h"
#include "machine/budget.h"
#include "observe/events.h"
#include "run/checkpointer.h"
#include "run/crash.h"
#include "run/diverge.h"
#include "run/evaluate.h"
#include "run/executables.h"
#include "run/executor.h"
#include "run/feed.h"
#include "run/follow.h"
#include "run/loader.h"
#include "run/own_files.h"
#include "run/policy.h"
#include "run/predicted.h"
#include "run/profile.h"
#include "run/profiler.h"
#include "run/record.h"

#define PATIENCE 3000000000 /* ns to wait for samples after the run was asked to end */

/* ---- opening ---- */

static int threads(const tri_run *run) {
    return run->options.threads ? (int)run->options.threads : host_cores();
}

static void place(const tri_run *run, struct machine_place *p) { (void)run, (void)p; }

static tri_status settle(tri_run *run) {
    const struct machine *last = evaluation_machine(run);
    tri_status status = budget_check(last, &run->store, run->options.memory_limit);
    run->too_large = status != TRI_OK;
    if (!status) status = machine_allocate(run->machine, &run->options);
    return status ? status : executables_settle(run);
}

static tri_status start(tri_run *run) {
    const tri_options *o = &run->options;
    tri_status status = TRI_OK;
    if (!o->forward) own_time_open(&run->own_time, run->team);
    if (run->data) {
        status = loader_make(run->loader, run, NULL);
        loader_done(run->loader, run->done);
    }
    if (!status && o->metrics_every && !o->out)
        status = base_fail(TRI_USAGE, "--metrics-every (tri_options.metrics_every) is for "
                           "metrics.jsonl, which needs a directory: --out");
    if (!status) status = own_files_open(run);
    if (!status && !o->forward) status = events_open(o->on_event, o->out, NULL, &run->events);
    return status;
}

static void ignore_message(tri_run *run, const char *message) { (void)run, (void)message; }

/* ---- a step ---- */

static const enum spent spent_at[CREW_ATS] = {
    [CREW_AT_COMPILE] = SPENT_START,    [CREW_AT_DATA] = SPENT_READ,
    [CREW_AT_COMPUTE] = SPENT_COMPUTE,  [CREW_AT_CALLBACK] = SPENT_CALLBACK,
    [CREW_AT_EVALUATE] = SPENT_EVALUATE, [CREW_AT_SAVE] = SPENT_SAVE,
    [CREW_AT_REST] = SPENT_CALLBACK};

static inline void note(tri_run *run, enum crew_at what, int part) {
    crash_note(run->crash, what, part);
    if (run->own_time.on) spend(spent_at[what]);
}

static void at(tri_run *run, enum crew_at what, int part) {
    const bool calls = what == CREW_AT_CALLBACK && part >= 0;
    if (what == CREW_AT_EVALUATE || what == CREW_AT_SAVE || calls) own_time_apart(&run->own_time);
    note(run, what, part);
}

static tri_status fetch(tri_run *run) {
    tri_status status = TRI_OK;
    if (run->data) {
        run->machine = executables_at(run, run->done + 1);
        machine_use_buffer(run->machine, loader_buffer(run->loader, run->done + 1));
        status = loader_fetch_all(run->loader, run->done + 1);
        run->epoch = sampler_epoch(&run->sampler, run->done);
    } else if (run->fed) {
        status = feed_take(run, run->done + 1);
    }
    feed_commit(run->machine);
    return status;
}

static tri_status compute(tri_run *run) {
    int64_t number = run->done + 1;
    run->fault.failed = false;
    machine_copy_scalars(run->machine, run->executable);
    if (machine_step(run->machine, run->options.seed, number, &run->fault)) return TRI_OK;
    loader_name_sample(run->loader, number, &run->fault);
    return base_fail(TRI_FAILED, "step %lld: %s", (long long)number, run->fault.text);
}

/* Whether there is a next step. */
static bool goes_on(tri_run *run) {
    if (run_fail(run, diverge_check(run, run->done, run->skips))) return false;
    if (run->done >= run->total || policy_stops(run->policy)) return false;
    if (pipes_closed() && !run->unread) {
        run->unread = true;
        fprintf(stderr, "trireme: " RUN_IS_UNREAD "\n"); /* stderr may still have a reader */
    }
    run->stopped = run->unread || run_is_late(run);
    return !run->stopped;
}

static void record(tri_run *run) {
    const bool on = run->own_time.on;
    if (on) spend(SPENT_RECORD);
    record_step(run->record, run);
    predicted_step(run);
    own_files_step(run);
    if (on) spend(SPENT_CALLBACK);
}

static bool step(tri_run *run) {
    const int64_t now = own_time_step(&run->own_time);
    if (now) own_files_timed(run, now);
    if (run->profile_first || run->profiler) profiler_turn(run, run->done + 1);
    checkpointer_answer(run->checkpointer, run);
    if (!goes_on(run)) return false;
    run_set_scalars(run, run->done + 1);
    crash_note_step(run->crash, run->done + 1);
    note(run, CREW_AT_DATA, -1);
    tri_status status = fetch(run);
    if (!status) note(run, CREW_AT_COMPUTE, -1);
    if (!status) status = compute(run);
    note(run, CREW_AT_CALLBACK, -1);
    if (status && atomic_load(&run->gave_up)) {
        fprintf(stderr, "trireme: no samples arrived for step %lld: the run ends without it\n",
                (long long)run->done + 1);
        run->stopped = true;
        return false;
    }
    if (run_fail(run, status)) return false;
    run->done++;
    run->skips = finite_skips(run->machine, run->skips);
    if (run->data) loader_done(run->loader, run->done);
    follow_step(run, record);
    return true;
}

tri_status tri_forward(tri_run *run) {
    if (!run) return TRI_FAILED;
    if (run->status) return base_fail(run->status, "%s", run->message ? run->message : "");
    if (!run->options.forward)
        return base_fail(TRI_USAGE, "tri_forward: this run trains, use tri_step; for tri_forward "
                         "open it with tri_options.forward");
    feed_commit(run->machine);
    at(run, CREW_AT_COMPUTE, -1);
    tri_status status = compute(run);
    at(run, CREW_AT_REST, -1);
    return status;
}

/* ---- the rest of the table ---- */

static bool yes(const tri_run *run) { (void)run; return true; }
static bool no(const tri_run *run) { (void)run; return false; }
static bool finish(tri_run *run) { (void)run; return true; }
static void leave(tri_run *run, tri_status status) {
    own_files_close(run, status ? (int)status : run->stopped ? TRI_STOPPED : TRI_OK);
}
static void nothing(tri_run *run) { (void)run; }
static void release(tri_run *run) {
    own_files_close(run, TRI_FAILED); /* unless it has left */
    profile_end(run);
    profiler_finish(run);
    own_time_close(&run->own_time, run->team);
}
static bool is_whole(const tri_run *run) { return !run->machine->updating; }

static bool gives_up(tri_run *run) {
    int64_t never = 0, now = base_now();
    if (!run_is_asked_to_end(run) && !run_is_late(run)) return false;
    atomic_compare_exchange_strong(&run->asked_since, &never, now);
    if (now - atomic_load(&run->asked_since) < PATIENCE) return false;
    atomic_store(&run->gave_up, true);
    return true;
}

static enum file_place ours(const tri_run *run) { (void)run; return FILES_OURS; }
static int size(const tri_run *run) { (void)run; return 1; }
static int cores(const tri_run *run) { (void)run; return 0; }
static struct run_ranks ranks(const tri_run *run) {
    (void)run;
    return (struct run_ranks){0, 1, 0, 1};
}
static struct crew_shown *shown(tri_run *run) { (void)run; return NULL; }
static bool take_last_line(tri_run *run, const char *line) { (void)run, (void)line; return false; }
static int64_t base(const tri_run *run) { (void)run; return 0; }
static uint32_t save_asked(const tri_run *run) { (void)run; return 0; }
static void save_answer(tri_run *run, uint32_t asked, const char *error) {
    (void)run, (void)asked, (void)error;
}

const struct executor executor_alone = {
    .threads = threads, .place = place, .settle = settle, .start = start,
    .failed = own_files_failed, .step = step, .finish = finish, .leave = leave,
    .release = release, .free = profiler_free,
    .at = at, .reports = yes, .reports_step = yes, .writes = yes, .feeds = yes,
    .is_whole = is_whole, .asked_to_end = no, .gives_up = gives_up, .size = size, .cores = cores,
    .ranks = ranks,
    .shown = shown, .take_last_line = take_last_line, .look = crash_look, .crashed = crash_found,
    .traced = crash_traced, .evaluate = tri_evaluate, .set_policy = nothing, .base = base,
    .begin_at = nothing, .saw_deaths = no, .writes_files = ours,
    .save_failed = ignore_message, .saved = own_files_saved,
    .save_asked = save_asked, .save_answer = save_answer,
};
