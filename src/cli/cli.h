/* SPDX-License-Identifier: Apache-2.0
 * The program `trireme`: commands as rows of one table (main.c), one file each, and what they
 * share. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "cli/options.h"
#include "run/weights.h"

struct command {
    const char *name;
    const char *arguments; /* "MODEL [options]" */
    const char *help;      /* one line */
    bool takes_model;
    bool model_from_load;          /* MODEL may be left out: what options.load names says which it is */
    const char *surplus;           /* what is told of a word where it takes none, with %s for it; or null */
    const char *takes_words;       /* behind the model at least one of these: "PICTURE"; or null */
    unsigned use;                  /* which rows of options_rows it takes; 0: none */
    const struct option_row *rows; /* its own; or null */
    const struct command *instead; /* a command whose last word stands for MODEL; or null */
    void (*more)(struct text *out); /* further help; or null */
    /* argv[0] is the command's name, or its last word. Returns the exit code; what failed has been
     * told. */
    int (*run)(const struct command *c, int argc, char **argv);
};

/* Each command's row lies in its file. */
extern const struct command command_train, command_run, command_eval, command_predict, command_data, command_models,
    command_dump, command_bench, command_bench_allreduce, command_memory, command_top, command_ps, command_ctl,
    command_ckpt,
    command_pack, command_doctor, command_help, command_version;

extern const struct command *const commands[]; /* ended by null */
const struct command *command_find(const char *name); /* null with a message */
/* The command of the first words, of which there is one at least; *n: how many they are. */
const struct command *command_of_words(int argc, char **argv, int *n);

/* Tells tri_message() on stderr and returns its code, for the exit. */
int cli_fail(void);

/* What a command line comes to. */
struct cli_arguments {
    tri_options options;
    const char *model; /* null if the command takes none */
    char **words;      /* that stand behind it */
    int n_words;
};
/* Reads options, the command's own into `own`, and the model's name. */
tri_status cli_read(const struct command *c, int argc, char **argv, void *own,
                    struct cli_arguments *out);
/* What options.load was made as and with. a->model becomes that model where the command line names none; it
 * points into *about. */
tri_status cli_read_about(const struct command *c, struct cli_arguments *a, struct weights_about *about);
/* Opens the model and settles options.batch. Null with a message. */
tri_graph *cli_graph(struct cli_arguments *a);
/* The model's own data, where it has some and the options name none, becomes options.source. */
tri_status cli_own_data(struct cli_arguments *a);

/* "trireme train MODEL [options]", options and all. */
void cli_describe(const struct command *c, struct text *out);
/* What MODEL can be; for `more`. */
void cli_describe_model(struct text *out);
/* All commands, a line each. */
void cli_describe_all(struct text *out);
/* Prints and frees. */
tri_status cli_print(struct text *t);

#endif
