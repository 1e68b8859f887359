/* SPDX-License-Identifier: Apache-2.0
 * Compiles a network by a list of passes. Each is a function from data to data. The graphs are
 * verified after each pass and can be printed. */
#ifndef PLAN_PASSES_H
#define PLAN_PASSES_H

#include "graph/target.h"
#include "plan/dist.h"
#include "plan/lanes.h"
#include "plan/pipeline.h"

/* Whether the options ask for the device's library (--math native). */
bool math_is_native(const tri_options *o);

struct compilation {
    const tri_options *options;
    const struct target *target; /* of the device; null: it lacks nothing and prefers nothing */
    tri_graph *model;    /* as the user wrote it; "train" adds to it. Not owned */
    tri_type half;       /* the type that "precision" has lowered to; TRI_F32: none */
    const char *note;    /* a message for the user; null: none */
    tri_graph *whole;    /* for this batch and these lanes */
    int64_t lanes;
    int all_threads;     /* of all processes that share the steps; 0: one process */
    int hosts;           /* that share them; 0: one */
    bool sums_whole;     /* the step is given the roots of the lanes' sums, unless there are
                          * estimates (plan/estimates.h) */
    int given_levels;    /* 1 more than `levels` is to be; 0: as it follows */
    bool apart;          /* lanes are a phase of their own, as they always are with workers */
    int levels;          /* levels of the lane tree that "step" sums */
    struct lane_tree tree;
    struct cut cut;
    /* The graphs of the phases; for count and lane one per size of a lane. */
    tri_graph *pre, *step;
    int n_sizes;
    int64_t samples[2];
    tri_graph *count[2], *lane[2];
    tri_graph *merge[2]; /* the sums of two lanes' results: of count, of lane */
    int stages;               /* of the pipeline; 0: none */
    enum pipeline_kind pipeline;
    bool steals;              /* legs of workers that are late are computed by others */
    struct legs legs;
    int zero;                 /* the ZeRO level */
    struct strategies strategies;
    struct dist dist[2];      /* of lane, if there is a mesh */
    tri_graph *logical[2];    /* the lanes' graphs before they were expanded, for `dist` */
};

/* Runs the passes up to and including `last` (null: all). */
tri_status passes_run(struct compilation *c, const char *last);
void passes_free(struct compilation *c);

int passes_count(void);
const char *passes_name(int i);
const char *passes_help(int i);
int passes_find(const char *name); /* -1 with a message: there is none of this name */
bool passes_may(int i); /* tri_options.passes may leave it out */

/* Sets the attribute "way" of convolutions. Parts: they will be split and must have the way that
 * the whole node would have. */
void passes_choose_conv(tri_graph *g, const struct target *t, bool winograd, bool parts);

/* The graphs after a pass (null: after all) as text, to be freed; null with a message. */
char *passes_dump(tri_graph *g, const tri_options *o, const struct target *target,
                  const char *after);

/* The graphs of all phases as text, to be freed: equal texts give equal bits. Left out is what
 * changes no bit: recomputation, formats, orders, and how many compute it. Changes the network.
 * Null with a message. */
char *passes_program(tri_graph *g, const tri_options *o, const struct target *target);

#endif
