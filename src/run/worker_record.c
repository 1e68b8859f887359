/* SPDX-License-Identifier: Apache-2.0
 * What the reporter writes: metrics.jsonl, and the last line for the agent. Another worker may have
 * begun the file and died. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "observe/earlier.h"
#include "run/describe.h"
#include "run/predicted.h"
#include "run/record.h"
#include "run/worker_inside.h"

/* ---- metrics.jsonl ---- */

/* All reporters measure time from the first step on. */
static void settle_begin(const struct worker *c, tri_run *run) {
    int64_t began = atomic_load(&c->head->course.began);
    double begin = 1e-9 * (double)began;
    if (!began || run->record->begin == begin) return;
    run->record->begin = begin;
    run->record->aside = 0;
}

/* The run's directory; of several hosts, each has a directory below it. */
static const char *directory_of(const struct worker *c, char path[PATH_MAX + 8]) {
    const struct crew_head *h = c->head;
    base_format(path, PATH_MAX + 8, "%s%s", h->told.out, worker_has_hosts(c) ? "/../.." : "");
    return *h->told.out ? path : NULL;
}

static bool same_directory(const char *a, const char *b) {
    struct stat one, other;
    return !stat(a, &one) && !stat(b, &other) && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

/* What an earlier run has left in the directory has a number. If this run continues that one, its
 * files have their names again. */
static tri_status take_back(const struct worker *c, const tri_run *run, const char *directory,
                            int number, bool *found) {
    const bool resumes = atomic_load(&c->head->course.base) && !c->head->hosts.joins;
    tri_status status = TRI_OK;
    *found = false;
    if (resumes) status = earlier_restore(directory, number, run->options.ckpt, found);
    if (!status && !*found && !run->options.quiet && worker_reports(c))
        earlier_tell(directory, number, stderr);
    return status;
}

/* The agent has given the files in its directory a number. A program may have one of its own. */
static tri_status settle_earlier(struct worker *c, const tri_run *run, const char *agents) {
    struct crew_told *t = &c->head->told;
    const char *own = run->options.out;
    const bool same = own && agents && same_directory(own, agents);
    int number = t->earlier;
    bool found = false;
    tri_status status = TRI_OK;
    if (atomic_load(&t->recorded) || atomic_load(&t->continues)) return TRI_OK;
    if (agents) status = take_back(c, run, same ? own : agents, number, &found);
    atomic_store(&t->continues, found);
    if (status || !own || same || !worker_reports(c)) return status;
    status = earlier_move(own, false, &number);
    return status ? status : take_back(c, run, own, number, &found);
}

/* Leaves a description of the run to the agent. */
static void describe(struct worker *c, const tri_run *run) {
    struct crew_told *t = &c->head->told;
    struct text about = {0};
    if (atomic_load(&t->described)) return;
    run_describe(run, sizeof t->about - 1, &about);
    if (!about.failed && about.size < sizeof t->about) memcpy(t->about, about.data, about.size + 1);
    text_free(&about);
    atomic_store(&t->described, 1);
}

/* Called before the loop too, so that a file that cannot be written is an error at the start. */
tri_status worker_open_record(struct worker *c, tri_run *run) {
    struct crew_head *h = c->head;
    char path[PATH_MAX + 8];
    const bool moved = worker_has_hosts(c) && h->hosts.self > 0 && !atomic_load(&h->told.recorded);
    const char *agents = directory_of(c, path);
    const char *directory = run->options.out ? run->options.out : agents;
    if (c->records || !worker_opens(c)) return TRI_OK;
    describe(c, run);
    tri_status status = settle_earlier(c, run, agents);
    if (status || !worker_reports(c)) return status;
    settle_begin(c, run);
    c->records = true;
    bool goes_on = atomic_load(&h->told.recorded) || atomic_load(&h->course.base) ||
                   (moved && worker_shares_directory(c));
    status = record_file(run->record, directory, goes_on, goes_on ? worker_base(c) : 0);
    run->record->metrics.at_once = true;
    worker_count_hosts(c, run->record);
    run->record->metrics.before = run->record->hosts;
    if (!status) atomic_store(&h->told.recorded, 1);
    if (!status && moved && !goes_on) /* the lines before are on the host that told before */
        run->record->metrics.through = (int64_t)atomic_load(&h->course.committed) - 1;
    return status;
}

void worker_record(struct worker *c, tri_run *run) {
    if (worker_open_record(c, run)) {
        fprintf(stderr, "trireme: metrics.jsonl is not continued: %s\n", tri_message());
        worker_log_failure(c, tri_message());
    }
    settle_begin(c, run);
    worker_count_hosts(c, run->record);
    record_step(run->record, run);
    predicted_step(run);
}

void worker_last_line(struct worker *c, const char *line) {
    base_format(c->head->told.last_line, sizeof c->head->told.last_line, "%s\n", line);
}
