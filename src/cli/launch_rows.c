/* SPDX-License-Identifier: Apache-2.0
 * The options of several workers. They are in the library, so that a program of the user's own that
 * is given one can say that `trireme run` takes it. */
#include <string.h>

#include "cli/launch.h"

static const char *whole(int *to, const char *value, const char *expected) {
    int64_t n;
    if (option_count(&n, value)) return expected;
    if (n > 1000000) return "a whole number that is not so large";
    *to = (int)n;
    return NULL;
}

static const char *workers(void *at, const char *value) { /* struct launch */
    struct launch *l = at;
    l->automatic = !strcmp(value, "auto");
    l->workers = 1; /* not 0: workers are asked for */
    if (l->automatic) return NULL;
    return whole(&l->workers, value, "a whole number of at least 1, or auto");
}

static const char *count(void *at, const char *value) { /* int */
    *(int *)at = 0;
    return strcmp(value, "0") ? whole(at, value, "a whole number of at least 0") : NULL;
}

static const char *threads(void *at, const char *value) { /* int */
    return whole(at, value, "a whole number of at least 1");
}

static const char *fraction(void *at, const char *value) { /* double */
    char *end;
    double x = base_number(value, &end);
    if (end == value || *end || !(x >= 0 && x <= 1)) return "a number from 0 to 1";
    *(double *)at = x;
    return NULL;
}

#define FIELD(name) offsetof(struct launch, name)

const struct option_row launch_rows[] = {
    {"-n", "N|auto",
     "workers: processes that share every step; the result does not depend on their number; auto "
     "takes as many as pay off, measured during the first steps (default: this process alone; of "
     "`run`: 1)",
     workers, 0, USE_TRAIN | USE_MEMORY | SHOWN, .group = GROUP_WORKERS},
    {"--most", "N",
     "the largest number that `trireme ctl DIR scale` can set; memory is laid out for it "
     "(default: that of -n)",
     count, FIELD(most), USE_TRAIN | USE_MEMORY, .group = GROUP_WORKERS},
    {"--spares", "N",
     "workers that wait, compiled and warmed up, to replace one that dies (default: 0)", count,
     FIELD(spares), USE_TRAIN | USE_MEMORY, .group = GROUP_WORKERS},
    {"--threads-per-worker", "T",
     "threads of each worker (default: the number of cores divided by that of workers)", threads,
     FIELD(threads), USE_TRAIN | USE_MEMORY, .group = GROUP_WORKERS},
    {"--stall-timeout", "S",
     "kill and replace a worker that makes no progress for S seconds (default: 10, or 20 times the "
     "longest time that the operator has taken)",
     option_seconds, FIELD(stall_timeout), USE_TRAIN, .group = GROUP_WORKERS},
    {"--start-timeout", "S", "the same until a worker's first step (default: 300)", option_seconds,
     FIELD(start_timeout), USE_TRAIN, .group = GROUP_WORKERS},
    {"--grace", "S",
     "when the run is asked to end, wait S seconds for it to finish the step and save (default: "
     "30)",
     option_seconds, FIELD(grace), USE_TRAIN, .group = GROUP_WORKERS},
    {"--audit", "P",
     "share of the lanes, 0 to 1, that a second worker computes again and compares bit for bit "
     "(default: 0)",
     fraction, FIELD(audit), USE_TRAIN | USE_MEMORY, .group = GROUP_WORKERS},
    {"--no-kill", NULL, "report stalls but kill no worker, for use with a debugger", option_given,
     FIELD(no_kill), USE_TRAIN, .group = GROUP_WORKERS},
    {0},
};
