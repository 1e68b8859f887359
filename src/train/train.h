/* SPDX-License-Identifier: Apache-2.0
 * What training adds to a network: optimizers, learning-rate schedules, initial values. */
#ifndef TRAIN_TRAIN_H
#define TRAIN_TRAIN_H

#include "graph/graph.h"

/* Name prefix of the optimizer's states, which model files leave out. */
#define OPTIMIZER_PREFIX "optimizer."

/* Checks the name and the settings of an optimizer and fills in its defaults. */
tri_status optimizer_check(tri_optimizer *o);
/* The name of a setting, beside rate and schedule, that `o` asks for but a step with the settings
 * `used` does not have; null: there is none. */
const char *optimizer_lacks(const tri_optimizer *used, const tri_optimizer *o);
/* "sgd, momentum, ..." */

/* A parsed schedule such as "cosine:end=0.01,warmup=500". */
struct schedule {
    int kind;
    int64_t warmup, every;
    double factor, power, end;
};
tri_status schedule_parse(const char *text, struct schedule *out);
/* The rate of step `step` (from 1) of `total`: the base rate times the schedule's factor. During
 * warm-up the rate rises linearly from 0. */
double schedule_rate(const struct schedule *s, double base, int64_t step, int64_t total);
/* Whether rates depend on the total number of steps. */
bool schedule_ends(const struct schedule *s);

/* Writes elements [begin, end) of the initial value for this name and shape; element `begin` is the
 * first in `out`. */
void init_draw(const tri_init *init, uint64_t seed, const char *name, const tri_spec *spec,
               int64_t begin, int64_t end, void *out);

#endif
