/* SPDX-License-Identifier: Apache-2.0
 * A bucket whose sums are made on their way, in chunks (plan/transfer.h: all paths but the
 * exchange). Chunks of other hosts' operands are kept in the slots of these operands, which are not
 * published. The sum of two siblings takes the place of the leftmost such operand below it, which
 * is that of one of the two; the root has a slot of its own. When all of it is there, it is
 * published as what came whole from elsewhere, and the other slots are dropped. */
#ifndef FERRY_PIECES_H
#define FERRY_PIECES_H

#include "crew/view.h"
#include "plan/transfer.h"

struct pieces {
    const struct lane_tree *tree; /* null: the bucket takes no such path */
    const struct view_sums *sums;
    const struct wire_map *map;
    int owner; /* the number on the boards */
    int chunks;
    struct wire_key key;
    int lacks;       /* chunks of the root */
    bool is_over;    /* the root is published */
    int *slot;       /* by node; -1: none is taken */
    int *home;       /* by node: the node in whose slot it is; -1: an operand of this host */
    uint8_t *has;    /* by node and chunk */
    bool *operand;   /* by node; false: this host has none of it, or has taken it in */
    int own;         /* operands of this host that have not been taken in */
    size_t most_nodes, most_pieces;
};

/* For a step that begins: nothing is there yet. The first four, and the key, have been set; `all`
 * has the bucket with a path in chunks. */
tri_status pieces_begin(struct pieces *p, const struct transfers *all, int bucket);
/* Takes in operands that threads have published. */
void pieces_look(struct pieces *p);
bool pieces_wants(const struct pieces *p); /* whether there are any */
bool pieces_has(const struct pieces *p, int node, int chunk);
/* The slot of a node, taken if there is none. */
char *pieces_slot(struct pieces *p, int node);
/* The chunk is in the slot: adds what can be added. */
void pieces_put(struct pieces *p, int node, int chunk);
void pieces_publish(struct pieces *p); /* the root, of which all chunks are there */
void pieces_drop(struct pieces *p);    /* all slots that it has taken and not published */
void pieces_free(struct pieces *p);

#endif
