/* SPDX-License-Identifier: Apache-2.0
 * What runs: the nodes of one graph as a flat list of kernels at fixed places of an arena. Sources
 * and results that others share are bound from outside. */
#ifndef EXEC_PROGRAM_H
#define EXEC_PROGRAM_H

#include "dev/dev.h"

struct program_item {
    struct kernel kernel;
    tri_call call;
    int64_t each; /* random kernels: elements of output 0 that one sample has */
    const void **in;
    void **out;
};

/* A tensor that is bound anew in every step: found once, so that a step compares no names. */
struct program_port {
    int tensor; /* its number in the program's graph */
    int of;     /* given, result "=N": the number in the whole graph; input: the machine's */
};

struct program {
    const tri_graph *g; /* not owned */
    const struct dev *dev;
    struct program_item *item;
    size_t n_items;
    size_t *offset;     /* by tensor number; MEMORY_OUTSIDE: bound */
    size_t arena_bytes; /* what it needs; one arena may serve several programs in turn */
    void **value;       /* by tensor number: where it lies */
    void *constants;    /* values of constants and arrays */
    size_t constant_bytes;
    void *pointers; /* of all items, one block */
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

/* Bind `outputs` named "=N" from outside if outside_outputs. */
tri_status program_make(const tri_graph *g, const struct dev *dev, bool outside_outputs,
                        struct program *out);
void program_place(struct program *p, void *arena);
void program_bind(struct program *p, const tri_tensor *t, void *memory);
/* Runs all kernels; stops at the first that fails. False: see the fault. */
bool program_run(struct program *p, const struct program_step *step);
void program_free(struct program *p);

#endif
