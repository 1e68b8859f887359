/* SPDX-License-Identifier: Apache-2.0
 * Command-line options as rows of tables. Reading, --help, the man page, plans, checkpoints and a
 * run that resumes use the same rows. */
#ifndef PLAN_OPTION_ROWS_H
#define PLAN_OPTION_ROWS_H

#include "base/base.h"
#include "plan/plan_file.h"

/* The commands that take an option. A user's own program takes the options of training. */
enum option_use {
    USE_TRAIN = 1,
    USE_EVAL = 2,
    USE_DUMP = 4,
    USE_BENCH = 8,
    USE_MEMORY = 16,
    USE_COMPARE = 32,
    USE_DOCTOR = 4096,
    USE_LINKS = 8192, /* `bench links` */
    USE_SUMS = 16384, /* `bench allreduce` */
    USE_FIND = 32768, /* `plan find` */
    SHOWN = 2048, /* beside these: --help shows the option without a topic */
    USE_ALL = USE_TRAIN | USE_EVAL | USE_DUMP | USE_BENCH | USE_MEMORY | USE_COMPARE |
              USE_DOCTOR | USE_LINKS | USE_SUMS | USE_FIND,
};

/* What a run that resumes makes of an option whose value is another than before. Each row of
 * tri_options has one of these; docs/checkpoints.md has the table. */
enum option_resume {
    RESUME_REQUIRES = 64, /* it must be the same, unless --changed is given */
    RESUME_WARNS = 128,   /* the new value is reported, and applies */
    RESUME_IGNORES = 256, /* it changes no result, or only how the run goes on */
    RESUME_REFUSES = 512, /* it cannot be given at all */
    /* Beside one of these: a part of the "order" of samples in state.json. */
    KEPT_ORDER = 1024,
};

/* The topic of --help, and heading of the man page, to which an option belongs. */
enum option_group {
    GROUP_NONE, /* options of one command only, listed first and without a heading */
    GROUP_DATA,
    GROUP_TRAINING,
    GROUP_OPTIMIZER,
    GROUP_PRECISION,
    GROUP_WORKERS,
    GROUP_HOSTS,
    GROUP_MESH,
    GROUP_WEIGHTS,
    GROUP_EVALUATION,
    GROUP_OUTPUT,
    GROUP_ADVANCED,
};

struct option_row {
    const char *flag;     /* "--batch", "-n"; the field's name if only a program sets it */
    const char *argument; /* "N"; null if the option takes no value: `set` then gets "" */
    /* What the option does. A line after the first is a value that it takes, "VALUE: meaning". */
    const char *help;
    /* Stores the value at `at`. Returns null, or what was expected: "a number above 0". */
    const char *(*set)(void *at, const char *value);
    size_t offset; /* of the field in the target structure */
    unsigned use;  /* of option_use and option_resume */
    enum option_group group;
    const char *const *words; /* all values that it takes; null: there are others */
    const char *usual;  /* asks for what holds without it, and counts as not given; null: nothing
                         * does, as values that override those of the network */
    enum plan_key plan; /* the line of a plan that sets it; 0: none */
    int64_t most;       /* of a count in a plan */
    int state; /* its place in the options of a checkpoint's state.json, from 1 on; 0: none */
    const char *without; /* its value there if no text is given */
    bool bare;           /* its name there has no dashes, as in earlier versions */
};

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

#define ON_EVENT_HELP \
    "run `sh -c CMD` on stall, death, save-failure, host-lost, host-joined and end; " \
    "TRIREME_EVENT, TRIREME_MESSAGE and other variables describe the event"

/* The rows of tri_options. */
extern const struct option_row options_rows[];
/* The row of the option with this flag, which there is. */
const struct option_row *option_row(const char *flag);
/* The row of the option that the line of a plan sets; null: it sets none. */
const struct option_row *option_of_plan(enum plan_key key);
/* The row of the option that state.json has at this place; null: there are fewer. */
const struct option_row *option_of_state(int place);
/* Its value there. */
void option_keep(const struct option_row *row, const tri_options *o, char *text, size_t bytes);
/* The text of an option that is one; null: it is not given, or is no text. */
const char *option_given_text(const struct option_row *row, const tri_options *o);
/* The place of the value, if null of the usual one, among the words of this option, as in the
 * enumerations below; -1: it is none of them. */
int option_choice(const char *flag, const char *value);
int option_word(const char *const *words, const char *value);

enum { AMP_TYPE_BF16, AMP_TYPE_F16 };
enum { CONV_AUTO, CONV_DIRECT };
enum { MATH_PORTABLE, MATH_NATIVE };
enum { ON_NAN_STOP, ON_NAN_WARN };
enum { PARALLEL_DATA, PARALLEL_SEMI, PARALLEL_AUTO };
enum { STEAL_LATE, STEAL_NEVER };

/* Refuses what is none of an option's words. */
tri_status options_check(const tri_options *o);
/* Of an option that takes a size or a count. */
int64_t option_usual_count(const char *flag);
/* A program that writes a default into its code can still be run with options, or a plan, that
 * leave it no effect. */
void options_forget_usual(tri_options *o);
/* Sets what `o` leaves open as in `before`, which it was copied to before options_forget_usual. */
void options_restore_usual(tri_options *o, const tri_options *before);
/* Copies all texts. */
tri_status options_keep_texts(tri_options *o, struct arena *a);

/* The help of the rows with `use`; a null ends the tables. topic: that of a group, "all", or null
 * for the options that most runs need and the list of topics. */
tri_status options_describe(const struct option_row *const tables[], unsigned use,
                            const char *topic, struct text *out);
/* An empty line, then the text in lines of the same width. */
void options_paragraph(const char *help, struct text *out);
/* A name with an argument (nullable) and its explanation, as an option's. */
void options_item(const char *name, const char *argument, const char *help, struct text *out);

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
