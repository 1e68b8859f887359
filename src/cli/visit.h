/* SPDX-License-Identifier: Apache-2.0
 * A program's network in the place of MODEL: `trireme COMMAND [options] -- PROGRAM`. `trireme`
 * starts the program. Where that opens the network, the library runs the command in the program's
 * process, which has its operators and data, and ends the process. */
#ifndef CLI_VISIT_H
#define CLI_VISIT_H

#include "cli/cli.h"

/* ---- in `trireme` ---- */

/* Starts a->program, which runs the command of cli_words about its network number a->network (0:
 * the first), and returns the exit code of the command. Failures have been reported. */
int visit_start(const struct cli_arguments *a);

/* ---- in the program ---- */

struct visit_opened {
    const tri_graph *g;
    tri_options options; /* those by which a run leaves something are unset, but not for `memory` */
    char **program;      /* its words, which start it again */
};
extern const struct visit_opened *visit_opened; /* null: the command is about MODEL */

/* A copy of the network, of the batch that the options say. Sets o->batch; and the sources, to the
 * program's, unless other data is named. Null with a message. */
tri_graph *visit_graph(tri_options *o);

#endif
