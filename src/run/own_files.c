/* SPDX-License-Identifier: Apache-2.0 */
#include "run/own_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host.h"
#include "observe/earlier.h"
#include "run/checkpointer.h"
#include "run/describe.h"

/* Reports a failure of the series, after which nothing more is written to it. */
static void note_times(tri_status status) {
    if (status)
        fprintf(stderr, "trireme: workers.series lacks what follows: %s\n", tri_message());
}

/* ---- opening ---- */

static tri_status open_log(struct record *r, const char *directory) {
    char path[4096];
    base_format(path, sizeof path, "%s/run.log", directory);
    return log_open(&r->own.log, path, LOG_BUDGET);
}

static tri_status open_run(tri_run *run, const char *directory, bool goes_on) {
    char path[4096], *text = malloc(HOST_COMMAND);
    char *word[HOST_WORDS + 1];
    const struct plan_line *model = plan_find(&run->own_plan, PLAN_MODEL);
    struct own_files *own = &run->record->own;
    struct text about = {0};
    if (!text) return base_no_memory("run.json");
    host_command(text, word); /* as much as there is room for */
    const struct run_start start = {.title = model ? model->value : word[0], .command = word,
                                    .workers = 1, .threads = run_threads(run),
                                    .cores = host_cores()};
    base_format(path, sizeof path, "%s/run.json", directory);
    run_describe(run, SIZE_MAX, &about);
    tri_status status = about.failed ? base_no_memory("run.json")
                                     : run_file_begin(path, &start, goes_on, &own->run);
    own->first = run->done + 1;
    if (!status) run_file_describe(own->run, about.data);
    text_free(&about);
    free(text);
    return status;
}

tri_status own_files_open(tri_run *run) {
    const tri_options *o = &run->options;
    struct record *r = run->record;
    int earlier = 0;
    bool goes_on = false;
    tri_status status = TRI_OK;
    if (o->out && *o->out) status = earlier_move(o->out, false, &earlier);
    if (!status && o->out && run->done)
        status = earlier_restore(o->out, earlier, o->ckpt, &goes_on);
    if (!status && !goes_on && !o->quiet) earlier_tell(o->out, earlier, stderr);
    if (!status) status = record_file(r, o->out, goes_on, run->done);
    if (status || !o->out || o->forward) return status;
    status = open_log(r, o->out);
    if (!status && (status = open_run(run, o->out, goes_on))) log_close(&r->own.log);
    if (!status)
        note_times(own_series_open(&run->own_series, o->out, run->done, &run->own_time,
                                   run_lanes(run)));
    if (!status)
        log_event(&r->own.log, LOG_INFO, "begin", "step=%lld total=%lld pid=%d",
                  (long long)run->done, (long long)run->total, (int)getpid());
    return status;
}

/* ---- what happens ---- */

void own_files_failed(tri_run *run, const char *message) {
    const struct own_files *own = &run->record->own;
    if (own->run)
        log_event(&run->record->own.log, LOG_ERROR, "failure", "step=%lld text=%s",
                  (long long)run->done, message);
}

void own_files_saved(tri_run *run) {
    const struct checkpointer *c = run->checkpointer;
    const char *error = c->status ? c->error : "";
    if (run->record->own.run)
        log_event(&run->record->own.log, *error ? LOG_ERROR : LOG_INFO, "checkpoint",
                  "step=%lld bytes=%lld seconds=%g text=%s", (long long)c->state.step,
                  (long long)c->written, c->write_seconds, error);
}

void own_files_timed(tri_run *run, int64_t now) {
    note_times(own_series_turn(&run->own_series, now, run->done, run->own_time.took));
}

static void add_totals(tri_run *run) {
    struct own_files *own = &run->record->own;
    int64_t sum[SPENTS] = {0};
    run_file_steps(own->run, own->first, run->done);
    for (int t = 0; run->own_time.spending && t < run->own_time.threads; t++)
        spending_add(&run->own_time.spending[t], base_now(), sum);
    for (int k = 0; k < SPENTS; k++)
        run_file_total(own->run, 0, spent_rows[k].name, 1e-9 * (double)sum[k]);
}

void own_files_note(tri_run *run) {
    struct own_files *own = &run->record->own;
    add_totals(run);
    run_file_write(own->run);
}

void own_files_close(tri_run *run, int code) {
    struct own_files *own = &run->record->own;
    if (!own->run) return;
    note_times(own_series_close(&run->own_series, run->done));
    add_totals(run);
    run_file_end(own->run, code);
    log_event(&own->log, code ? LOG_WARNING : LOG_INFO, "end", "step=%lld code=%d",
              (long long)run->done, code);
    log_close(&own->log);
    own->run = NULL;
}
