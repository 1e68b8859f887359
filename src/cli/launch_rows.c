/* SPDX-License-Identifier: Apache-2.0
 * The options of several workers: the library too knows them, to tell a program's user where they belong. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/launch.h"

static const char *whole(int *to, const char *value, int least, const char *right) {
    char *end;
    errno = 0;
    long n = strtol(value, &end, 10);
    if (end == value || *end || errno || n < least || n > 1000000) return right;
    *to = (int)n;
    return NULL;
}

static const char *workers(void *at, const char *value) { /* struct launch */
    struct launch *l = at;
    l->automatic = !strcmp(value, "auto");
    l->workers = 1; /* at least: this tells that workers are asked for */
    return l->automatic ? NULL : whole(&l->workers, value, 1, "a number from 1 up, or auto");
}

static const char *count(void *at, const char *value) { /* int */
    return whole(at, value, 0, "a whole number from 0 up");
}

static const char *threads(void *at, const char *value) { /* int */
    return whole(at, value, 1, "a whole number from 1 up");
}

static const char *share(void *at, const char *value) { /* double */
    char *end;
    double x = base_number(value, &end);
    if (end == value || *end || !(x >= 0 && x <= 1)) return "a share from 0 to 1";
    *(double *)at = x;
    return NULL;
}

#define FIELD(name) offsetof(struct launch, name)

const struct option_row launch_rows[] = {
    {"-n", "N|auto", "workers: processes that share every step; they change no\nresult. auto: as many "
     "as are worth it, tried with the first\nsteps (none: this process alone, without an agent)",
     workers, 0, USE_TRAIN | USE_MEMORY},
    {"--most", "N", "workers that `trireme ctl DIR scale` can bring it to; memory is\nlaid out for them (-n)",
     count, FIELD(most), USE_TRAIN | USE_MEMORY},
    {"--spares", "N", "workers that wait, compiled and warm, to take over (0)", count, FIELD(spares),
     USE_TRAIN | USE_MEMORY},
    {"--threads-per-worker", "T", "threads of each worker (cores divided by workers)", threads,
     FIELD(threads), USE_TRAIN | USE_MEMORY},
    {"--stall-timeout", "S", "seconds without progress after which a worker is killed\nand replaced "
     "(10, or 20 times the slowest that the\noperator has been)", option_seconds,
     FIELD(stall_timeout), USE_TRAIN},
    {"--start-timeout", "S", "the same, until the first step (300)", option_seconds,
     FIELD(start_timeout), USE_TRAIN},
    {"--grace", "S", "seconds to finish the step and save, when asked to end\n(30)", option_seconds,
     FIELD(grace), USE_TRAIN},
    {"--audit", "P", "share of the lanes, 0 to 1, that another worker computes\nonce more and compares, "
     "bit for bit (0)", share, FIELD(audit), USE_TRAIN | USE_MEMORY},
    {"--no-kill", NULL, "stalls are told, nobody is killed: for debuggers", option_given,
     FIELD(no_kill), USE_TRAIN},
    {0},
};
