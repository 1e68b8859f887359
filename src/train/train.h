/* SPDX-License-Identifier: Apache-2.0
 * What training adds to a network: optimizers as graph, schedules, initial values. */
#ifndef TRAIN_TRAIN_H
#define TRAIN_TRAIN_H

#include "graph/graph.h"

/* States whose names begin so belong to the optimizer: they are no part of a model's file. */
#define OPTIMIZER_PREFIX "optimizer."

/* Checks the name and the numbers of an optimizer, and fills in what is customary. */
tri_status optimizer_check(tri_optimizer *o);
/* Whether a number of an optimizer that was checked is 0: TRI_ZERO stays as it is. */
bool optimizer_is_zero(double value);
/* "sgd, momentum, ..." */
const char *optimizer_names(void);

/* A schedule's text taken apart: "cosine:end=0.01,warmup=500". */
struct schedule {
    int kind;
    int64_t warmup, every;
    double factor, power, end;
};
tri_status schedule_parse(const char *text, struct schedule *out);
/* The rate of step `step` (from 1) of `total`: the base rate times the schedule's factor, rising
 * from 0 during warm-up. */
double schedule_rate(const struct schedule *s, double base, int64_t step, int64_t total);
/* Whether rates depend on the number of all steps. */
bool schedule_ends(const struct schedule *s);
const char *schedule_help(void);

/* Elements [begin, end) of what the initialiser gives for this name and shape; `out` holds the
 * first of them. */
void init_draw(const tri_init *init, uint64_t seed, const char *name, const tri_spec *spec,
               int64_t begin, int64_t end, void *out);

#endif
