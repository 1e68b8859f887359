/* SPDX-License-Identifier: Apache-2.0
 * The program `trireme`: a file and a row per command, and what the commands share. A new command
 * is a file here, and its name in cli.c. The library has all of it but main.c, for visit.h. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "cli/options.h"
#include "run/weights.h"

/* What a command does with the words after its name, as `show FILE` of plan. */
struct cli_action {
    const char *name, *arguments, *help;
    int n; /* words that it takes */
    tri_status (*run)(char **word, void *of, struct text *out);
};

/* The end of a row of a command's own options, which are in its `struct own`. */
#define OWN(set, field) set, offsetof(struct own, field), USE_ALL, .group = GROUP_NONE

struct command {
    const char *name;              /* "train" */
    const char *arguments;         /* "MODEL [options]" */
    const char *help;              /* one line */
    bool takes_model;
    bool takes_program;            /* `-- PROGRAM` may take the place of MODEL (visit.h) */
    bool model_optional;           /* the command can do without MODEL, or finds it in a file */
    const char *surplus;           /* message if a word is given where none is taken; %s is it */
    const char *takes_words;       /* "PICTURE": at least one such word follows MODEL; or null */
    bool takes_one;                /* such word, and no more */
    unsigned use;                  /* selects rows of options_rows; 0: none */
    const struct cli_action *actions; /* ended by one without a name; or null */
    const struct option_row *rows; /* the command's own options, or null */
    const struct option_row *more_rows; /* further ones, which have the same `own`; or null */
    void (*more)(struct text *out); /* prints further help, or null */
    /* argv[0] is the command's name. Returns the exit code. Every failure has been reported. */
    int (*run)(const struct command *c, int argc, char **argv);
};

/* Null with a message. */
const struct command *command_find(const char *name);

int cli_ferry(int argc, char **argv); /* of main: a process of an agent */
/* Of bench; argv[1] is "links", "allreduce". */
int cli_bench_links(int argc, char **argv);
int cli_bench_allreduce(int argc, char **argv);
int cli_plan_price(int argc, char **argv); /* of plan; argv[0] is "price", "find" */
int cli_plan_find(int argc, char **argv);
extern const struct option_row plan_price_rows[], plan_find_rows[]; /* their options */

/* A command line after reading. */
struct cli_arguments {
    tri_options options;
    const char *model; /* null if the command takes none; a program's name */
    char **words;      /* the words after MODEL */
    int n_words;
    int64_t network; /* --network; 0: not given */
    char **program;  /* the words after --, for visit_start; null: there are none */
};
/* Reads the options, the command's own ones into `own`, and MODEL. */
tri_status cli_read(const struct command *c, int argc, char **argv, void *own,
                    struct cli_arguments *out);
/* The command line, by which the same command is started again: the program's name, the command,
 * and what follows, also -- and a program, before cli_read removes options. A null ends it. */
extern char **cli_words;
/* A copy of the array, to be freed; null with a message. */
char **cli_copy_words(int argc, char **argv);
/* Reads from options.load which model the weights are of and how its data was prepared. If the
 * command line has no MODEL, a->model becomes that model, which belongs to *about. */
tri_status cli_read_about(const struct command *c, struct cli_arguments *a,
                          struct weights_about *about);
/* Opens the model, or copies the program's network, and sets options.batch; of a program also
 * options.source and eval_source. Null with a message. */
tri_graph *cli_graph(struct cli_arguments *a);
/* If no data is named and the model has data of its own, sets options.source to it. */
tri_status cli_own_data(struct cli_arguments *a);
/* Both. again: the command, if it makes several runs; it refuses data that is read only once. */
tri_graph *cli_network(struct cli_arguments *a, const char *again);

/* The action that the words name, if they are as many as it takes; a program may stand for a single
 * one. Null with a message. */
const struct cli_action *cli_action(const struct command *c, const struct cli_arguments *a);

/* Prints the help of a command, or of a topic of its options (options_describe). Returns the exit
 * code. */
int cli_describe(const struct command *c, const char *topic);
/* What MODEL can be; for `more`. */
void cli_describe_model(struct text *out);
/* All commands, a line each. */
void cli_describe_all(struct text *out);
/* Prints the text on stdout and frees it. */
tri_status cli_print(struct text *t);
/* Flushes stdout and returns the exit code of a command that ended with this one. */
int cli_end(int code);

#endif
