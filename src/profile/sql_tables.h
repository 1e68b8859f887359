/* SPDX-License-Identifier: Apache-2.0
 * The files of runs as tables. */
#ifndef PROFILE_SQL_TABLES_H
#define PROFILE_SQL_TABLES_H

#include "profile/lines.h"
#include "profile/sql.h"

struct sql_runs {
    char **directory; /* [n] */
    int n;
    struct lines lines;
    int64_t damaged; /* lines of metrics.jsonl that are left out */
    struct sql_table tables[9];
};

/* Fills in what sql_open wants of the tables. A directory without files of a run fails. */
tri_status sql_runs_open(struct sql_runs *r, char **directory, int n);
void sql_runs_close(struct sql_runs *r);

#endif
