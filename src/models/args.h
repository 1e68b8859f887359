/* SPDX-License-Identifier: Apache-2.0
 * Arguments of a model: made from the text behind the colon, closed after the builder has run. */
#ifndef MODELS_ARGS_H
#define MODELS_ARGS_H

#include <trireme.h>

/* `model` stands in messages. Mistakes stick to the graph. Null: out of memory. */
tri_args *args_open(tri_graph *g, const char *model, const char *text);
/* An argument that nobody asked for becomes the graph's mistake. Frees the arguments; texts that
 * tri_args_text returned live on with the graph. */
void args_close(tri_args *a);

#endif
