/* SPDX-License-Identifier: Apache-2.0
 * The store as processes see it that have no network: they find boards and slots by the layout in
 * the head. */
#ifndef CREW_VIEW_H
#define CREW_VIEW_H

#include "crew/board.h"
#include "crew/head.h"

/* A bucket that is summed. */
struct view_sums {
    struct board *board;
    char *slots;
    size_t stride, bytes; /* from slot to slot; of a node's result */
    const struct wire_part *part; /* how it travels; null: as it is */
    int parts;
    const char *values; /* of the store, for the estimates of its parts: see struct tree */
    size_t apart;
    bool adds;  /* it is all numbers of f32, which are added */
    int leg;    /* whose lanes are claimed here; -1: none are */
    int rounds; /* nodes with so many sums above them, or fewer, are rounded; -1: none is */
};

/* What a node of it takes on the wire. */
size_t view_wire_bytes(const struct view_sums *s);

struct view {
    struct crew_head *head;
    int fd;
    char *base; /* null: no store exists yet */
    size_t bytes;
    struct lane_tree tree[CREW_MOST_SHAPES][2]; /* by shape and phase */
    struct board *board[CREW_MOST_SHAPES][2];   /* of all buckets; null: no such phase */
    struct view_sums *sums[CREW_MOST_SHAPES][2]; /* of those that are summed, in their order */
    int n_sums[CREW_MOST_SHAPES][2];
};

/* Maps the store and binds its boards, once the reporter has laid it out; else it does nothing. */
tri_status view_map(struct view *v);
void view_unmap(struct view *v);
/* Number i of a region. */
void *view_region(const struct view *v, enum region_number r, int64_t i);
/* Where the boards of all buckets are. */
const struct crew_board *view_boards(const struct view *v, int shape, int phase);
/* Frees on all boards what a dead owner held: it may have held slots in an earlier step. */
void view_recover(struct view *v, uint64_t step, int owner);

#endif
