/* SPDX-License-Identifier: Apache-2.0
 * What trireme report says of a folder that run_made.h has made; include it after scratch.h. */
#ifndef REPORT_JUDGED_H
#define REPORT_JUDGED_H

#include "unit/run_made.h"

struct judged {
    struct figures f;
    struct report r;
};

static inline void judge_folder(const char *folder, struct judged *j) {
    if (figures_read(folder, &j->f)) fail_msg("%s", tri_message());
    report_make(&j->f, &j->r);
}

static inline void judge(const struct world *w, struct judged *j) {
    world_make(w, directory);
    judge_folder(directory, j);
}

static inline void done(struct judged *j) {
    report_free(&j->r);
    figures_free(&j->f);
}

/* -1: it has found nothing. */
static inline int place_of(const struct judged *j, const char *rule) {
    for (size_t i = 0; i < j->r.n; i++)
        if (!strcmp(j->r.finding[i].rule->name, rule)) return (int)i;
    return -1;
}

static inline char *text_of(const struct judged *j, bool json) {
    struct text t = {0};
    (json ? report_json : report_text)(&j->r, &t);
    assert_false(t.failed);
    return t.data;
}

static inline void has(const struct judged *j, const char *part) {
    char *text = text_of(j, false), *to = text;
    for (const char *from = text; *from; from++) /* lines are wrapped */
        if (*from != '\n' && *from != ' ') *to++ = *from;
        else if (to > text && to[-1] != ' ') *to++ = ' ';
    *to = 0;
    if (!strstr(text, part)) fail_msg("'%s' is not in '%s'", part, text);
    free(text);
}

/* ---- changes of a run ---- */

static inline void wait_for_all(struct world *w, enum spent kind, double x) {
    for (int i = 0; i < w->workers; i++) w->spent[i][kind] = x;
}

/* One worker does it, and the others wait until it opens the next step. */
static inline void one_does(struct world *w, enum spent kind, double x) {
    wait_for_all(w, SPENT_WAIT_OPENING, x);
    w->spent[0][SPENT_WAIT_OPENING] = 0;
    w->spent[0][kind] = x;
}

static inline void slow_worker(struct world *w, double x) { w->done[1] = w->done[0] / x; }

static inline void shared_core(struct world *w, double x) {
    w->no_core[1] = x;
    w->log = world_shared(4, 71, "worker 1 was ready; py\\u001b[31m, pid 7, ran for 0.9 s of the "
                               "last second on its core, 1");
}

/* All time without a core is that of the quota. */
static inline void throttled(struct world *w, double x) {
    w->throttled_periods = x;
    w->throttled = 0.3;
    for (int i = 0; i < w->workers; i++) w->no_core[i] = 0.3;
}

static inline void crowded(struct world *w, double x) {
    w->cores = (int)x;
    wait_for_all(w, SPENT_WAIT_LANES, 0);
    for (int i = 0; i < w->workers; i++) w->no_core[i] = 0.09;
}

static inline void stolen(struct world *w, double x) { w->stolen = x; }

static inline void drift(struct world *w, double x) {
    w->late = 60;
    w->later = x;
}

static inline void samples(struct world *w, double x) {
    wait_for_all(w, SPENT_WAIT_SAMPLES, x);
    w->options = "\"--data-threads\":\"2\"";
}

static inline void reads(struct world *w, double x) { wait_for_all(w, SPENT_READ, x); }

static inline void uneven_lanes(struct world *w, double x) {
    w->lanes = 7;
    w->batch = 56;
    wait_for_all(w, SPENT_WAIT_LANES, x);
}

/* A lane less than workers: the last one has nothing to do. */
static inline void idle(struct world *w, double x) {
    if (!(x > 0)) return;
    memset(w->spent[1], 0, sizeof w->spent[1]);
    w->spent[1][SPENT_WAIT_OPENING] = 1;
    w->lanes = 1;
    w->done[0] = 1;
    w->done[1] = 0;
}

static inline void threads(struct world *w, double x) {
    w->workers = 1;
    w->threads = 2;
    wait_for_all(w, SPENT_WAIT_THREADS, 0.95 - x / 2);
}

static inline void not_worth_it(struct world *w, double x) {
    wait_for_all(w, SPENT_WAIT_TASKS, 0.95 - x / 2);
}

static inline void saving(struct world *w, double x) {
    one_does(w, SPENT_SAVE, x / 2);
    w->spent[0][SPENT_WAIT_SAVE] = x / 2;
    w->options = "\"--save-every\":\"10\",\"--ckpt\":\"ck\"";
}

static inline void evaluating(struct world *w, double x) {
    wait_for_all(w, SPENT_EVALUATE, x);
    w->options = "\"--eval-every\":\"epoch\"";
}

static inline void callback(struct world *w, double x) { one_does(w, SPENT_CALLBACK, x); }

static inline void auditing(struct world *w, double x) {
    wait_for_all(w, SPENT_AUDIT, x);
    w->command = "\"trireme\",\"--audit\",\"0.5\"";
}

static inline void lost_lanes(struct world *w, double x) {
    w->lost[1] = x * 8;
    w->done[1] = 4 - x * 8;
    w->done[0] = 4 + x * 8;
}

static inline void goodput(struct world *w, double x) {
    w->slowest = x;
    w->faults = "{\"kind\":\"death\",\"time\":1000,\"worker\":1,\"cost\":0.2}";
}

static inline void memory(struct world *w, double x) {
    for (int i = 0; i < w->workers; i++) w->memory[i] = x * 50 * 1048576;
    w->options = "\"--memory-limit\":\"100M\"";
}

static inline void unplanned(struct world *w, double x) { w->planned = (int)(100e6 / (1 + x)); }

static inline void skipped(struct world *w, double x) {
    static char lines[256];
    snprintf(lines, sizeof lines, "{\"step\":50,\"steps\":50,\"loss\":1,\"skipped\":1}\n"
             "{\"step\":1000,\"steps\":950,\"loss\":1,\"skipped\":%.0f}\n", 1000 * x);
    w->metrics = lines;
}

static inline void not_finite(struct world *w, double x) {
    w->metrics = x > 0 ? "{\"step\":990,\"loss\":1}\n{\"step\":1000,\"loss\":null}\n"
                       : "{\"step\":990,\"loss\":1}\n{\"step\":1000,\"loss\":2}\n";
}

static inline void fails(struct world *w, double x) {
    if (x > 0)
        w->log = "{\"time\":\"1\",\"level\":\"error\",\"event\":\"failure\",\"step\":1,\"text\":"
                 "\"step 2: lane 0: the loss is nan\"}\n";
}

static inline void hosts_link(struct world *w, double x) {
    w->hosts = "\"h0\",\"h1\"";
    wait_for_all(w, SPENT_WAIT_HOSTS, x);
}

static inline void incomplete(struct world *w, double x) { w->damaged = x > 0; }

static inline int empty(void **state) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s/hosts", directory);
    return empty_directory(state) | system(command);
}

#endif
