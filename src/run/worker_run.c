/* SPDX-License-Identifier: Apache-2.0
 * The executor of a run with several workers. */
#include "base/pipes.h"
#include "run/checkpointer.h"
#include "run/crash.h"
#include "run/executor.h"
#include "run/follow.h"
#include "run/policy.h"
#include "run/worker_inside.h"

static int threads(const tri_run *run) { return run->worker->threads; }

static void place(const tri_run *run, struct machine_place *p) {
    p->all_threads = worker_all_threads(run->worker);
    p->processes = worker_processes(run->worker);
    p->auditors = worker_auditors(run->worker);
    p->hosts = run->worker->head->size.hosts;
    p->weight = run->worker->head->size.weight;
    p->paths = run->worker->head->size.paths;
}

static tri_status settle(tri_run *run) { return worker_settle(run->worker, run); }

static tri_status start(tri_run *run) {
    worker_count_bad(run->worker, run);
    return worker_open_record(run->worker, run);
}

static void failed(tri_run *run, const char *message) { worker_log_failure(run->worker, message); }

static void record(tri_run *run) {
    const enum spent was = spend(SPENT_RECORD);
    worker_record(run->worker, run);
    spend(was);
}

static bool step(tri_run *run) {
    struct worker *c = run->worker;
    tri_status status = TRI_OK;
    if (!pthread_equal(c->opener, pthread_self())) /* its mutex stands for the thread that opened */
        status = base_fail(TRI_USAGE, "tri_step is called by another thread than tri_open; with "
                           "workers (trireme run) the thread that opens a run makes its steps");
    if (run_fail(run, status)) return false;
    if (pipes_closed()) worker_note_unread(c);
    bool more = worker_step(c, run, &status);
    c->writes = true;
    if (run_fail(run, status) || !more) return false;
    if (worker_reports_step(c, run)) follow_step(run, record);
    return true;
}

static bool finish(tri_run *run) {
    struct worker *c = run->worker;
    if (!worker_finish(c, run)) return false;
    /* The reporter of the last step has died before it recorded the step. */
    if (run->done && !run->status && !worker_reports_step(c, run)) {
        c->reported = run->done;
        worker_record(c, run);
    }
    return true;
}

static void leave(tri_run *run, tri_status status) { worker_leave(run->worker, (int)status); }
static void release(tri_run *run) { worker_release(run->worker, run->team); }
static void free_worker(tri_run *run) { worker_free(run->worker); }

static void at(tri_run *run, enum crew_at what, int part) { worker_at(run->worker, what, part); }
static bool reports(const tri_run *run) { return worker_reports(run->worker); }
static bool reports_step(const tri_run *run) { return worker_reports_step(run->worker, run); }
static bool writes(const tri_run *run) { return run->worker->writes && worker_opens(run->worker); }
static bool feeds(const tri_run *run) { return writes(run) && run->worker->reported == run->done; }
static bool is_whole(const tri_run *run) { return worker_is_between(run->worker); }
static bool asked_to_end(const tri_run *run) { return worker_asked_to_end(run->worker); }
static bool gives_up(tri_run *run) { return atomic_load(&run->worker->head->course.ending); }
static int size(const tri_run *run) { return worker_size(run->worker); }

static int cores(const tri_run *run) { return run->worker->head->size.cores; }
static struct run_ranks ranks(const tri_run *run) { return worker_ranks(run->worker); }
static struct crew_shown *shown(tri_run *run) { return &run->worker->head->told.shown; }

static bool take_last_line(tri_run *run, const char *line) {
    worker_last_line(run->worker, line);
    return true;
}

static tri_status evaluate(tri_run *run, tri_data *data) {
    return worker_evaluate(run->worker, run, data);
}

static void set_policy(tri_run *run) { worker_set_policy(run->worker, &run->policy->is); }
static int64_t base(const tri_run *run) { return worker_base(run->worker); }

static void begin_at(tri_run *run) {
    set_policy(run);
    worker_begin_at(run->worker, run->done);
}

static bool saw_deaths(const tri_run *run) {
    const struct crew_head *h = run->worker->head;
    return atomic_load(&h->workers.epoch) || atomic_load(&h->hosts.epoch) > 1 ||
           (h->hosts.n > 1 && atomic_load(&h->course.ending));
}

static enum file_place writes_files(const tri_run *run) {
    return worker_writes_files(run->worker);
}

static void save_failed(tri_run *run, const char *message) {
    worker_save_failed(run->worker, message);
}

static void saved(tri_run *run) {
    const struct checkpointer *c = run->checkpointer;
    worker_log_checkpoint(run->worker, c->state.step, c->written, c->write_seconds,
                          c->status ? c->error : NULL);
}

static uint32_t save_asked(const tri_run *run) { return worker_save_asked(run->worker); }

static void save_answer(tri_run *run, uint32_t asked, const char *error) {
    worker_save_answer(run->worker, asked, error, run->done);
}

const struct executor executor_worker = {
    .threads = threads, .place = place, .settle = settle, .start = start, .failed = failed,
    .step = step, .finish = finish, .leave = leave, .release = release, .free = free_worker,
    .at = at, .reports = reports, .reports_step = reports_step, .writes = writes, .feeds = feeds,
    .is_whole = is_whole, .asked_to_end = asked_to_end, .gives_up = gives_up, .size = size,
    .cores = cores,
    .ranks = ranks,
    .shown = shown, .take_last_line = take_last_line, .look = worker_look,
    .crashed = worker_crashed, .traced = worker_traced, .evaluate = evaluate,
    .set_policy = set_policy, .base = base, .begin_at = begin_at, .saw_deaths = saw_deaths,
    .writes_files = writes_files, .save_failed = save_failed, .saved = saved,
    .save_asked = save_asked, .save_answer = save_answer,
};
