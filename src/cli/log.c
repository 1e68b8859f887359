/* SPDX-License-Identifier: Apache-2.0
 * trireme log: the logs of a run as one. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "profile/logs.h"

struct own {
    int64_t worker, since; /* worker: by its place plus 1; 0: all */
    const char *level, *event, *grep;
    bool follow;
};

/* *to: the first failure to print. */
static void print(const struct logs_line *line, void *to) {
    tri_status *status = to;
    struct text t = {0};
    const bool plain = !*line->level || !strcmp(line->level, "info");
    if (*line->time) text_add(&t, "%s  ", line->time);
    text_add(&t, "%s", line->from);
    if (*line->event)
        text_add(&t, "  %s%s%s", plain ? "" : line->level, plain ? "" : " ", line->event);
    if (*line->text) text_add(&t, "  %s", line->text);
    text_add(&t, "\n");
    if (*status) text_free(&t);
    else *status = cli_print(&t);
}

static tri_status follow(struct logs *l, const tri_status *printed) {
    tri_status status = TRI_OK;
    while (!status && !*printed && !logs_ended(l)) {
        fflush(stdout);
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        status = logs_read(l);
        logs_follow(l);
    }
    return status;
}

static int run(const struct command *c, int argc, char **argv) {
    struct own own = {.worker = 0};
    struct cli_arguments a;
    struct logs *l = NULL;
    tri_status printed = TRI_OK;
    if (cli_read(c, argc, argv, &own, &a)) return cli_fail();
    const struct logs_filter filter = {own.worker - 1, own.since, own.level, own.event, own.grep};
    tri_status status = TRI_OK;
    if (own.level && logs_level(own.level) < 0)
        status = base_fail(TRI_USAGE, "--level is \"%s\"; it can be info, warning or error",
                           own.level);
    if (!status) status = logs_open(&l, a.words[0], &filter, print, &printed);
    if (!status) status = logs_read(l);
    if (!status && own.follow) status = follow(l, &printed);
    if (!status) status = logs_rest(l);
    logs_close(l);
    return status || printed ? cli_fail() : TRI_OK;
}

static const char *place(void *at, const char *value) {
    const char *wrong = option_seed(at, value);
    if (!wrong) ++*(int64_t *)at;
    return wrong;
}

static const struct option_row rows[] = {
    {"--worker", "K", "only what concerns the worker at place K", OWN(place, worker)},
    {"--level", "L", "only lines of this level or a higher one: info, warning, error",
     OWN(option_text, level)},
    {"--event", "NAME", "only this event, as death, checkpoint or output", OWN(option_text, event)},
    {"--grep", "TEXT", "only lines with this text", OWN(option_text, grep)},
    {"--since", "STEP", "nothing before the first line about this step or a later one",
     OWN(option_count, since)},
    {"--follow", NULL, "go on with new lines until the run ends", OWN(option_given, follow)},
    {0},
};

const struct command command_log = {
    .name = "log",
    .arguments = "DIR [options]",
    .help = "print the logs and the output of a run's agents and workers in the order of time",
    .takes_words = "DIR",
    .takes_one = true,
    .rows = rows,
    .run = run,
};
