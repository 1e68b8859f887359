/* SPDX-License-Identifier: Apache-2.0
 * Cuts a lane into legs: the forward and the backward part of each stage of the pipeline, and
 * perhaps the part that only computes gradients of weights. A leg is a range of the lane's program.
 * The legs of a lane run one after the other, as a schedule (plan/pipeline.h) says, perhaps in
 * several processes. No arithmetic changes.
 *
 * Legs are numbered in the order of the program: forward by stage, then backward from the last
 * stage to the first, each followed by its weights. */
#ifndef PLAN_LEGS_H
#define PLAN_LEGS_H

#include "graph/graph.h"

struct legs {
    int n; /* 1: the lane is one piece */
    int stages;
    bool weights; /* gradients of weights are legs of their own */
};

enum leg_kind { LEG_FORWARD, LEG_BACKWARD, LEG_WEIGHTS };

struct leg {
    int stage;
    enum leg_kind kind;
};

struct legs legs_of(int stages, bool weights); /* stages 0: one leg */
struct leg legs_at(const struct legs *l, int number);
int legs_number(const struct legs *l, struct leg leg); /* -1: there is no such leg */
char legs_letter(enum leg_kind kind);
/* "F0", "B0", "W0". */
#define LEG_TEXT 16
void legs_name(const struct legs *l, int number, char name[LEG_TEXT]);

/* A set of legs. */
struct leg_set {
    uint64_t word[LEGS_MOST / 64];
};
static inline bool leg_set_has(const struct leg_set *s, int leg) {
    return s->word[leg / 64] >> (leg % 64) & 1;
}
static inline void leg_set_add(struct leg_set *s, int leg) {
    s->word[leg / 64] |= (uint64_t)1 << (leg % 64);
}

static inline bool leg_set_is_empty(const struct leg_set *s) {
    for (size_t i = 0; i < COUNT(s->word); i++)
        if (s->word[i]) return false;
    return true;
}

/* Sets the leg of each node, puts the nodes in the order of the legs, and declares what goes from
 * one leg to another as outputs of the numbers from `handed` on. A result of the lane that later
 * legs read is copied, because its memory is released when it is summed. */
tri_status legs_cut(tri_graph *lane, const struct legs *l, int handed);

/* By tensor: the legs, other than its own, that read it. To be freed; null: out of memory. */
struct leg_set *legs_readers(const tri_graph *lane);

#endif
