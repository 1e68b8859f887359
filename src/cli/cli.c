/* SPDX-License-Identifier: Apache-2.0
 * What the commands share: their list, reading a command line, opening a model, help. */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "cli/visit.h"
#include "data/data.h"
#include "models/models.h"
#include "plan/plan_file.h"
#include "search/automatic.h"

/* In the order of `trireme help`. */
#define COMMANDS(X) \
    X(train) X(run) X(join) X(eval) X(predict) X(data) X(pack) X(models) X(summary) X(dump) \
    X(explain) X(memory) X(bench) X(plan) X(compare) X(top) X(ps) X(report) X(profile) X(log) \
    X(plot) X(query) X(dashboard) X(ctl) X(ckpt) X(doctor) X(help) X(version)

#define DECLARE(name) extern const struct command command_##name;
#define ADDRESS(name) &command_##name,
COMMANDS(DECLARE)
static const struct command *const commands[] = {COMMANDS(ADDRESS) NULL};

const struct command *command_find(const char *name) {
    static const struct {
        const char *flag, *name;
    } flags[] = {{"--help", "help"}, {"-h", "help"}, {"--version", "version"}};
    for (size_t i = 0; i < COUNT(flags); i++)
        if (!strcmp(flags[i].flag, name)) name = flags[i].name;
    struct nearest near = {.wanted = name};
    for (const struct command *const *c = commands; *c; c++)
        if (nearest_offer(&near, (*c)->name)) return *c;
    base_fail(TRI_USAGE, "unknown command %s%s", name,
              nearest_or(&near, "; `trireme help` lists the commands"));
    return NULL;
}

const char *options_owner(const char *flag) {
    const struct option_set *set;
    for (const struct command *const *c = commands; *c; c++) {
        const struct option_set sets[] = {{(*c)->rows, NULL}, {0}};
        if (sets->rows && options_find(sets, USE_ALL, flag, &set)) return (*c)->name;
    }
    return NULL;
}

/* ---- command lines ---- */

static tri_status take_model(const struct command *c, int argc, char **argv,
                             struct cli_arguments *out) {
    bool omitted = c->model_optional &&
                   (argc < 2 || (c->takes_words && !model_is_named(argv[1])));
    bool program = out->program || visit_opened;
    int words = c->takes_model && !omitted && !program;
    if (argc - 1 < words)
        return base_fail(TRI_USAGE, "%s lacks its MODEL: trireme %s %s; `trireme models` lists the "
                         "zoo%s", c->name, c->name, c->arguments,
                         c->takes_program ? ", and -- ./program takes its network" : "");
    if (c->takes_words && argc - 1 == words && !(program && c->use))
        return base_fail(TRI_USAGE, "%s lacks its %s: trireme %s %s", c->name, c->takes_words,
                         c->name, c->arguments);
    if (c->surplus && argc > 1) {
        char hint[160];
        base_format(hint, sizeof hint, c->surplus, argv[1]);
        return base_fail(TRI_USAGE, "%s takes no name: %s", c->name, hint);
    }
    const int most = words + c->takes_one;
    if ((!c->takes_words || c->takes_one) && argc - 1 > most)
        return base_fail(TRI_USAGE, "%s: one word too many: '%s'; usage: trireme %s %s", c->name,
                         argv[most + 1], c->name, c->arguments);
    out->model = program ? program_invocation_short_name : words ? argv[1] : NULL;
    out->words = argv + 1 + words;
    out->n_words = argc - 1 - words;
    return TRI_OK;
}

static const struct option_row visit_rows[] = {
    {"--network", "K", "of the program after --: the K-th network that it opens (default: 1)",
     option_count, offsetof(struct cli_arguments, network), USE_ALL, .group = GROUP_NONE},
    {0},
};

/* The options of the command line over those that the program has opened its network with. */
static tri_status take_options(const struct command *c, int *argc, char **argv, void *own,
                               struct cli_arguments *out) {
    struct option_set sets[5] = {{0}};
    int n = 0;
    const tri_options theirs = visit_opened ? visit_opened->options : tri_options_default();
    out->options = theirs;
    if (c->use) sets[n++] = (struct option_set){options_rows, &out->options};
    if (c->rows) sets[n++] = (struct option_set){c->rows, own};
    if (c->more_rows) sets[n++] = (struct option_set){c->more_rows, own};
    if (c->takes_program) sets[n++] = (struct option_set){visit_rows, out};
    tri_status status = options_take(sets, c->use ? c->use : USE_ALL, false, argc, argv);
    if (!status) status = options_take_plan(&out->options);
    options_forget_usual(&out->options);
    if (c->use & USE_FIND) out->options.parallel = NULL; /* it finds plans anyway */
    if (!status && automatic_is_asked(&out->options) && !(c->use & USE_TRAIN))
        status = base_fail(TRI_USAGE, "--parallel auto finds the plan of a run that trains; "
                           "`trireme plan find` shows the plans");
    if (!status && out->options.data != theirs.data) status = data_refuse_fed(out->options.data);
    return status;
}

tri_status cli_read(const struct command *c, int argc, char **argv, void *own,
                    struct cli_arguments *out) {
    int cut = 1; /* where the words of a program begin */
    *out = (struct cli_arguments){.program = NULL};
    while (c->takes_program && cut < argc && strcmp(argv[cut], "--")) cut++;
    if (c->takes_program && cut + 1 < argc) {
        out->program = argv + cut + 1;
        argc = cut;
        argv[cut] = NULL;
    }
    tri_status status = take_options(c, &argc, argv, own, out);
    if (!status && out->network && !out->program && !visit_opened)
        status = base_fail(TRI_USAGE, "--network is for a program that opens several networks: "
                           "trireme %s --network 2 -- ./program", c->name);
    if (!status) status = take_model(c, argc, argv, out);
    const tri_options *o = &out->options;
    const bool theirs = out->program || (visit_opened && visit_opened->options.partial);
    if (!status && o->partial && !o->load && !o->resume && !theirs)
        status = base_fail(TRI_USAGE, "--partial takes what fits from the file of --load, which is "
                           "not given");
    return status;
}

char **cli_words;

char **cli_copy_words(int argc, char **argv) {
    char **words = calloc((size_t)argc + 1, sizeof *words);
    if (words) memcpy(words, argv, (size_t)argc * sizeof *words);
    else base_no_memory("a command line");
    return words;
}

tri_status cli_read_about(const struct command *c, struct cli_arguments *a,
                          struct weights_about *about) {
    *about = (struct weights_about){0};
    const char *file = a->model ? a->model : a->n_words ? a->words[0] : "";
    const size_t n = strlen(file), end = strlen(".safetensors");
    if (!a->options.load && n > end && !strcmp(file + n - end, ".safetensors"))
        return base_fail(TRI_USAGE, "%s lacks --load FILE; do you mean --load %s?", c->name, file);
    if (!a->options.load)
        return base_fail(TRI_USAGE, "%s lacks --load FILE: a file of weights, as `trireme train %s "
                         "--save FILE` writes it", c->name, a->model ? a->model : "MODEL");
    tri_status status = weights_about(&a->options, about);
    if (status || a->model) return status;
    a->model = about->model;
    if (a->model) return TRI_OK;
    return base_fail(TRI_USAGE, "%s lacks its MODEL: %s does not name the model of its weights; "
                     "trireme %s %s", c->name, a->options.load, c->name, c->arguments);
}

/* A run does the same, but some commands make none. */
static tri_status check_plan(const struct cli_arguments *a, tri_graph *g) {
    if (!a->options.plan) return TRI_OK;
    const struct plan_file *p = plan_read(a->options.plan, false);
    if (!p) return base_last();
    plan_replace_recompute(p, g);
    return plan_check_network(p, g);
}

tri_graph *cli_graph(struct cli_arguments *a) {
    tri_graph *g = visit_opened ? visit_graph(&a->options)
                                  : tri_model_open(a->model, a->options.batch);
    if (g && !tri_graph_status(g) && !check_plan(a, g)) {
        a->options.batch = tri_batch(g);
        return g;
    }
    tri_graph_free(g); /* does not change the message */
    return NULL;
}

tri_status cli_own_data(struct cli_arguments *a) {
    const struct model *model = visit_opened ? NULL : model_find(a->model);
    if (a->options.data || !model || !model->data) return TRI_OK;
    a->options.source = model->data();
    return a->options.source ? TRI_OK : base_last();
}

const struct cli_action *cli_action(const struct command *c, const struct cli_arguments *a) {
    struct nearest near = {.wanted = a->words[0]};
    const struct cli_action *f = c->actions;
    while (f->name && !nearest_offer(&near, f->name)) f++;
    if (!f->name)
        base_fail(TRI_USAGE, "%s: unknown action %s%s", c->name, near.wanted,
                  nearest_or(&near, "; there are %s", near.names));
    else if (a->n_words == 1 + f->n || (a->model && f->n == 1 && a->n_words == 1))
        return f;
    else
        base_fail(TRI_USAGE, "%s %s takes %d word%s: trireme %s %s %s", c->name, f->name, f->n,
                  f->n == 1 ? "" : "s", c->name, f->name, f->arguments);
    return NULL;
}

tri_graph *cli_network(struct cli_arguments *a, const char *again) {
    tri_graph *g = cli_graph(a);
    tri_status status = g ? cli_own_data(a) : base_last();
    const tri_data *source = a->options.source;
    if (!status && again && source && source->sequential)
        status = base_fail(TRI_USAGE, "%s makes several runs, but data %s can be read only once, "
                           "in order: give --data", again, source->name);
    if (!status) return g;
    tri_graph_free(g);
    return NULL;
}

/* ---- help ---- */

void cli_describe_model(struct text *out) {
    options_paragraph("MODEL is a network of the zoo, with options if wanted, resnet50:classes=100 "
                      "(`trireme models` lists them); a textual graph, FILE.tri; or a shared "
                      "object, FILE.so, that exports `void tri_model(tri_graph *g, tri_args "
                      "*args)`. Several values for one option, bert-base:seq=128/64/32, make "
                      "networks for samples of several lengths that share their parameters.", out);
}

int cli_describe(const struct command *c, const char *topic) {
    struct text help = {0}, *out = &help;
    text_add(out, "usage: trireme %s%s%s\n", c->name, *c->arguments ? " " : "", c->arguments);
    if (c->takes_program && c->takes_model)
        text_add(out, "       trireme %s [options] -- ./program ARGS\n", c->name);
    text_add(out, "%s\n", c->help);
    const struct option_row *tables[5] = {0};
    int n = 0;
    if (c->takes_program) tables[n++] = visit_rows;
    if (c->rows) tables[n++] = c->rows;
    if (c->more_rows) tables[n++] = c->more_rows;
    if (c->use) tables[n++] = options_rows;
    if (options_describe(tables, c->use ? c->use : USE_ALL, topic, out)) {
        text_free(out);
        return cli_fail();
    }
    const bool whole = !topic || !strcmp(topic, "all");
    for (const struct cli_action *f = whole ? c->actions : NULL; f && f->name; f++)
        text_add(out, "%s  %-7s %-11s %s\n", f == c->actions ? "\n" : "", f->name, f->arguments,
                 f->help);
    if (whole && c->more) c->more(out);
    if (whole && c->takes_program)
        options_paragraph("After --, a program of your own with its arguments takes the place of "
                          "MODEL: the command is about the first network that it opens (tri_open, "
                          "tri_train), with the program's options; those before -- override them. "
                          "The program goes no further: no callback is called, and nothing is "
                          "saved. What it has printed goes to stderr.", out);
    return cli_print(out) ? cli_fail() : TRI_OK;
}

void cli_describe_all(struct text *out) {
    text_add(out, "usage: trireme COMMAND ...\n\n");
    for (const struct command *const *c = commands; *c; c++)
        text_add(out, "  %-7s  %s\n", (*c)->name, (*c)->help);
    text_add(out, "\n`trireme COMMAND --help` explains a command. A first run:\n"
                  "  trireme train mlp --steps 100\n");
}

tri_status cli_print(struct text *t) {
    bool failed = t->failed || fputs(t->data ? t->data : "", stdout) < 0;
    tri_status status = TRI_OK;
    if (t->failed)
        status = base_no_memory("the text to print");
    else if (failed)
        status = base_fail(TRI_FAILED, "cannot write to stdout: %s", strerror(errno));
    text_free(t);
    return status;
}

int cli_end(int code) {
    errno = 0;
    if ((!fflush(stdout) && !ferror(stdout)) || code) return code;
    base_fail(TRI_FAILED, "cannot write to stdout%s%s", errno ? ": " : "",
              errno ? strerror(errno) : ""); /* an earlier write has failed */
    return cli_fail();
}
