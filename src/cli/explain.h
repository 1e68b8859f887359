/* SPDX-License-Identifier: Apache-2.0
 * What `trireme explain` shows, as text or as JSON. */
#ifndef CLI_EXPLAIN_H
#define CLI_EXPLAIN_H

#include "machine/parts.h"
#include "plan/explain.h"
#include "plan/passes.h"

#define EXPLAIN_MOST_SEATS 16 /* of a mesh that is expanded, for the memory of each seat */

/* The command's own options. */
struct own {
    int64_t devices, bucket;
    bool json, factors, measure, full;
    const char *match;
    const char *hosts, *out;
    int path; /* of struct launch */
    bool asks_path;
};

struct explanation {
    const char *model;
    const struct compilation *c;
    const struct machine *m; /* null: the mesh is too large to be expanded */
    const struct dist *d; /* of the lanes that have most samples; without a mesh it is empty */
    const struct own *own;
    int64_t seats, replicas;
    const double *cost; /* seconds of each leg of a lane, on one thread; null: not measured */
    double gradients; /* bytes of trainable parameters */
    double step[MOVE_TIMES]; /* bytes that move in all lanes of a step */
    struct seat_bytes unsplit; /* of a lane */
    size_t unsplit_lane;       /* of its arena, if it is expanded */
    int64_t shown; /* seats described: all, or the one at the origin */
    struct {
        int16_t at[MESH_MOST_AXES];
        struct seat_bytes bytes;
        size_t lane; /* of the arena of a lane, at most at once */
    } seat[EXPLAIN_MOST_SEATS];
};

struct cli_arguments;
/* What several hosts send each other; own->hosts or --path was given. */
tri_status explain_hosts(struct cli_arguments *a, const struct own *own);

void explain_add_stages(const struct explanation *e, struct text *out);

void explain_as_text(const struct explanation *e, struct text *out);
/* One object. False: out of memory. */
bool explain_as_json(const struct explanation *e, struct text *out);

#endif
