/* SPDX-License-Identifier: Apache-2.0
 * Printing tables of options, by group and in two columns. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "cli/options.h"

#define TEXT_COLUMN 21
#define LAST_COLUMN 79

static const char *const group_titles[] = {
    [GROUP_DATA] = "Data",
    [GROUP_TRAINING] = "Training",
    [GROUP_OPTIMIZER] = "Optimizer",
    [GROUP_PRECISION] = "Precision and memory",
    [GROUP_WORKERS] = "Workers and threads",
    [GROUP_MESH] = "Meshes",
    [GROUP_WEIGHTS] = "Weights and checkpoints",
    [GROUP_EVALUATION] = "Evaluation",
    [GROUP_OUTPUT] = "Output",
    [GROUP_ADVANCED] = "Advanced",
};

/* The words of one line of help, from `column` on; further lines begin at `margin`. Returns the
 * end of the line. */
static const char *wrap(const char *help, int column, int margin, struct text *out) {
    for (bool first = true; *help && *help != '\n'; first = false) {
        int n = (int)strcspn(help, " \n");
        if (first || column + 1 + n <= LAST_COLUMN) {
            text_add(out, first ? "%.*s" : " %.*s", n, help);
            column += n + !first;
        } else {
            text_add(out, "\n%*s%.*s", margin, "", n, help);
            column = margin + n;
        }
        help += n + (help[n] == ' ');
    }
    text_add(out, "\n");
    return help;
}

/* The lines after the first are the values that the option takes: they are indented. */
static void describe(const struct option_row *row, struct text *out) {
    const char *argument = row->argument ? row->argument : "";
    int used = 3 + (int)(strlen(row->flag) + strlen(argument));
    text_add(out, "  %s %s", row->flag, argument);
    if (used < TEXT_COLUMN)
        text_add(out, "%*s", TEXT_COLUMN - used, "");
    else
        text_add(out, "\n%*s", TEXT_COLUMN, "");
    const char *line = wrap(row->help, TEXT_COLUMN, TEXT_COLUMN, out);
    while (*line++) {
        text_add(out, "%*s", TEXT_COLUMN + 2, "");
        line = wrap(line, TEXT_COLUMN + 2, TEXT_COLUMN + 4, out);
    }
}

void options_paragraph(const char *help, struct text *out) {
    text_add(out, "\n");
    wrap(help, 0, 0, out);
}

void options_describe(const struct option_row *const tables[], unsigned use, struct text *out) {
    for (size_t group = 0; group < COUNT(group_titles); group++) {
        bool begun = false;
        for (const struct option_row *const *rows = tables; *rows; rows++)
            for (const struct option_row *row = *rows; row->flag; row++) {
                if (!(row->use & use) || row->group != group) continue;
                if (!begun) text_add(out, "\n");
                if (!begun && group) text_add(out, "%s:\n", group_titles[group]);
                begun = true;
                describe(row, out);
            }
    }
}

static char help[16384];
static pthread_once_t help_once = PTHREAD_ONCE_INIT;

static void make_help(void) {
    struct text t = {0};
    options_describe((const struct option_row *const[]){options_rows, NULL}, USE_TRAIN, &t);
    snprintf(help, sizeof help, "%s", t.failed || !t.data ? "(out of memory)\n" : t.data);
    text_free(&t);
}

const char *tri_options_help(void) {
    pthread_once(&help_once, make_help);
    return help;
}
