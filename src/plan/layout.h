/* SPDX-License-Identifier: Apache-2.0
 * How one tensor lies on the seats of a mesh, and which of its places a seat has. */
#ifndef PLAN_LAYOUT_H
#define PLAN_LAYOUT_H

#include "plan/factors.h"

/* One split per axis of the mesh. Axes that split the same places are nested in the mesh's
 * order. */
struct layout {
    struct split axis[MESH_MOST_AXES];
};

/* A tensor's dimensions, divided further where layouts cut the inner places of a dimension, so that
 * each axis of a layout splits one of them. */
struct refined {
    int n;
    int64_t extent[TRI_MAX_RANK];
    int dim[TRI_MAX_RANK];     /* the tensor's dimension */
};

/* [begin, end) of each refined dimension. */
struct box {
    int64_t begin[TRI_MAX_RANK], end[TRI_MAX_RANK];
};

bool split_equal(const struct split *a, const struct split *b);
bool layout_equal(const struct layout *a, const struct layout *b);

/* Whether seats that have parts of a dimension need what windows see of it. */
bool split_sees_neighbours(const struct split *from, const struct split *to);

/* Gives layouts that divide a tensor in the same way the same form: an extent that the seats divide
 * becomes their number, so four heads of 32 places are as 128 places; one seat has the whole. */
void layout_normal(const struct mesh *m, struct layout *l);
/* Whether two splits along an axis of so many seats are the same, other axes left aside. */
bool split_same(const struct split *a, const struct split *b, int64_t seats);

/* Part i of `parts` of [0, extent): the first parts have one place more if it does not divide. */
void part_range(int64_t extent, int64_t parts, int64_t i, int64_t *begin, int64_t *end);

/* Refines a shape so that each split of the n layouts cuts one refined dimension. False if there is
 * no such refinement. */
bool layout_refine(const tri_shape *s, const struct layout *const *layout, int n,
                   const struct mesh *m, struct refined *out);

/* The refined dimension that the split cuts. */
int refined_dim(const struct refined *r, const struct split *s);

/* Narrows the box to what coordinate `at` has along one axis of the layout. False if the places of
 * the box cannot be divided so. */
bool layout_narrow(const struct mesh *m, const struct refined *r, const struct split *s, int axis,
                   int64_t at, struct box *box);

/* The box of the seat at these coordinates. Partial axes do not matter. False: see above. */
bool layout_box(const struct mesh *m, const struct refined *r, const struct layout *l,
                const int16_t *at, struct box *out);

struct box refined_all(const struct refined *r);
/* The shape of a box, with the tensor's rank. */
tri_shape box_shape(const struct refined *r, const struct box *b, int rank);

/* "(model,-)", "partial sum over model": for messages. `rank` is the tensor's. */
void layout_text(const struct mesh *m, const struct layout *l, int rank, struct text *out);

#endif
