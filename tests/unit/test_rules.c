/* SPDX-License-Identifier: Apache-2.0
 * Rules of trireme report on runs that never ran, on both sides of their thresholds. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs these headers */
#include <setjmp.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>

#include "unit/scratch.h"

#include "unit/report_judged.h"

static const struct {
    const char *rule;
    void (*change)(struct world *w, double x);
    const double *threshold; /* null: silent and found are values, else parts of it */
    double silent, found;
    const char *evidence, *remedy;
} cases[] = {
    {"slow-worker", slow_worker, &thresholds.slow_worker, 0.99, 1.02,
     "Worker 1 computes 18 % slower than the median: 1.4 ms a lane instead of 1.2 ms.",
     "use fewer workers"},
    {"shared-core", shared_core, &thresholds.no_core, 0.98, 1.1,
     "Z the agent saw: py\\x1b[31m, pid 7, ran for 0.9 s of the last second on its core, 1.",
     "End the process on its core (pid 71)"},
    {"shared-core", stolen, &thresholds.stolen, 0.98, 1.1, "The hypervisor of this machine gave",
     "cores are its own"},
    {"throttled", throttled, &thresholds.throttled_periods, 0.9, 1.2,
     "stopped the run in 6 % of the periods, for 30 % of its threads' time", "Raise the quota"},
    {"crowded", crowded, NULL, 2, 1, "2 workers of 1 thread share 1 core", "Use -n 1."},
    {"drift", drift, NULL, 1.08, 1.15,
     "15 % longer than in the run's best tenth, since step 601. What grew most: a worker computes",
     "See what changed"},
    {"samples", samples, &thresholds.samples, 0.9, 1.2, "Workers wait for samples 6 % of a step",
     "Use --data-threads 3"},
    {"samples", reads, &thresholds.samples, 0.9, 1.2, "Threads that compute read samples "
     "themselves for 6 % of a step: the samples of a step take one thread about 600 us.",
     "Use --data-threads 2"},
    {"uneven-lanes", uneven_lanes, &thresholds.uneven_lanes, 0.98, 1.02,
     "7 lanes for 2 workers", "Use --lanes 8"},
    {"uneven-lanes", idle, NULL, 0, 1, "1 lane for 2 workers: 1 worker has nothing to do.",
     "Use --lanes 2 (which changes the result's bits), or -n 1."},
    {"not-worth-it", threads, &thresholds.not_worth_it, 1.02, 0.7,
     "All 2 threads together compute for 77 % of a step",
     "Use --threads 1: a step would take about 4.1 ms instead of 5.0 ms"},
    {"not-worth-it", not_worth_it, &thresholds.not_worth_it, 1.02, 0.7,
     "All 2 workers together compute for 77 % of a step",
     "Use -n 1: a step would take about 4.1 ms instead of 5.0 ms, 15,422 samples/s"},
    {"saving", saving, &thresholds.saving, 0.95, 1.1,
     "Checkpoints take 1.1 % of the run: 0.55 % to copy", "Use --save-every 23."},
    {"evaluating", evaluating, &thresholds.evaluating, 0.95, 1.1, "Evaluations take 11 %",
     "less often (--eval-every)"},
    {"callback", callback, &thresholds.callback, 0.95, 1.2, "takes 6 % of the run, 300 us per "
                                                            "step",
     "after every 3 steps"},
    {"auditing", auditing, &thresholds.auditing, 0.95, 1.1, "for 5.5 % of their time",
     "Use --audit 0.23."},
    {"lost-lanes", lost_lanes, &thresholds.lost_lanes, 0.9, 1.3, "of worker 1", "See why worker 1"},
    {"goodput", goodput, NULL, 0.09, 0.15, "Lost: 148 ms deaths of workers.",
     "log DIR --event death"},
    {"memory", memory, &thresholds.memory_limit, 0.99, 1.02, "97 % of the limit of 100 MiB",
     "trireme memory"},
    {"memory", unplanned, &thresholds.memory_plan, 0.98, 1.2, "106 % of the plan of",
     "what else the program takes"},
    {"skipped", skipped, &thresholds.skipped, 0.98, 1.1, "5.5 % of the updates were skipped",
     "smaller learning rate"},
    {"not-finite", not_finite, NULL, 0, 1, "no number in 1 of 2 lines, first at step 1,000",
     "--since 1000"},
    {"not-finite", fails, NULL, 0, 1, "The run failed at step 2: lane 0: the loss is nan.",
     "an earlier checkpoint"},
    {"link", hosts_link, &thresholds.link_waits, 0.98, 1.1, "wait for other hosts 11 % of a step",
     "faster path"},
    {"incomplete", incomplete, NULL, 0, 1, "Damaged frames of workers.series: 1.", "in no figure"},
};

/* A rule is silent on one side of its threshold; on the other, the report begins with it. */
static void both_sides(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct judged j;
        const double unit = cases[i].threshold ? *cases[i].threshold : 1;
        struct world w = world_clean();
        cases[i].change(&w, cases[i].silent * unit);
        judge(&w, &j);
        if (place_of(&j, cases[i].rule) >= 0) fail_msg("%s is not silent", cases[i].rule);
        done(&j);
        w = world_clean();
        cases[i].change(&w, cases[i].found * unit);
        judge(&w, &j);
        if (place_of(&j, cases[i].rule))
            fail_msg("%s is not the first: %s", cases[i].rule, text_of(&j, false));
        has(&j, cases[i].evidence);
        has(&j, cases[i].remedy);
        done(&j);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(both_sides, empty)};
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
