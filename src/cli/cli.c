/* SPDX-License-Identifier: Apache-2.0
 * What the commands share: reading a command line, opening what it names, help. */
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "data/data.h"
#include "models/models.h"

const struct command *const commands[] = {
    &command_train, &command_run,    &command_eval, &command_predict, &command_data, &command_models, &command_dump,
    &command_bench, &command_memory, &command_top,  &command_ps,     &command_ctl,    &command_ckpt,
    &command_pack,
    &command_doctor, &command_help,
    &command_version, NULL,
};

int cli_fail(void) {
    fprintf(stderr, "trireme: %s\n", tri_message());
    return (int)base_last();
}

/* ---- command lines ---- */

static tri_status take_model(const struct command *c, int argc, char **argv, struct cli_arguments *out) {
    int words = c->takes_model && !(c->model_from_load && (argc < 2 || (c->takes_words && !model_is_named(argv[1]))));
    if (argc - 1 < words)
        return base_fail(TRI_USAGE, "%s lacks its MODEL: trireme %s %s; `trireme models` lists the "
                         "zoo", c->name, c->name, c->arguments);
    if (c->takes_words && argc - 1 == words)
        return base_fail(TRI_USAGE, "%s lacks its %s: trireme %s %s", c->name, c->takes_words, c->name, c->arguments);
    if (c->surplus && argc > 1) {
        char hint[160];
        base_format(hint, sizeof hint, c->surplus, argv[1]);
        return base_fail(TRI_USAGE, "%s takes no name: %s", c->name, hint);
    }
    if (!c->takes_words && argc - 1 > words)
        return base_fail(TRI_USAGE, "%s: one word too many: '%s'; usage: trireme %s %s", c->name,
                         argv[words + 1], c->name, c->arguments);
    out->model = words ? argv[1] : NULL;
    out->words = argv + 1 + words;
    out->n_words = argc - 1 - words;
    return TRI_OK;
}

tri_status cli_read(const struct command *c, int argc, char **argv, void *own,
                    struct cli_arguments *out) {
    struct option_set sets[3] = {{0}};
    int n = 0;
    *out = (struct cli_arguments){.options = tri_options_default()};
    if (c->use) sets[n++] = (struct option_set){options_rows, &out->options};
    if (c->rows) sets[n++] = (struct option_set){c->rows, own};
    tri_status status = options_take(sets, c->use ? c->use : USE_ALL, false, &argc, argv);
    if (!status) status = data_refuse_fed(out->options.data);
    if (!status) status = take_model(c, argc, argv, out);
    return status;
}

tri_status cli_read_about(const struct command *c, struct cli_arguments *a, struct weights_about *about) {
    *about = (struct weights_about){0};
    const char *file = a->model ? a->model : a->n_words ? a->words[0] : "";
    const size_t n = strlen(file), end = strlen(".safetensors");
    if (!a->options.load && n > end && !strcmp(file + n - end, ".safetensors"))
        return base_fail(TRI_USAGE, "%s lacks --load FILE; do you mean --load %s?", c->name, file);
    if (!a->options.load)
        return base_fail(TRI_USAGE, "%s lacks --load FILE: weights, as `trireme train %s --save FILE` writes them",
                         c->name, a->model ? a->model : "MODEL");
    tri_status status = weights_about(&a->options, about);
    if (status || a->model) return status;
    a->model = about->model;
    if (a->model) return TRI_OK;
    return base_fail(TRI_USAGE, "%s lacks its MODEL: %s does not say which it was made with; trireme %s %s", c->name,
                     a->options.load, c->name, c->arguments);
}

tri_graph *cli_graph(struct cli_arguments *a) {
    tri_graph *g = tri_model_open(a->model, a->options.batch);
    if (g && !tri_graph_status(g)) {
        a->options.batch = tri_batch(g);
        return g;
    }
    tri_graph_free(g); /* which leaves the message as it is */
    return NULL;
}

tri_status cli_own_data(struct cli_arguments *a) {
    const struct model *model = model_find(a->model);
    if (a->options.data || !model || !model->data) return TRI_OK;
    a->options.source = model->data();
    return a->options.source ? TRI_OK : base_last();
}

/* ---- help ---- */

void cli_describe_model(struct text *out) {
    text_add(out, "\nMODEL is a name of the zoo with options, resnet50:classes=100 (`trireme models` "
                  "lists\nthem), a textual graph, FILE.tri, or a shared object, FILE.so, that "
                  "exports\n    void tri_model(tri_graph *g, tri_args *args)\n"
                  "Several numbers for one option, bert-base:seq=128/64/32, are networks for samples of\n"
                  "several lengths, with the same parameters.\n");
}

void cli_describe(const struct command *c, struct text *out) {
    text_add(out, "usage: trireme %s%s%s\n%s\n", c->name, *c->arguments ? " " : "", c->arguments,
             c->help);
    if (c->use || c->rows) text_add(out, "\n");
    if (c->rows) options_describe(c->rows, c->use ? c->use : USE_ALL, out);
    if (c->use) options_describe(options_rows, c->use, out);
    if (c->more) c->more(out);
}

void cli_describe_all(struct text *out) {
    text_add(out, "usage: trireme COMMAND ...\n\n");
    for (const struct command *const *c = commands; *c; c++)
        text_add(out, "  %-8s %s\n", (*c)->name, (*c)->help);
    text_add(out, "\n`trireme COMMAND --help` tells more; a first run:\n"
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
