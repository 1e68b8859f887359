/* SPDX-License-Identifier: Apache-2.0
 * A tensor's format as text: one letter per dimension from the slowest to the fastest, capital if
 * the dimension is cut into blocks; then the blocks, outer first. "abcd" is plain, "acdb"
 * channels-last, "aBcd16b" has channels in blocks of 16, "ABcd4b16a4b" is [a / 16, b / 16, c, d, 4,
 * 16, 4]. Blocks divide their dimension. */
#ifndef GRAPH_PACK_H
#define GRAPH_PACK_H

#include "graph/graph.h"

#define PACK_BLOCKS 6
#define PACK_LOOPS (TRI_MAX_RANK + PACK_BLOCKS)

struct pack {
    int rank, blocks;
    int order[TRI_MAX_RANK];  /* dimensions, the slowest first */
    int dim[PACK_BLOCKS];     /* the dimension that each block cuts */
    int64_t size[PACK_BLOCKS];
};

/* Null if the text describes a format of this shape; else the reason, a static text. */
const char *pack_parse(const char *text, const tri_shape *shape, struct pack *out);
/* The format of t, from its block or its pack; else plain. */
void pack_of(const tri_tensor *t, struct pack *out);
/* False: the text would be too long. */
bool pack_print(const struct pack *p, char text[PACK_TEXT]);
/* The product of all blocks of a dimension. */
int64_t pack_cut(const struct pack *p, int dim);
/* Whether both order all elements of this shape alike. */
bool pack_equal(const struct pack *a, const struct pack *b, const tri_shape *shape);
/* The offset of the element at this index. */
int64_t pack_place(const struct pack *p, const tri_shape *shape, const int64_t *at);

/* One of the loops over all elements: what a step adds to the index of `dim`, and to the offset. */
struct pack_loop {
    int dim;
    int64_t length, step, stride;
};
/* The loops in the memory's order, the innermost first, without those of length 1: how many. */
int pack_loops(const struct pack *p, const tri_shape *shape, struct pack_loop loop[PACK_LOOPS]);

#endif
