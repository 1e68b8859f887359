/* SPDX-License-Identifier: Apache-2.0
 * Reads command lines by tables of options (plan/option_rows.h), and describes them. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "plan/option_rows.h"

/* A table, ended by a row without a flag, and the structure that its setters fill in. */
struct option_set {
    const struct option_row *rows;
    void *target;
};

/* Prints tri_message() on stderr and returns its code, the exit code. */
int cli_fail(void);

/* The options that set struct launch. */
extern const struct option_row launch_rows[];

/* The row, and its set, that "--flag" or "--flag=value" gives; null: there is none of this use. */
const struct option_row *options_find(const struct option_set *sets, unsigned use,
                                      const char *word, const struct option_set **set);
/* Reads the options of one command and removes them from argv. `sets` are the command's own options
 * and, if it takes them, those of tri_options; a set without rows ends them. `use` selects rows.
 * Words that are not options remain in argv, as do all words after "--", which is itself removed.
 * If `foreign`, unknown options remain too, except those one letter away from a known one and
 * those of launch_rows. Returns TRI_USAGE with a message. */
tri_status options_take(const struct option_set *sets, unsigned use, bool foreign, int *argc,
                        char **argv);
/* A command that has the option as one of its own, by the table in cli.c; null: none has. */
const char *options_owner(const char *flag);
/* Whether the words ask for help, by --help or the other flag. *topic follows it; null: none. */
bool options_ask_help(int argc, char **argv, const char *also, const char **topic);

/* A combination of the options with several values. */
struct options_picked {
    int number, all;          /* from 0 on; how many there are */
    struct text words;        /* "--conv direct --plan a.plan" */
    struct arena arena;       /* of argv */
};
/* Leaves one value in argv to each option that is given several times, or whose number is a list:
 * 1,2,4. Sets all but p->number. */
tri_status options_pick(const struct option_set *sets, unsigned use, char **argv,
                        struct options_picked *p);
/* Reads the plan that the options name, and sets the options that it states. Their texts stay until
 * the process ends. */
tri_status options_take_plan(tri_options *o);

#endif
