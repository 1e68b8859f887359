/* SPDX-License-Identifier: Apache-2.0
 * Decides how each node of a lane's graph is split over a mesh. Along each axis a node is whole,
 * split along one of its factors, or computes partial results from partial inputs. Strategies come
 * first; a node without one follows its inputs, in the way that moves the fewest bytes; then a node
 * that is whole, and whose result is only used in parts, follows its readers. */
#ifndef PLAN_DIST_H
#define PLAN_DIST_H

#include "plan/layout.h"
#include "plan/strategy.h"
#include "plan/use.h"

/* A tensor that a node needs in another layout than it has. */
struct move {
    int tensor;
    int node, input; /* the first that needs it so; -1: a result, which leaves for the store */
    struct layout from, to;
    size_t bytes;    /* of the tensor, or of a seat's part of it along axes that do not change */
};

struct dist {
    struct mesh mesh;
    tri_graph *g;
    struct use (*use)[MESH_MOST_AXES]; /* by node */
    struct layout *has;                /* by tensor */
    struct layout *need;               /* by node and input, from `first` on */
    size_t *first;                     /* by node */
    bool rebuilt;              /* some nodes: results may be rounded otherwise */
    bool left_out;             /* some nodes, by `maybe`, because they cannot be split as asked */
    struct move *move;
    size_t n_moves, capacity;
};

/* May change the graph: it rebuilds nodes that cannot be split as they are (tri_op.split_form).
 * whole: the graph of the whole batch, of which the lane was cut; null: none. */
tri_status dist_make(tri_graph *lane, const tri_graph *whole, const struct strategies *s,
                     struct dist *out);
void dist_free(struct dist *d);

static inline const struct layout *dist_need(const struct dist *d, const tri_node *n, int input) {
    return &d->need[d->first[n->id] + (size_t)input];
}

/* Of a tensor that no operator makes: that of its first reader. */
const struct layout *dist_layout(const struct dist *d, const tri_tensor *t);

/* Gives all layouts their normal form, and lists the moves. False: memory is out. */
bool dist_find_moves(struct dist *d);

/* The normal form of what a node needs. */
void layout_settle(const struct mesh *m, const tri_shape *shape, struct layout *need);
/* Whether bytes move between seats that have the one and need the other, both in normal form; and
 * of how many, as in struct move. */
bool layout_moves(const struct mesh *m, const tri_spec *t, const struct layout *from,
                  const struct layout *to, double *bytes);
/* Whether the layout takes bytes from other seats: not if each seat takes its part of what is
 * whole, or of what it has. */
bool dist_moves(const struct dist *d, const tri_tensor *t, const struct layout *to);

/* "all-gather over model", for messages. */
void move_text(const struct mesh *m, const struct layout *from, const struct layout *to,
               struct text *out);

#endif
