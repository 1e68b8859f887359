/* SPDX-License-Identifier: Apache-2.0
 * The options of several workers. They are in the library, so that a program of the user's own that
 * is given one can say that `trireme run` takes it. */
#include <string.h>

#include "base/nearest.h"
#include "cli/launch.h"
#include "plan/transfer.h"

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

static const char *variable(void *at, const char *value) { /* struct launch */
    struct launch *l = at;
    if (l->n_env == (int)COUNT(l->env)) return "at most 32 variables";
    l->env[l->n_env++] = value;
    return NULL;
}

/* 1 + the place of a word of the row with this setter. *at: int. */
static int word_of(const char *(*set)(void *at, const char *value), const char *value) {
    const struct option_row *row = launch_rows;
    while (row->set != set) row++;
    return 1 + option_word(row->words, value);
}

static const char *grain(void *at, const char *value) { /* int */
    return (*(int *)at = word_of(grain, value)) ? NULL : "keep or any";
}

static const char *link_way(void *at, const char *value) { /* int */
    *(int *)at = word_of(link_way, value) - 1;
    return *(int *)at < 0 ? "tcp or ucx" : NULL;
}

const char *launch_path(void *at, const char *value) { /* int: 0, or 1 + enum path */
    static char expected[256];
    struct nearest near = {.wanted = value};
    *(int *)at = option_word(path_words, value);
    if (*(int *)at >= 0) return NULL;
    for (int i = 0; path_words[i]; i++) nearest_offer(&near, path_words[i]);
    base_format(expected, sizeof expected, "%s%s", near.names, nearest_meant(&near));
    return expected;
}

#define FIELD(name) offsetof(struct launch, name)
#define USE_BEFORE (USE_DOCTOR | USE_LINKS | USE_SUMS) /* what looks at hosts before a run */

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
    {"--grain", "WHAT",
     "what `plan find` and --parallel auto search (default: keep; of plan find: any):\n"
     "keep: only what changes no bit: workers, threads, stages, recomputation, ZeRO\n"
     "any: lanes and mesh, too; the plan then has bits of its own",
     grain, FIELD(grain), USE_TRAIN | USE_FIND, .group = GROUP_MESH,
     .words = WORDS("keep", "any")},
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
    {"--hosts", "NAMES|FILE",
     "run on several machines: h0,h1:4 (4 workers on h1), or a file, named with a slash, with a "
     "line for each, or a rank table in JSON (default: this machine)",
     option_text, FIELD(hosts), USE_TRAIN | USE_MEMORY | USE_BEFORE,
     .group = GROUP_HOSTS},
    {"--launch", "CMD",
     "start what runs on a host by CMD HOST LINE, where LINE is for the shell there (default: ssh "
     "-o BatchMode=yes)",
     option_text, FIELD(launcher), USE_TRAIN | USE_BEFORE, .group = GROUP_HOSTS},
    {"--key", "FILE",
     "the key with which hosts know each other, of `trireme ckpt key FILE` (default: one is made "
     "for the run)",
     option_text, FIELD(key), USE_TRAIN | USE_DOCTOR, .group = GROUP_HOSTS},
    {"--lease", "S",
     "a host that is silent for S seconds stops, and the others take over its lanes (default: 3)",
     option_seconds, FIELD(lease), USE_TRAIN, .group = GROUP_HOSTS},
    {"--interface", "NAME|ADDRESS",
     "the network interface that hosts use (default: the one that leads to the others)",
     option_text, FIELD(interface), USE_TRAIN | USE_BEFORE, .group = GROUP_HOSTS},
    {"--port", "A-B", "ports that hosts listen at (default: any)", option_text, FIELD(ports),
     USE_TRAIN | USE_BEFORE, .group = GROUP_HOSTS},
    {"--overlap", "on|off",
     "send sums while a host still computes its lanes, or after that, to see what it hides "
     "(default: on)",
     option_off, FIELD(no_overlap), USE_TRAIN, .group = GROUP_HOSTS},
    {"--wire-open", NULL, "do not authenticate sums, for networks that only trusted hosts reach",
     option_given, FIELD(wire_open), USE_TRAIN | USE_LINKS | USE_SUMS, .group = GROUP_HOSTS},
    {"--link", "WAY",
     "what carries the sums between hosts (default: tcp):\n"
     "tcp: connections of Trireme's own\n"
     "ucx: UCX, for InfiniBand and the like; its ports must be reached by trusted hosts alone",
     link_way, FIELD(link), USE_TRAIN, .group = GROUP_HOSTS, .words = WORDS("tcp", "ucx")},
    {"--path", "WAY",
     "how hosts sum gradients; no bit depends on it (default: auto):\n"
     "auto: for each bucket the fastest by what `trireme bench links` measured; else exchange\n"
     "exchange: every host sends its sums to every other\n"
     "ring: parts go around from host to host, and their sums again\n"
     "butterfly: pairs of hosts exchange halves, then quarters, ...; of 2, 4, 8, ... hosts\n"
     "root: the first host sums, and sends the result to all",
     launch_path, FIELD(path), USE_TRAIN | USE_MEMORY | USE_SUMS, .group = GROUP_HOSTS,
     .words = path_words},
    {"--chdir", "DIR", "the working directory on the hosts (default: this one)", option_text,
     FIELD(chdir), USE_TRAIN | USE_DOCTOR, .group = GROUP_HOSTS},
    {"--env", "NAME", "give the hosts this variable, too, beside TRIREME_*; may be repeated",
     variable, 0, USE_TRAIN, .group = GROUP_HOSTS},
    {0},
};
