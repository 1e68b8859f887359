/* SPDX-License-Identifier: Apache-2.0
 * A profile in figures, for the rules of a report and for comparisons. */
#ifndef PROFILE_STUDY_H
#define PROFILE_STUDY_H

#include "profile/path.h"
#include "profile/tables.h"

struct study {
    double all;               /* nanoseconds of all computing threads, in all steps */
    double threads;           /* mean number of them */
    double step;              /* seconds, mean of the first host's steps */
    double spent[SPENTS];     /* shares of `all` */
    struct tables_item *item; /* by tables_number */
    struct path path;
};

/* What is found becomes p->study, unless there is one, and goes with p. */
tri_status study_make(struct profile *p);

/* What part of a step an item takes: of the critical path, or if there is none, of all threads'
 * time. */
double study_share(const struct profile *p, int host, int item);

#endif
