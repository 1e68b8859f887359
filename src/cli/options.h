/* SPDX-License-Identifier: Apache-2.0
 * Command-line options as rows of tables. Reading, --help and the man page use the same rows. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "base/base.h"

/* The commands that take an option. A user's own program takes the options of training. */
enum option_use {
    USE_TRAIN = 1,
    USE_EVAL = 2,
    USE_DUMP = 4,
    USE_BENCH = 8,
    USE_MEMORY = 16,
    USE_COMPARE = 32,
    USE_ALL = USE_TRAIN | USE_EVAL | USE_DUMP | USE_BENCH | USE_MEMORY | USE_COMPARE,
};

/* The heading under which --help and the man page list an option. */
enum option_group {
    GROUP_NONE, /* options of one command only, listed first and without a heading */
    GROUP_DATA,
    GROUP_TRAINING,
    GROUP_OPTIMIZER,
    GROUP_PRECISION,
    GROUP_WORKERS,
    GROUP_MESH,
    GROUP_WEIGHTS,
    GROUP_EVALUATION,
    GROUP_OUTPUT,
    GROUP_ADVANCED,
};

struct option_row {
    const char *flag;     /* "--batch", "-n" */
    const char *argument; /* "N"; null if the option takes no value: `set` then gets "" */
    /* What the option does. A line after the first is a value that it takes, "VALUE: meaning". */
    const char *help;
    /* Stores the value at `at`. Returns null, or what was expected: "a number above 0". */
    const char *(*set)(void *at, const char *value);
    size_t offset; /* of the field in the target structure */
    unsigned use;  /* of option_use */
    enum option_group group;
};

/* A table, ended by a row without a flag, and the structure that its setters fill in. */
struct option_set {
    const struct option_row *rows;
    void *target;
};

#define ON_EVENT_HELP \
    "run `sh -c CMD` on stall, death, save-failure and end; TRIREME_EVENT, TRIREME_MESSAGE and " \
    "other variables describe the event"

/* The rows of tri_options, and those of struct launch. */
extern const struct option_row options_rows[], launch_rows[];

/* Reads the options of one command and removes them from argv. `sets` are the command's own options
 * and, if it takes them, those of tri_options; a set without rows ends them. `use` selects rows.
 * Words that are not options remain in argv, as do all words after "--", which is itself removed.
 * If `foreign`, unknown options remain too, except those one letter away from a known one and
 * those of launch_rows. Returns TRI_USAGE with a message. */
tri_status options_take(const struct option_set *sets, unsigned use, bool foreign, int *argc,
                        char **argv);
/* Reads the plan that the options name, and sets the options that it states. Their texts stay until
 * the process ends. */
tri_status options_take_plan(tri_options *o);
/* The help of the rows with `use`, by group, two columns. A null ends the tables. */
void options_describe(const struct option_row *const tables[], unsigned use, struct text *out);
/* An empty line, then the text in lines of the same width. */
void options_paragraph(const char *help, struct text *out);

/* Setters, with the type that `at` points to. Texts are not copied. */
const char *option_text(void *at, const char *value);     /* const char *; not empty */
const char *option_count(void *at, const char *value);    /* int64_t; at least 1 */
const char *option_positive(void *at, const char *value); /* double */
const char *option_given(void *at, const char *value);    /* bool; for options without a value */
const char *option_seed(void *at, const char *value);     /* uint64_t */
const char *option_off(void *at, const char *value);      /* bool; true means off */
const char *option_seconds(void *at, const char *value);  /* double; above 0 */
/* int64_t: bytes, or a number with a unit, a power of 1024: 64K, 900M, 1.5G. */
const char *option_size(void *at, const char *value);

#endif
