/* SPDX-License-Identifier: Apache-2.0
 * Arguments of a model: parsed from the text after the colon, closed after the builder has run. */
#ifndef MODELS_ARGS_H
#define MODELS_ARGS_H

#include <trireme.h>

/* Messages name `model`. The graph keeps any mistake. Returns null if memory runs out. */
tri_args *args_open(tri_graph *g, const char *model, const char *text);
/* An argument that the model has not asked for is a mistake, which the graph keeps. Frees the
 * arguments; texts that tri_args_text returned live as long as the graph. */
void args_close(tri_args *a);

#endif
