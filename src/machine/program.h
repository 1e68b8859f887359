/* SPDX-License-Identifier: Apache-2.0
 * What runs: the nodes of one graph as a flat list of kernels at fixed places of an arena. Sources
 * and results that others share are bound from outside. */
#ifndef MACHINE_PROGRAM_H
#define MACHINE_PROGRAM_H

#include "dev/dev.h"
#include "machine/team.h"
#include "plan/memory.h"

/* What one thread runs of a unit. */
struct program_kernel {
    struct kernel kernel;
    tri_call call;
    const void **in;
    void **out;
};

struct program_item {
    const struct unit *unit;
    int64_t parts[2]; /* of its two rounds */
    int64_t before;   /* parts of all items before */
    int64_t each;   /* random kernels: elements of output 0 that one sample has */
    size_t scratch; /* bytes for each thread */
    size_t shared;  /* bytes for all of them */
    struct program_kernel *by_thread;
};

/* Of one thread's runs of an item: for who wants to know what takes how long. */
struct program_time {
    double seconds;
    int64_t calls; /* those of its first part */
};

/* Of a thread: the item that failed it, if any. */
struct program_fault {
    size_t item;
    struct tri_fault fault;
};

/* A tensor that is bound anew in every step: found once, so that a step compares no names. */
struct program_port {
    int tensor; /* its number in the program's graph */
    int of;     /* given, result "=N": the number in the whole graph; input: the machine's */
    int top;    /* given: see plan/lane_tree.h */
};

struct program {
    const tri_graph *g; /* not owned */
    const struct dev *dev;
    int threads; /* that run it together; each has kernels of its own */
    struct units units;
    struct program_item *item;
    size_t n_items;
    bool joint;     /* there are parts for more than one thread */
    struct memory_plan memory;
    void *arena;    /* of memory.total bytes; one may serve several programs in turn */
    void **value;   /* by tensor number: where it lies; of a tensor in the place of another: not used */
    /* What kernels are given is set when a tensor is bound, not when they run. By tensor: the pointers
     * to be set are slot[first_slot[t]] up to slot[first_slot[t + 1]]. */
    void ***slot;
    int *first_slot;
    void *constants; /* values of constants and arrays */
    size_t constant_bytes;
    /* Tests look on: called after each item of a program that one thread runs. Null: nobody does. */
    void (*watch)(const struct program *p, size_t item);
    /* Called before each item, on the first of the threads that run it; false: it is to be broken off,
     * and program_run gives false without a fault. Null: nobody asks. */
    bool (*before)(void *user, const struct program *p, size_t item);
    void *user;
    /* Items from `gate` on write to the store. They begin only if `may` says so, once all before them are
     * done; else program_run gives false without a fault. Threads ask on their own and must hear the
     * same. Null: they always begin. */
    size_t gate;
    bool (*may)(const void *arg);
    const void *may_arg;
    struct program_fault *seen; /* by thread */
    struct program_time *times; /* by thread, then item; null: nobody wants to know */
    void *blocks[2]; /* kernels and pointers of all items */
    struct program_port *given, *result, *input; /* one block */
    int n_given, n_result, n_input;
};

/* What one run of a program is about. */
struct program_step {
    uint64_t seed;
    int64_t step;
    int64_t sample; /* the first of the lane */
    struct tri_fault *fault;
};

enum {
    PROGRAM_OUTPUTS = 1, /* outputs named "=N" are bound from outside */
    PROGRAM_UNDO = 2,    /* places are shared only where a part can be undone (kernel.span) */
    PROGRAM_GATE = 4,    /* nothing is updated in place before the loss is known */
    PROGRAM_LOSS = 8,    /* what leads to the loss runs first */
};
/* how: of these. threads: those of the team it will be run with. */
tri_status program_make(const tri_graph *g, const struct dev *dev, unsigned how, int threads,
                        struct program *out);
/* own: where what the operators need for themselves lies, of this process's threads; the arena itself,
 * or another of the same size where that is shared with other processes. */
void program_place(struct program *p, void *arena, void *own);
void program_bind(struct program *p, int tensor, void *memory);
/* Bytes of the arena that item i needs for itself. */
size_t program_scratch(const struct program *p, size_t i);
/* Where a tensor lies. */
void *program_value(const struct program *p, int tensor);
/* Runs all kernels, by a team of as many threads as it was made for, or on the calling thread alone
 * (null); stops at the first that fails. False: see the fault. */
bool program_run(struct program *p, struct team *team, const struct program_step *step);
/* Some parts of item i: [first, end), on one thread. */
bool program_run_parts(const struct program *p, size_t i, int thread, int64_t first, int64_t end,
                       const struct program_step *step);
void program_free(struct program *p);

#endif
