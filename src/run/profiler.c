/* SPDX-License-Identifier: Apache-2.0 */
#include "run/profiler.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "crew/drain.h"
#include "run/executor.h"
#include "run/items.h"
#include "run/worker.h"

/* ---- which steps ---- */

/* *last is *first if there is one number. Null, or what was expected. */
static const char *read_steps(const char *text, int64_t *first, int64_t *last) {
    static const char expected[] = "steps=A..B, both included, as steps=10..20";
    long long a, b;
    int n = 0;
    if (sscanf(text, "steps=%lld..%lld%n", &a, &b, &n) != 2 || text[n]) {
        n = 0;
        if (sscanf(text, "steps=%lld%n", &a, &n) != 1 || text[n]) return expected;
        b = a;
    }
    *first = a;
    *last = b;
    if (a < 1) return "steps from 1 on";
    return b < a ? "steps=A..B where B is not less than A" : NULL;
}

static tri_status check(const tri_run *run, int64_t first, int64_t last) {
    if (!run->options.out && !(run->worker && *run->worker->head->told.out))
        return base_fail(TRI_USAGE, "a profile needs a directory: --out (tri_options.out)");
    if (last > run->total)
        return base_fail(TRI_USAGE, "--profile steps=%lld..%lld: the run ends after step %lld",
                         (long long)first, (long long)last, (long long)run->total);
    return TRI_OK;
}

tri_status profiler_take(tri_run *run) {
    const char *text = run->options.profile;
    if (!text) return TRI_OK;
    const char *expected = read_steps(text, &run->profile_first, &run->profile_last);
    if (expected) return base_fail(TRI_USAGE, "--profile %s: expected %s", text, expected);
    if (check(run, run->profile_first, run->profile_last)) return TRI_USAGE;
    if (run->profile_first > run->done) return TRI_OK;
    if (run->executor->reports(run))
        fprintf(stderr, "trireme: --profile %s: the run goes on from step %lld\n", text,
                (long long)run->done);
    run->profile_first = run->profile_last > run->done ? run->done + 1 : 0;
    return TRI_OK;
}

void profiler_expect(const tri_run *run, const char *folder, int64_t first, int64_t last) {
    const double bytes = (double)(items_in_step(run) * (last - first + 1)) * sizeof(struct span);
    if (!run->options.quiet)
        fprintf(stderr, "trireme: records steps %lld to %lld in %s, about %.1f MiB\n",
                (long long)first, (long long)last, folder, bytes / (1 << 20));
}

tri_status tri_profile(tri_run *run, int64_t first, int64_t last) {
    if (!run) return TRI_FAILED;
    if (first < 1 || last < first)
        return base_fail(TRI_USAGE, "tri_profile: steps %lld to %lld: the first is at least 1, and "
                         "the last no less", (long long)first, (long long)last);
    if (run->options.forward)
        return base_fail(TRI_USAGE, "tri_profile: this run makes no steps (tri_options.forward)");
    tri_status status = check(run, first, last);
    if (!status && first <= run->done && run->executor->reports(run))
        status = base_fail(TRI_USAGE, "tri_profile: step %lld is over; the next one is %lld",
                           (long long)first, (long long)run->done + 1);
    if (status) return status;
    run->profile_first = first;
    run->profile_last = last;
    return TRI_OK;
}

/* The other threads of the team wait: that ends here, so that they put in its span. */
static void wake_up(void *arg, int thread) {
    (void)arg;
    if (thread) spend(SPENT_UNKNOWN);
}

void profiler_stop(struct team *team) {
    team_run(team, wake_up, NULL);
    atomic_store(&spend_records, false);
}

/* ---- a run of one process ---- */

struct profiler {
    char folder[4096];
    struct drain *drain; /* null: nothing is recorded */
    int n, threads;
    struct ring **ring; /* of the team's threads, then tri_run.beside; until the run ends */
    struct drain_from *from;
    int64_t last;
};

static atomic_bool records_already; /* spend_records belongs to the process */

static void set_rings(tri_run *run, struct ring *const *ring) {
    struct own_time *o = &run->own_time;
    for (int i = 0; i < o->threads; i++) o->spender[i].ring = ring[i];
    for (int i = 0; i < SPEND_BESIDE; i++) run->beside[i] = ring[o->threads + i];
}

static tri_status make_rings(struct profiler *p, int threads) {
    p->threads = threads;
    p->n = threads + SPEND_BESIDE;
    p->ring = calloc((size_t)p->n, sizeof *p->ring);
    p->from = calloc((size_t)p->n, sizeof *p->from);
    if (!p->ring || !p->from) return base_no_memory("a profile");
    for (int i = 0; i < p->n; i++) {
        struct ring *r = p->ring[i] = aligned_alloc(_Alignof(struct ring), ring_bytes(RING_SPANS));
        if (!r) return base_no_memory("a profile");
        ring_make(r, RING_SPANS);
        p->from[i] = (struct drain_from){
            .ring = r, .capacity = RING_SPANS, .thread = i, .pid = getpid(),
            .what = span_thread_at(i, threads)};
    }
    return TRI_OK;
}

static tri_status make(tri_run *run) {
    if (run->profiler) return TRI_OK;
    if (!run->own_time.spender)
        return base_fail(TRI_FAILED, "another run of this process has its threads");
    struct profiler *p = run->profiler = calloc(1, sizeof *p);
    return p ? make_rings(p, run->own_time.threads) : base_no_memory("a profile");
}

static tri_status open_files(tri_run *run, struct profiler *p) {
    const int64_t first = run->profile_first, last = p->last = run->profile_last;
    const int64_t most = run->options.profile_most ? run->options.profile_most : PROFILER_MOST;
    tri_status status = drain_directory(run->options.out, first, p->folder);
    const struct drain_plan plan = {.directory = p->folder, .first = first, .last = last,
                                    .threads = p->threads, .most = most, .from = p->from,
                                    .n = p->n};
    if (!status) status = items_write(run, p->folder, first, last);
    if (!status) status = drain_open(&plan, &p->drain);
    return status ? status : drain_start(p->drain);
}

static void begin(tri_run *run) {
    tri_status status = make(run);
    if (!status && atomic_exchange(&records_already, true))
        status = base_fail(TRI_FAILED, "another run of this process is being recorded");
    else if (!status && (status = open_files(run, run->profiler)))
        atomic_store(&records_already, false);
    if (status) {
        fprintf(stderr, "trireme: no profile is recorded: %s\n", tri_message());
        if (run->profiler) drain_close(run->profiler->drain), run->profiler->drain = NULL;
        return;
    }
    profiler_expect(run, run->profiler->folder, run->profile_first, run->profile_last);
    set_rings(run, run->profiler->ring);
    atomic_store(&spend_records, true);
    own_time_whole(&run->own_time);
}

void profiler_finish(tri_run *run) {
    struct profiler *p = run->profiler;
    struct drain_seen seen;
    if (!p || !p->drain) return;
    profiler_stop(run->team);
    drain_stop(p->drain);
    drain_look(p->drain, &seen);
    if (seen.lost)
        fprintf(stderr, "trireme: the profile lacks %lld spans%s%s\n", (long long)seen.lost,
                seen.error ? ": " : seen.full ? ": --profile-most has been reached" : "",
                seen.error ? seen.error : "");
    drain_close(p->drain);
    p->drain = NULL;
    atomic_store(&records_already, false);
}

void profiler_turn(tri_run *run, int64_t step) {
    if (run->profiler && run->profiler->drain && step > run->profiler->last) profiler_finish(run);
    if (run->profile_first && step == run->profile_first) {
        profiler_finish(run);
        begin(run);
    }
    for (int i = 0; run->profiler && i < run->own_time.threads; i++)
        run->own_time.spender[i].step = (uint32_t)step;
}

void profiler_free(tri_run *run) {
    struct profiler *p = run->profiler;
    for (int i = 0; p && p->ring && i < p->n; i++) free(p->ring[i]);
    if (p) free(p->ring);
    if (p) free(p->from);
    free(p);
    run->profiler = NULL;
}
