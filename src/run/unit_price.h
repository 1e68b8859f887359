/* SPDX-License-Identifier: Apache-2.0
 * By what a unit's price is found: a text, and how many threads compute at the same time. */
#ifndef RUN_UNIT_PRICE_H
#define RUN_UNIT_PRICE_H

#include "price/prices.h"
#include "run/run.h"

/* What the time of a unit depends on: not its names. Kernels of other devices are named. Null: out
 * of memory. */
const char *unit_price_text(struct arena *a, const tri_run *run, const struct unit *u);
/* Of all workers. */
int unit_all_threads(const tri_run *run);
/* Threads, workers or replicas that compute lanes of a phase at the same time, if there are enough
 * lanes; and the threads of each, which compute one together. */
int unit_claimers(const struct machine *m, const tri_run *run, int k, int *threads);
/* The threads that compute while the program does. lanes: that a host has at most. */
int unit_busy(const tri_run *run, const struct program *p, int lanes);

#endif
