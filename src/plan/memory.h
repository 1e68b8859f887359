/* SPDX-License-Identifier: Apache-2.0
 * Assigns the tensors of one program to offsets in its arena, by lifetime in the order of its
 * units. Several tensors may have one place: an alias is its input in another shape; an output may
 * take over the place of an input that is not needed later.
 *
 * If the members of a replica run the program together (machine/replica.h), each has a region of
 * the arena for what only it writes and reads, and region 0 is common. So members do not wait for
 * each other's memory. */
#ifndef PLAN_MEMORY_H
#define PLAN_MEMORY_H

#include "graph/unit.h"

#define MEMORY_ALIGN 64
#define MEMORY_OUTSIDE SIZE_MAX

static inline size_t memory_round(size_t bytes) {
    return (bytes + MEMORY_ALIGN - 1) / MEMORY_ALIGN * MEMORY_ALIGN;
}

/* What the memory plan needs to know of one unit. */
struct memory_item {
    const struct unit *unit;
    size_t scratch; /* bytes needed while it runs */
    bool alias;     /* output 0 is input 0 */
    bool (*shares)(const void *state, int out, int in); /* see struct kernel */
    const void *state;
    bool early; /* it must not update in place */
    int region; /* 1 + m: only member m runs it; else 0 */
};

struct memory_plan {
    size_t *offset;  /* by tensor; MEMORY_OUTSIDE: it is not in the arena */
    int *root;       /* by tensor: the one whose place it has, for most the tensor itself */
    size_t *scratch; /* by item: offset */
    size_t total;    /* bytes of the arena */
    /* The most bytes in use at once, and during which item: no plan can need less. */
    size_t peak;
    int peak_item;
    /* By tensor: the first and last item that need the place of a root. The last is n if it is
     * needed after the program. */
    int *begin, *end;
};

/* outside: by tensor, whether its memory is outside of the arena. Results (named outputs, values
 * and conditions of updates) live to the end, in region 0. The value of an update without condition
 * may take the place of its target: then root[value] is root[target]. regions: all items' regions
 * are less. False: out of memory. */
bool memory_plan(const tri_graph *g, const struct memory_item *item, size_t n, const bool *outside,
                 int regions, struct memory_plan *out);
void memory_plan_free(struct memory_plan *p);

/* Marks the tensors whose memory is outside of the arena: sources, and with `outputs` those that
 * are outputs for other phases. */
void memory_mark_outside(const tri_graph *g, bool outputs, bool *outside);

size_t memory_bytes(const tri_tensor *t); /* including alignment */

#endif
