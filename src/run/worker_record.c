/* SPDX-License-Identifier: Apache-2.0
 * What the reporter writes: metrics.jsonl, and the last line for the agent. Another worker may have
 * begun the file and died. */
#include <stdio.h>

#include "run/record.h"
#include "run/worker_inside.h"

/* ---- metrics.jsonl ---- */

static int look(void *user, struct observed_worker *out) {
    const struct crew_head *h = user;
    for (int i = 0; i < h->size.places; i++) {
        struct worker_spent s = worker_spent_of(h, i);
        struct crew_seats seats;
        if (!crew_seats_of(h, i, &seats)) seats.replica = seats.first = seats.last = -1;
        out[i] = (struct observed_worker){
            .worker = i, .takes_part = atomic_load(&h->worker[i].rank) >= 0,
            .compute = 1e-9 * (double)spent_of(s.time, SPENT_COMPUTES),
            .wait = 1e-9 * (double)spent_of(s.time, SPENT_WAITS),
            .reduce = 1e-9 * (double)spent_of(s.time, SPENT_SUMS),
            .data = 1e-9 * (double)spent_of(s.time, SPENT_READS),
            .lanes = (int64_t)s.lanes, .peak = atomic_load(&h->worker[i].peak),
            .replica = seats.replica, .seats = {seats.first, seats.last}};
    }
    return h->size.places;
}

/* All reporters measure time from the first step on. */
static void settle_begin(const struct worker *c, tri_run *run) {
    int64_t began = atomic_load(&c->head->course.began);
    double begin = 1e-9 * (double)began;
    if (!began || run->record->begin == begin) return;
    run->record->begin = begin;
    run->record->aside = 0;
}

/* Called before the loop too, so that a file that cannot be written is an error at the start. */
tri_status worker_open_record(struct worker *c, tri_run *run) {
    struct crew_head *h = c->head;
    char parent[PATH_MAX + 4];
    const bool moved = worker_has_hosts(c) && h->hosts.self > 0 && !atomic_load(&h->told.recorded);
    const char *directory = run->options.out;
    base_format(parent, sizeof parent, "%s%s", h->told.out, worker_has_hosts(c) ? "/.." : "");
    if (!directory && *h->told.out) directory = parent;
    if (c->records || !worker_reports(c)) return TRI_OK;
    settle_begin(c, run);
    c->records = true;
    bool goes_on = atomic_load(&h->told.recorded) || atomic_load(&h->course.base) ||
                   (moved && worker_shares_directory(c));
    tri_status status = record_file(run->record, directory, goes_on, run->options.quiet);
    if (!status) atomic_store(&h->told.recorded, 1);
    if (!status && moved && !goes_on) /* the lines before are on the host that told before */
        run->record->metrics.through = (int64_t)atomic_load(&h->course.committed) - 1;
    if (!status)
        status = metrics_watch(&run->record->metrics, (struct metrics_workers){
                                   .look = look, .user = h, .most = h->size.places});
    return status;
}

void worker_record(struct worker *c, tri_run *run) {
    if (worker_open_record(c, run)) {
        fprintf(stderr, "trireme: metrics.jsonl is not continued: %s\n", tri_message());
        worker_log_failure(c, tri_message());
    }
    settle_begin(c, run);
    record_step(run->record, run);
}

void worker_last_line(struct worker *c, const char *line) {
    base_format(c->head->told.last_line, sizeof c->head->told.last_line, "%s\n", line);
}
