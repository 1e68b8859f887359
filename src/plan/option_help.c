/* SPDX-License-Identifier: Apache-2.0
 * --help: tables of options in two columns, in short or by topic. */
#include <pthread.h>
#include <string.h>

#include "base/columns.h"
#include "base/nearest.h"
#include "plan/option_rows.h"

#define TEXT_COLUMN 21
#define LAST 79 /* column */

/* A topic of help is a group of options. */
static const struct {
    const char *topic, *title, *about;
} groups[] = {
    [GROUP_NONE] = {"", NULL, NULL},
    [GROUP_DATA] = {"data", "Data", "texts as tokens, order of the samples, reading ahead"},
    [GROUP_TRAINING] = {"training", "Training", "length, batch, lanes, seed"},
    [GROUP_OPTIMIZER] = {"optimizer", "Optimizer", "its settings, schedule, decay, clipping"},
    [GROUP_PRECISION] = {"precision", "Precision and memory", "16 bits, recomputation, limits"},
    [GROUP_WORKERS] = {"workers", "Workers and threads", "processes, threads, spares, timeouts"},
    [GROUP_HOSTS] = {"hosts", "Hosts", "a run over several machines"},
    [GROUP_MESH] = {"meshes", "Meshes", "strategies, stages, files of plans"},
    [GROUP_WEIGHTS] = {"weights", "Weights and checkpoints", "files, encryption, resuming"},
    [GROUP_EVALUATION] = {"evaluation", "Evaluation", "when, and what it decides"},
    [GROUP_OUTPUT] = {"output", "Output", "metrics, events, progress"},
    [GROUP_ADVANCED] = {"advanced", "Advanced", "device, kernels, passes"},
};

/* The end of what a help says first: before a semicolon outside of parentheses, or before the colon
 * of a list of values. */
static const char *first_end(const char *help) {
    for (int depth = 0; *help && strncmp(help, ":\n", 2) && (depth || *help != ';'); help++)
        depth += (*help == '(') - (*help == ')');
    return help;
}

/* The lines after the first are the values that the option takes: they are indented. Briefly, only
 * the first part is printed. */
static void describe(const struct option_row *row, bool briefly, struct text *out) {
    const char *argument = row->argument ? row->argument : "";
    int used = 3 + (int)(strlen(row->flag) + strlen(argument));
    text_add(out, "  %s %s", row->flag, argument);
    if (used < TEXT_COLUMN)
        text_add(out, "%*s", TEXT_COLUMN - used, "");
    else
        text_add(out, "\n%*s", TEXT_COLUMN, "");
    const char *end = briefly ? first_end(row->help) : row->help + strlen(row->help);
    const char *line = columns_wrap(out, row->help, end, LAST, TEXT_COLUMN, TEXT_COLUMN);
    while (line++ < end) {
        text_add(out, "%*s", TEXT_COLUMN + 2, "");
        line = columns_wrap(out, line, end, LAST, TEXT_COLUMN + 2, TEXT_COLUMN + 4);
    }
}

void options_item(const char *name, const char *argument, const char *help, struct text *out) {
    const struct option_row row = {.flag = name, .argument = argument, .help = help};
    describe(&row, false, out);
}

void options_paragraph(const char *help, struct text *out) {
    text_add(out, "\n");
    columns_wrap(out, help, help + strlen(help), LAST, 0, 0);
}

/* Adds the rows of a group; briefly, those that are SHOWN. Returns the number of all. */
static int add_group(const struct option_row *const tables[], unsigned use, size_t group,
                     bool briefly, struct text *out) {
    int n = 0;
    for (const struct option_row *const *rows = tables; *rows; rows++)
        for (const struct option_row *row = *rows; row->flag; row++) {
            if (!(row->use & use) || row->group != group) continue;
            if (out && (!briefly || !group || row->use & SHOWN))
                describe(row, briefly && group, out);
            n++;
        }
    return n;
}

tri_status options_describe(const struct option_row *const tables[], unsigned use,
                            const char *topic, struct text *out) {
    struct nearest near = {.wanted = topic ? topic : ""};
    struct text topics = {0};
    const bool all = nearest_offer(&near, "all");
    bool known = all || !topic, begun = false;
    for (size_t group = 0; group < COUNT(groups); group++) {
        if (!add_group(tables, use, group, false, NULL)) continue;
        const bool whole = nearest_offer(&near, groups[group].topic) || all;
        known |= whole;
        if (whole || (!topic && !begun)) text_add(out, "\n");
        if (whole && group) text_add(out, "%s:\n", groups[group].title);
        if (whole || !topic) add_group(tables, use, group, !topic, out);
        begun = true;
        if (group)
            describe(&(struct option_row){.flag = "--help", .argument = groups[group].topic,
                                          .help = groups[group].about}, false, &topics);
    }
    if (!topic && topics.size)
        text_add(out, "\nAll options, by topic:\n%s  --help all         all of these topics\n",
                 topics.data);
    out->failed |= topics.failed;
    text_free(&topics);
    return known ? TRI_OK : base_fail(TRI_USAGE, "--help has no topic %s%s", topic,
                                      nearest_or(&near, "; it has %s", near.names));
}

static struct text help;
static pthread_once_t help_once = PTHREAD_ONCE_INIT;

static void make_help(void) {
    options_describe((const struct option_row *const[]){options_rows, NULL}, USE_TRAIN, "all",
                     &help);
}

const char *tri_options_help(void) {
    pthread_once(&help_once, make_help);
    return help.failed ? "(out of memory)\n" : help.data;
}
