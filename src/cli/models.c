/* SPDX-License-Identifier: Apache-2.0
 * trireme models: the zoo. */
#include "models/models.h"

#include "cli/cli.h"

static int run(const struct command *c, int argc, char **argv) {
    struct cli_arguments a;
    if (cli_read(c, argc, argv, NULL, &a)) return cli_fail();
    struct text t = {0};
    for (int i = 0; model_at(i); i++) {
        const struct model *m = model_at(i);
        text_add(&t, "%-12s %s\n%-12s samples %s%s%s\n", m->name, m->about, "", m->input,
                 *m->options ? ", options " : "", m->options);
    }
    return cli_print(&t) ? cli_fail() : TRI_OK;
}

static void more(struct text *out) {
    options_paragraph("Options follow a colon: resnet18:form=small,classes=10.", out);
}

const struct command command_models = {
    .name = "models",
    .arguments = "",
    .surplus = "it lists all networks; `trireme dump %s` prints one",
    .help = "list the networks of the zoo and their options",
    .more = more,
    .run = run,
};
