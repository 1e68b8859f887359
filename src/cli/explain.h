/* SPDX-License-Identifier: Apache-2.0
 * What `trireme explain` shows, as text or as JSON. */
#ifndef CLI_EXPLAIN_H
#define CLI_EXPLAIN_H

#include "machine/machine.h"
#include "plan/explain.h"
#include "plan/passes.h"

#define EXPLAIN_MOST_SEATS 16 /* of a mesh that is expanded, for the memory of each seat */

struct explanation {
    const char *model;
    const struct compilation *c;
    const struct machine *m; /* null: the mesh is too large to be expanded */
    const struct dist *d; /* of the lanes that have most samples; without a mesh it is empty */
    int64_t seats, replicas;
    bool devices;  /* a number of them was given */
    bool measured; /* `cost` is known */
    double cost[LEGS_MOST]; /* seconds of each leg of a lane, on one thread */
    bool expanded; /* `lane` is known */
    double gradients; /* bytes of trainable parameters */
    double step[MOVE_TIMES]; /* bytes that move in all lanes of a step */
    int64_t shown; /* seats described: all, or the one at the origin */
    struct {
        int16_t at[MESH_MOST_AXES];
        struct seat_bytes bytes;
        size_t lane; /* of the arena of a lane, at most at once */
    } seat[EXPLAIN_MOST_SEATS];
};

/* A bucket of results that are summed over the lanes; see explain_hands_over for the others. */
struct explained_bucket {
    size_t bytes;
    int results;
    int64_t item, items; /* it is complete after so many of the lane's units; all units */
    const char *after;   /* the operator; null: it is complete when the lane is */
};
int explain_buckets(const struct explanation *e);
struct explained_bucket explain_bucket(const struct explanation *e, int bucket);

/* Stages of a pipeline. */
struct explained_stage {
    int track, operators[3]; /* by enum leg_kind */
    const char *first, *last; /* of its forward operators */
};
struct explained_stage explain_stage(const struct explanation *e, int stage);

/* What a leg hands to other legs: one of the buckets. */
struct explained_handed {
    int leg, tensors, kept; /* kept: lanes */
    size_t bytes;           /* of a lane */
    const tri_tensor *largest;
};
bool explain_hands_over(const struct explanation *e, int bucket);
struct explained_handed explain_handed(const struct explanation *e, int bucket);
void explain_readers(const struct explanation *e, int bucket, struct text *out); /* "F1,B0" */
/* The part of the tracks' time in which they wait, by `cost`; below 0 with a message: it is not
 * known. */
double explain_waiting(const struct explanation *e);
void explain_add_stages(const struct explanation *e, struct text *out);

void explain_as_text(const struct explanation *e, struct text *out);
/* One object. False: out of memory. */
bool explain_as_json(const struct explanation *e, struct text *out);

#endif
