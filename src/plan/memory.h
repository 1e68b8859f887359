/* SPDX-License-Identifier: Apache-2.0
 * Where the tensors of one program lie in its arena: by lifetime, in the order of its units. A place
 * may be had by several tensors: an alias is its input under another shape; an output that is
 * written as its input is read takes over the place of one that nobody needs any more. */
#ifndef PLAN_MEMORY_H
#define PLAN_MEMORY_H

#include "graph/unit.h"

#define MEMORY_ALIGN 64
#define MEMORY_OUTSIDE SIZE_MAX

static inline size_t memory_round(size_t bytes) { return (bytes + MEMORY_ALIGN - 1) / MEMORY_ALIGN * MEMORY_ALIGN; }

/* One unit, as far as its memory is concerned. */
struct memory_item {
    const struct unit *unit;
    size_t scratch; /* for the time of this unit */
    bool alias;     /* output 0 is input 0 */
    bool (*shares)(const void *state, int out, int in); /* see struct kernel */
    const void *state;
    bool early; /* it updates nothing in place */
};

struct memory_plan {
    size_t *offset;  /* by tensor; MEMORY_OUTSIDE: it is bound */
    int *root;       /* by tensor: the one whose place it has, itself for most */
    size_t *scratch; /* by item: offset */
    size_t total;    /* bytes of the arena */
    /* The most bytes that live at once, and the item at which they do: no plan needs less. */
    size_t peak;
    int peak_item;
    /* By tensor: the items between which the place of a root lives; the end is n where it lives on. */
    int *begin, *end;
};

/* outside (by tensor): it is bound from outside. Results (named outputs, values and conditions of
 * updates) live to the end. The value of an update without condition may take the place of its
 * target: then root[value] is root[target]. False: out of memory. */
bool memory_plan(const tri_graph *g, const struct memory_item *item, size_t n, const bool *outside,
                 struct memory_plan *out);
void memory_plan_free(struct memory_plan *p);

/* Marks the tensors that are bound from outside: sources, and with `outputs` those named "=N". */
void memory_mark_outside(const tri_graph *g, bool outputs, bool *outside);

size_t memory_bytes(const tri_tensor *t); /* with its alignment */

#endif
