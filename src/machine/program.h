/* SPDX-License-Identifier: Apache-2.0
 * A program: the units of one graph as a flat list of kernels, with a fixed place in an arena for
 * each tensor. Tensors that programs share are bound to memory outside the arena. */
#ifndef MACHINE_PROGRAM_H
#define MACHINE_PROGRAM_H

#include "dev/dev.h"
#include "machine/team.h"
#include "plan/memory.h"

/* A unit's kernel, as one thread calls it. */
struct program_kernel {
    struct kernel kernel;
    tri_call call;
    const void **in;
    void **out;
};

struct program_item {
    const struct unit *unit;
    const uint16_t *member; /* the members of a replica that run it, in order */
    int members;
    int64_t parts[2];        /* of the kernel's two rounds */
    int64_t parts_before;    /* parts of all earlier items */
    int64_t sample_elements; /* random kernels: elements of output 0 per sample */
    size_t scratch;          /* bytes per thread that runs it */
    size_t shared;           /* bytes for all threads together */
    struct program_kernel *by_thread;
};

/* A thread's failure, and the item that caused it. */
struct program_fault {
    size_t item;
    struct tri_fault fault;
};

/* A tensor that is bound in every step. Found once, so that a step compares no names. */
struct program_port {
    const tri_tensor *is;
    int tensor; /* its number in the program's graph */
    int of;     /* given, result: its number in the whole graph; input: the executable's */
    int top;    /* given: see plan/lane_tree.h */
};

struct program {
    const tri_graph *g; /* not owned */
    struct dev *dev;
    int threads; /* that run it together; each has its own kernels */
    int members; /* of the replica, each with so many threads; 1: none */
    struct units units;
    struct program_item *item;
    size_t n_items;
    bool joint; /* some items have parts for more than one thread */
    struct memory_plan memory;
    void *arena;  /* of memory.total bytes; programs may use one arena in turn */
    void **value; /* by tensor number: its memory. Not set for a tensor in another's place */
    /* Kernels read their pointers from arrays that are written when a tensor is bound, not in each
     * run. The pointers to tensor t are slot[first_slot[t]] up to slot[first_slot[t + 1] - 1]. */
    void ***slot;
    int *first_slot;
    void *constants; /* values of constants and arrays */
    size_t constant_bytes;
    /* For tests and comparisons: called after each item of a program that one thread runs.
     * Nullable. */
    void (*watch)(const struct program *p, size_t item);
    /* Called before each item, on the first thread that runs it. If it returns false, the run ends
     * and program_run returns false without a fault. Nullable. */
    bool (*before)(void *user, const struct program *p, size_t item);
    void *user;
    size_t begin, end; /* the items that a run computes; usually all */
    /* Called by one thread before item stop[k], when all items before that are done on all threads;
     * in the order of k. stop[k] ascends; `end` means after all. If it returns false, no further
     * item runs, and program_run returns false without a fault. */
    const size_t *stop;
    int n_stops;
    bool (*at_stop)(void *arg, int k);
    void *stop_arg;
    size_t gate; /* items from this one on write to the store */
    struct program_fault *faults; /* by thread */
    void *blocks[2];              /* kernels and pointers of all items */
    uint16_t *member;             /* the lists of all items */
    struct program_port *given, *result, *input; /* one block */
    int n_given, n_result, n_input;
};

/* The arguments of one run. */
struct program_step {
    uint64_t seed;
    int64_t step;
    int64_t sample; /* the first of the lane */
    struct tri_fault *fault;
};

enum {
    PROGRAM_OUTPUTS = 1, /* outputs for other phases are bound from outside */
    PROGRAM_UNDO = 2,    /* kernels write in place only where parts can be undone (span) */
    PROGRAM_GATE = 4,    /* nothing is updated in place before the loss is computed */
    PROGRAM_LOSS = 8,    /* units that lead to the loss run first */
};
/* how: a set of PROGRAM_... threads: as many as the team that will run it. */
tri_status program_make(const tri_graph *g, struct dev *dev, unsigned how, int threads,
                        struct program *out);
/* The program of each member of a replica, see machine/replica.h. What a program computes does not
 * depend on threads and members, which fix the cut into parts and the plan of memory. */
tri_status program_make_member(const tri_graph *g, struct dev *dev, unsigned how, int threads,
                               int members, struct program *out);
/* Binds the tensors of the arena. own: the arena, or if that is shared with other processes, memory
 * of program_own_bytes for the scratch of this one's threads. */
void program_place(struct program *p, void *arena, void *own);
size_t program_own_bytes(const struct program *p);
/* The same for a member of a replica. When all members are at rest, it may read all tensors and run
 * any item again. */
void program_place_member(struct program *p, int member, char *arena);
void program_bind(struct program *p, int tensor, void *memory);
/* The number of a member among those that run item i; -1: it does not. */
int program_rank(const struct program *p, size_t i, int member);
/* Scratch bytes of item i, of all threads. */
size_t program_scratch(const struct program *p, size_t i);
/* The memory of a tensor. */
void *program_value(const struct program *p, int tensor);
/* Runs all kernels until one fails. team: null (the calling thread alone), or of as many threads as
 * the program was made for. False: see the fault. */
bool program_run(struct program *p, struct team *team, const struct program_step *step);
/* Runs the parts [first, end) of item i on one thread. */
bool program_run_parts(const struct program *p, size_t i, int thread, int64_t first, int64_t end,
                       const struct program_step *step);
/* The parts [*begin, *end) of `parts` that thread t of n runs. */
void program_share(int64_t parts, int64_t t, int64_t n, int64_t *begin, int64_t *end);
/* Whether result i is what a leg of a pipeline hands to other legs. */
static inline bool program_hands_over(const struct program *p, int i) {
    return p->g->legs && p->result[i].of >= p->g->handed;
}
void program_free(struct program *p);

#endif
