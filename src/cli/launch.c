/* SPDX-License-Identifier: Apache-2.0
 * Several workers: the options, and the command `run` for programs of the user's. */
#include "cli/launch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "exec/crew_shared.h"
#include "exec/team.h"

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

tri_status cli_check_launch(const struct launch *l) {
    if (l->workers) return TRI_OK;
    if (l->most || l->spares || l->threads || l->audit > 0 || l->stall_timeout > 0 || l->start_timeout > 0 ||
        l->grace > 0 || l->no_kill)
        return base_fail(TRI_USAGE, "--most, --spares, --threads-per-worker, --audit, "
                         "--stall-timeout, --start-timeout, --grace and --no-kill are for several workers: give their "
                         "number with -n");
    return TRI_OK;
}

bool cli_is_worker(void) { return getenv(CREW_ENV_STORE) != NULL; }

int cli_launch(const struct launch *launch, int argc, char **argv) {
    char **copy = calloc((size_t)argc + 1, sizeof *copy);
    if (!copy) {
        base_no_memory("a command line");
        return cli_fail();
    }
    memcpy(copy, argv, (size_t)argc * sizeof *copy);
    struct launch l = *launch;
    l.argv = copy;
    int code = agent_run(&l);
    free(copy);
    return code;
}

/* ---- run ---- */

struct own {
    struct launch launch;
    const char *out;
};

static const struct option_row rows[] = {
    {"--out", "DIR", "where agent.log and the workers' output go (run)", option_text,
     offsetof(struct own, out), USE_ALL},
    {0},
};

static int run(const struct command *c, int argc, char **argv) {
    struct own own = {.launch = {.workers = 1}, .out = "run"};
    const struct option_set sets[] = {{launch_rows, &own.launch}, {rows, &own}, {0}};
    bool cut = false;
    for (int i = 1; i < argc; i++) cut |= !strcmp(argv[i], "--");
    if (options_take(sets, USE_ALL, false, &argc, argv)) {
        int code = cli_fail();
        if (!cut) fprintf(stderr, "trireme: options of the program itself stand behind --: trireme run -n 2 -- "
                          "./prog --steps 10\n");
        return code;
    }
    if (argc < 2) {
        base_fail(TRI_USAGE, "run lacks the program: trireme %s %s", c->name, c->arguments);
        return cli_fail();
    }
    own.launch.out = own.out;
    return cli_launch(&own.launch, argc - 1, argv + 1);
}

static void describe(struct text *out) { options_describe(launch_rows, USE_ALL, out); }

const struct command command_run = {
    .name = "run",
    .arguments = "-n N [options] -- PROGRAM [ARGUMENTS]",
    .help = "runs a program of your own as several workers",
    .rows = rows,
    .more = describe,
    .run = run,
};
