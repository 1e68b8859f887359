/* SPDX-License-Identifier: Apache-2.0
 * Plans a run as it would be with other options: how much memory it needs then, and which options
 * make it need less. */
#ifndef RUN_TRIAL_H
#define RUN_TRIAL_H

#include "crew/head.h"
#include "run/run.h"

struct trial {
    tri_options options;
    int64_t batch;
    struct crew_size size; /* workers 0: a run of one process */
};

/* Sets whether runs leave the data alone when they are freed; nullable. Returns what it was. */
bool trial_lend(tri_data *d, bool kept);
/* The run itself. */
struct trial trial_of(const tri_run *own);
/* Plans it. Trials have the run's data; the first opens it for all. Null with a message. */
tri_run *trial_plan(tri_run *own, const struct trial *t);
void trial_end(const tri_run *own, tri_run *run);
/* What a planned run needs, with its programs. */
size_t trial_needs(const tri_run *run);
/* *bytes: what the run needs, whatever the limit. */
tri_status trial_bytes(tri_run *own, const struct trial *t, size_t *bytes);

#define LIGHTER_MOST 16

struct lighter {
    char words[48]; /* "--lanes 1" */
    size_t needs;   /* bytes of the run with them instead of its own */
    bool fits, other_bits;
};

/* Those that help, and of these first what changes no bit. Of numbers, which are tried by halves,
 * the first is taken with which the run fits, or else the one that needs least. Returns how many
 * there are; an option that the run does not allow is left out. */
int trial_lighter(tri_run *own, size_t limit, struct lighter out[LIGHTER_MOST]);
/* "3,569 MiB with --threads 1 (fits)", with the gap between its three parts. */
void trial_describe(const struct lighter *l, char gap, struct text *out);
#define LIGHTER_NONE \
    "No other workers, threads, ZeRO level, recomputation, lanes, precision, mesh or batch helps"

/* After a run was refused because it does not fit: adds to the message which options would help.
 * Returns the status. */
tri_status trial_advise(tri_run *run);

#endif
