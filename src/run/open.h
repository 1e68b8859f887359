/* SPDX-License-Identifier: Apache-2.0
 * Opening and closing runs, besides tri_open and tri_close. */
#ifndef RUN_OPEN_H
#define RUN_OPEN_H

#include "crew/head.h"
#include "run/run.h"

/* Of a program that `trireme COMMAND -- PROGRAM` has started. Ends the process after the command if
 * this is the network that it is about. True: it is one before that, whose run makes no step and
 * writes nothing. Defined in src/cli/visit.c, which is above this layer. */
bool visit_opens(const tri_graph *g, const tri_options *o);
bool visit_is_on(void); /* it has been started so */
/* Before a run is planned: the plan that --parallel auto finds takes the place of what its options
 * say. Defined in src/search/automatic.c, which is above this layer. */
tri_status search_settles(tri_run *run);
/* If a launcher, such as mpirun, has started several of this program's processes, the first becomes
 * the agent of workers that are the others, and none returns. Defined in src/cli/launched.c. */
void launched_opens(const tri_options *o);

/* Unsets the options by which a run writes files, evaluates, resumes, prints or ends early. */
void run_leave_nothing(tri_options *o);

/* Whether later runs of this process print notes. Returns what it was. */
bool run_print_notes(bool whether);

/* The steps of later runs of one process have the phases and leave as many levels of sums as this
 * machine's do, which may be of other processes and hosts; null: as usual. */
void run_like(const struct machine *m);

/* As tri_open, on this device, whichever the options name. */
tri_run *run_open_on(tri_graph *g, const tri_options *o, struct dev *dev);

/* As tri_open, but only plans the run: nothing is allocated, and it cannot step. Null with a
 * message. workers: the run is planned as one of several workers; or null. */
tri_run *run_plan(tri_graph *g, const tri_options *o, const struct crew_size *workers);
/* The same with the run's data, from which the shapes of its steps follow. */
tri_run *run_plan_with_data(tri_graph *g, const tri_options *o, const struct crew_size *workers);
void run_free(tri_run *run);

#endif
