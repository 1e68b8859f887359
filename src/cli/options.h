/* SPDX-License-Identifier: Apache-2.0
 * Command-line options as rows of tables. One row serves reading, --help and the manual's test. */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include "base/base.h"

/* Which commands an option has a meaning for. A program of the user's has that of training. */
enum option_use {
    USE_TRAIN = 1,
    USE_EVAL = 2,
    USE_DUMP = 4,
    USE_BENCH = 8,
    USE_MEMORY = 16,
    USE_ALL = USE_TRAIN | USE_EVAL | USE_DUMP | USE_BENCH | USE_MEMORY,
};

struct option_row {
    const char *flag;     /* "--batch", "-n" */
    const char *argument; /* "N"; null: it takes no value, and `set` is given "" */
    const char *help;     /* lines of up to 56 columns, without a final newline */
    /* Stores the value at `at`; null, or what would be right: "a whole number from 1 up". */
    const char *(*set)(void *at, const char *value);
    size_t offset; /* of what is set, in the target */
    unsigned use;  /* of option_use */
};

/* A table ended by a row without a flag, and the structure that it sets. */
struct option_set {
    const struct option_row *rows;
    void *target;
};

#define ON_EVENT_HELP \
    "starts sh -c CMD on stall, death, save-failure and end;\n" \
    "TRIREME_EVENT, TRIREME_MESSAGE and others say what it is"

/* The rows of tri_options. */
extern const struct option_row options_rows[];

/* The sets are those of one command: its own, and tri_options' where it takes them; `sets` ends
 * with one without rows. `use` chooses among the rows. Takes what it knows out of argv. What is
 * left are words that are no options and whatever stands behind "--" (which is taken), and if
 * `foreign`, options of others, unless one letter away from one of these, or of launch_rows. Returns TRI_USAGE with a
 * message. */
tri_status options_take(const struct option_set *sets, unsigned use, bool foreign, int *argc,
                        char **argv);
/* Help of the rows chosen, two columns. */
void options_describe(const struct option_row *rows, unsigned use, struct text *out);

/* Setters: `at` is what the comment says. They keep pointers to texts. */
const char *option_text(void *at, const char *value);  /* const char *; not empty */
const char *option_count(void *at, const char *value); /* int64_t, from 1 up */
const char *option_positive(void *at, const char *value); /* double */
const char *option_given(void *at, const char *value); /* bool; of an option without a value */
const char *option_seed(void *at, const char *value); /* uint64_t */
const char *option_off(void *at, const char *value); /* bool: true is off */
const char *option_seconds(void *at, const char *value); /* double; above 0 */
/* int64_t: bytes, or with a unit of 1024: 64K, 900M, 1.5G. */
const char *option_size(void *at, const char *value);

#endif
