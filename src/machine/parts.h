/* SPDX-License-Identifier: Apache-2.0
 * What a plan consists of: buckets of results, stages, and what legs hand over. */
#ifndef MACHINE_PARTS_H
#define MACHINE_PARTS_H

#include "machine/machine.h"

/* A bucket: of results that are summed over the lanes, or of what a leg hands to other legs. */
struct part_bucket {
    size_t bytes; /* of a lane */
    int results;
    const tri_tensor *largest;
    int64_t item, items; /* summed: it is complete after so many of the lane's units; all units */
    const char *after;   /* the operator; null: it is complete when the lane or leg is */
    int leg, kept;       /* handed over: of so many lanes */
};
int parts_buckets(const struct machine *m);
struct part_bucket parts_bucket(const struct machine *m, int bucket);

/* Stages of a pipeline. */
struct part_stage {
    int track, operators[3]; /* by enum leg_kind */
    const char *first, *last; /* of its forward operators */
};
struct part_stage parts_stage(const struct machine *m, int stage);

/* Whether a leg hands it to other legs; and which read it. */
bool parts_hands_over(const struct machine *m, int bucket);
void parts_readers(const struct machine *m, int bucket, struct text *out); /* "F1,B0" */
/* The part of the tracks' time in which they wait, by `cost`; below 0 with a message: it is not
 * known. */
double parts_waiting(const struct machine *m, const double *cost);

#endif
