/* SPDX-License-Identifier: Apache-2.0
 * --parallel auto: a run finds its plan. */
#ifndef SEARCH_AUTOMATIC_H
#define SEARCH_AUTOMATIC_H

#include "search/find.h"

/* The plan that workers of a run take, which the command that started them has found. */
#define AUTOMATIC_ENV "TRIREME_PLAN"

bool automatic_is_asked(const tri_options *o);
/* Makes the directory. path: of the plan in it, from the root on, as workers may have another
 * working directory. */
tri_status automatic_path(const char *directory, struct text *path);
/* Writes the plan of a run with these options to DIR/plan: that of the checkpoint from which it
 * resumes, or the best one that is found, and prints a line about that. Takes the graph and the
 * sources. path: of the plan, to be freed. */
tri_status automatic_find(tri_graph *g, const tri_options *o, const struct find_ask *ask,
                          struct text *path);
#endif
