/* SPDX-License-Identifier: Apache-2.0
 * A device is a table of functions; those marked nullable have a meaning when they are missing.
 * Everything above asks through it: only kernels and transfers touch the contents of buffers, and
 * every buffer lies in one memory space. */
#ifndef DEV_DEV_H
#define DEV_DEV_H

#include "graph/target.h"
#include "graph/unit.h"

enum memory_space { SPACE_HOST };

/* A unit made ready once; then run for every lane of every step. */
struct kernel {
    tri_kernel *run;
    void *state;                  /* becomes call->state; one thread at a time uses it */
    void (*release)(void *state); /* null: nothing to free */
    size_t scratch;               /* bytes that run needs for itself, for each part at work:
                                     call->scratch, aligned to 64 */
    int64_t parts;                /* run is called for each part 0 <= call->part < parts, in any
                                     order, on any threads, each writing what no other does. It
                                     follows from the node alone; 0 is 1 */
    int64_t then;                 /* parts of a second round, which begins when the first is done:
                                     they are counted on from `parts`. 0: none */
    size_t shared;                /* bytes for all parts of both rounds together: call->shared */
    /* Whether output `out` of the unit may lie where input `in` does, if that is no longer needed.
     * Null: never. */
    bool (*shares)(const void *state, int out, int in);
    /* The elements [*first, *end) of its outputs that a part writes: all that it reads of what they
     * take the place of lies there too, so that a part can be undone. Null: not told. */
    void (*span)(const void *state, int64_t part, int64_t *first, int64_t *end);
    bool alias;                   /* output 0 is input 0, under another shape: nothing to run
                                     where they lie at one place */
};

struct dev {
    const char *name;
    enum memory_space space;
    /* What it is, for the first line of a run and `trireme doctor`: "oneDNN 2.6.3, AVX-512". */
    void (*describe)(char *text, size_t bytes);
    tri_status (*open)(void); /* nullable; called before anything else, any number of times */
    void *(*allocate)(size_t bytes); /* aligned to 64 bytes; contents not defined */
    void (*release)(void *memory, size_t bytes);
    /* Transfers between host memory and this device's space. */
    void (*copy_in)(void *device, const void *host, size_t bytes);
    void (*copy_out)(void *host, const void *device, size_t bytes);
    const struct target *target; /* what passes ask; nullable */
    /* Null if it can run the node, else the reason why not, a static text. */
    const char *(*declines)(const tri_node *n);
    /* Only for nodes it does not decline, and units that its target makes. */
    tri_status (*prepare)(const struct unit *u, struct kernel *out);
    /* Within the space. */
    void (*copy)(void *to, const void *from, size_t bytes);
    /* Nullable: kernels and copies only enqueue what they do, and this waits until everything that the
     * calling thread has enqueued is done. copy_out waits by itself. */
    void (*wait)(void);
};

/* By name; null if it is not known or not built in. */
const struct dev *dev_find(const char *name);
const struct dev *dev_at(int i); /* null behind the last; the first is the default */

/* A row of a backend's table. supports: null if every type and shape can be done. prepare: null if
 * there is nothing to make beforehand. */
struct tail;
struct dev_row {
    const char *op;
    tri_kernel *run;
    const char *(*supports)(const tri_node *n); /* null: it does; else the reason why not */
    tri_status (*prepare)(const tri_node *n, void **state);
    void (*release)(void *state);
    /* As in struct target; null: all plain. A row that takes its tensors in whatever order they have
     * says so. */
    void (*lays)(const tri_node *n, struct lying *in, struct lying *out);
    bool any_order;
    /* Null: no scratch, one part, nothing shared. Else adds what the kernel is besides, from the
     * state that prepare has made. */
    void (*plan)(const tri_node *n, struct kernel *k);
    /* Nullable, both: whether it can head a unit, telling the backend's `tail`, which its state keeps,
     * what it has made, piece by piece. follow is called between prepare and plan. */
    bool (*leads)(const tri_node *n);
    void (*follow)(void *state, const struct tail *tail);
};

/* Backends keep their rows in several tables, each ended by a row without a name. */
const struct dev_row *dev_row_find(const struct dev_row *const *tables, const char *op);

/* Null if the row takes the node's tensors as they lie, else the reason why not. */
const char *dev_row_refuses(const struct dev_row *r, const tri_node *n);

/* What backends of the host's memory share. */
void *dev_host_allocate(size_t bytes);
void dev_host_release(void *memory, size_t bytes);
void dev_host_copy(void *to, const void *from, size_t bytes);

struct tri_fault {
    bool failed;
    char text[512];
    const tri_node *node; /* whose input has an element at fault; null: none */
    int input;
    int64_t element;
    int64_t sample; /* of the step's batch, counted from 1; 0: none, or not known */
};

/* As tri_call_fail, for an element of an input: whoever runs the kernel tells which sample it is of. */
void call_fail_at(const tri_call *c, int input, int64_t element, const char *fmt, ...)
    TRI_PRINTF(4, 5);
/* Adds what is known later to the text. */
void fault_add(struct tri_fault *fault, const char *fmt, ...) TRI_PRINTF(2, 3);

#endif
