/* SPDX-License-Identifier: Apache-2.0
 * The runs below a directory: those that have run.json, metrics.jsonl or agent.json, at most
 * RUNS_DEPTH levels down. Symbolic links are not followed. A run keeps its number. Any thread may
 * ask; one looks for runs and for changes. */
#ifndef PAGE_RUNS_H
#define PAGE_RUNS_H

#include <jansson.h>

#include "base/base.h"

#define RUNS_DEPTH 8
#define RUNS_LOOKS 4

/* Looks for new ones. Fails if the directory cannot be read. */
tri_status runs_find(const char *directory);
void runs_free(void);
/* The directory of a run, from 0 on; null: there is no such run. */
const char *runs_path(int run);
/* Changes whenever a file of the run does; of -1, of any run or their number. */
int64_t runs_version(int run);
/* Looks whether files have changed, of the runs that were asked for since the last call. To be
 * called RUNS_LOOKS times a second. */
void runs_look(void);
/* An answer about the run has taken so many nanoseconds: the more it takes, the later the next
 * version follows. */
void runs_cost(int run, int64_t took);

/* What a row of the list shows; a new reference, or null without memory. */
json_t *runs_row(int run);
/* run.json as it is; null: there is none that can be read. */
json_t *runs_file(int run);

#endif
