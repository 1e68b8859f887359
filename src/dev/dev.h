/* SPDX-License-Identifier: Apache-2.0
 * A device is an instance of a kind, which is a table of functions. A nullable function that is
 * missing has a meaning. All layers above use only this: only kernels and transfers access the
 * contents of buffers, and every buffer belongs to one device. */
#ifndef DEV_DEV_H
#define DEV_DEV_H

#include <string.h>

#include "graph/target.h"
#include "graph/unit.h"

enum memory_space { SPACE_HOST };

/* A unit that was prepared once and runs for every lane of every step. */
struct kernel {
    /* Given: how many threads will share the parts; 0: several processes, with any number */
    int threads;
    tri_kernel *run;
    void *state;                  /* becomes call->state; used by one thread at a time */
    void (*release)(void *state); /* nullable */
    size_t scratch;               /* bytes for each running part: call->scratch, aligned to 64 */
    /* run is called for each part 0 <= call->part < parts, in any order, on any threads; parts
     * write different elements. It depends only on the node and `threads`; 0 means 1 */
    int64_t parts;
    /* parts of a second round, which starts after the first and continues the numbers of `parts`.
     * 0: none */
    int64_t then;
    size_t shared;                /* bytes for all parts of both rounds: call->shared */
    /* Whether output `out` of the unit may replace input `in` if that is no longer needed. Null:
     * never. */
    bool (*shares)(const void *state, int out, int in);
    /* The elements [*first, *end) of its outputs that a part writes. The part reads the inputs that
     * they replace only there, so that it can be undone. Null: unknown. */
    void (*span)(const void *state, int64_t part, int64_t *first, int64_t *end);
    bool alias; /* output 0 is input 0 with another shape: nothing to run if they share memory */
};

/* A kind that keeps something for each instance begins a struct of its own with this one. */
struct dev {
    const struct dev_kind *kind;
};

/* `d` is the instance. The target and what is declined are the same for all instances, so that a
 * plan does not depend on one. */
struct dev_kind {
    const char *name;
    enum memory_space space;
    const struct target *target; /* for passes; nullable */
    /* Null if it can run the node, else the reason why not, a static text. */
    const char *(*declines)(const tri_node *n);
    /* What its bits depend on, for the first line of a run, checkpoints and `trireme doctor`:
     * "arithmetic 2". native: with --math native. */
    void (*describe)(struct dev *d, bool native, char *text, size_t bytes);
    /* The instruction set of its kernels, which changes no result; nullable. *remark, unless remark
     * is null: null, or why it is that one. */
    const char *(*instructions)(struct dev *d, const char **remark);
    /* Nullable; called before anything else, any number of times. */
    tri_status (*open)(struct dev *d);
    /* These five are null for host memory. Memory is aligned to 64 bytes, its contents are
     * undefined. */
    void *(*allocate)(struct dev *d, size_t bytes);
    void (*release)(struct dev *d, void *memory, size_t bytes);
    /* Transfers between host memory and the device's. */
    void (*copy_in)(struct dev *d, void *device, const void *host, size_t bytes);
    void (*copy_out)(struct dev *d, void *host, const void *device, size_t bytes);
    /* Within the device's memory. */
    void (*copy)(struct dev *d, void *to, const void *from, size_t bytes);
    /* Only for nodes that it does not decline, and units that its target makes. */
    tri_status (*prepare)(struct dev *d, const struct unit *u, struct kernel *out);
    /* Nullable: kernels and copies only enqueue what they do, and this waits until everything that
     * the calling thread has enqueued is done. copy_out waits by itself. */
    void (*wait)(struct dev *d);
    /* Nullable. Runs fused multiply-adds of f32 in registers for some microseconds; returns the
     * number of operations, two for each. */
    double (*multiply)(struct dev *d);
};

/* The only instance of a kind, by its name; a null name: the default. Null with a message if it is
 * unknown or not built in. */
struct dev *dev_find(const char *name);
struct dev *dev_at(int i); /* null after the last; the first is the default */

/* Functions of the kind, or what a missing one means. */
tri_status dev_open(struct dev *d);
void *dev_allocate(struct dev *d, size_t bytes);
void dev_release(struct dev *d, void *memory, size_t bytes);

static inline void dev_copy_in(struct dev *d, void *device, const void *host, size_t bytes) {
    if (d->kind->copy_in) d->kind->copy_in(d, device, host, bytes);
    else memcpy(device, host, bytes);
}

static inline void dev_copy_out(struct dev *d, void *host, const void *device, size_t bytes) {
    if (d->kind->copy_out) d->kind->copy_out(d, host, device, bytes);
    else memcpy(host, device, bytes);
}

static inline void dev_copy(struct dev *d, void *to, const void *from, size_t bytes) {
    if (d->kind->copy) d->kind->copy(d, to, from, bytes);
    else memcpy(to, from, bytes);
}

static inline void dev_wait(struct dev *d) {
    if (d->kind->wait) d->kind->wait(d);
}

/* A row of a backend's table. supports null: all types and shapes. prepare null: nothing to
 * prepare. */
struct tail;
struct dev_row {
    const char *op;
    tri_kernel *run;
    /* nullable; null if it does, else the reason why not */
    const char *(*supports)(const tri_node *n);
    tri_status (*prepare)(const tri_node *n, void **state);
    void (*release)(void *state);
    /* As in struct target; null: all plain. any_order: takes tensors in any format. */
    void (*formats)(const tri_node *n, struct format *in, struct format *out);
    bool any_order;
    /* Null: no scratch, one part, nothing shared. Else fills in the kernel from the state of
     * `prepare`. */
    void (*plan)(const tri_node *n, struct kernel *k);
    /* Both nullable. leads: whether it can head a unit. follow stores the unit's tail in the state,
     * to which the kernel passes its output piece by piece; called between prepare and plan. */
    bool (*leads)(const tri_node *n);
    void (*follow)(void *state, const struct tail *tail);
};

/* Backends keep their rows in several tables, each ended by a row without a name. */
const struct dev_row *dev_row_find(const struct dev_row *const *tables, const char *op);

/* Null if the row takes the formats of the node's tensors, else the reason why not. */
const char *dev_row_refuses(const struct dev_row *r, const tri_node *n);

/* Host memory; also that of a device whose kind has no functions for it. */
void *dev_host_allocate(size_t bytes);
void dev_host_release(void *memory, size_t bytes);

struct tri_fault {
    bool failed;
    char text[512];
    const tri_node *node; /* whose input has the bad element; null: none */
    int input;
    int64_t element;
    int64_t sample; /* of the step's batch, counted from 1; 0: none or unknown */
};

/* As tri_call_fail, for an element of an input; the caller of the kernel finds its sample. */
void call_fail_at(const tri_call *c, int input, int64_t element, const char *fmt, ...)
    TRI_PRINTF(4, 5);
/* Appends to the text. */
void fault_add(struct tri_fault *fault, const char *fmt, ...) TRI_PRINTF(2, 3);

#endif
