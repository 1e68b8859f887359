/* SPDX-License-Identifier: Apache-2.0
 * How much memory a run needs, computed before any is used, and whether there is enough. */
#ifndef MACHINE_BUDGET_H
#define MACHINE_BUDGET_H

#include "machine/machine.h"

/* Bytes, of all processes together. */
struct budget {
    size_t parameters, states; /* of the network */
    size_t optimizer;
    size_t estimates; /* part of optimizer: see plan/estimates.h */
    size_t arena;    /* activations, gradients, scratch: of all threads */
    size_t replicas; /* the same of all replicas, apart from the threads' */
    size_t scratch;  /* part of arena: scratch at the peak of one arena */
    size_t lane_sums; /* slots: results of lanes and their sums */
    size_t handed;   /* slots: what legs of a pipeline hand to others */
    size_t carried;  /* computed once per step before the lanes: weights in other types, formats */
    size_t data;     /* batch buffers, gathered outputs, and `held` */
    size_t held;     /* part of data: what the source and the order of samples take */
    size_t copy;     /* of the store, for checkpoints that are written while the run goes on, or as
                      * large as a sealed file that is read before that */
    size_t coded;    /* of the ferry: messages to and from other hosts that are not f32 */
    size_t shared;   /* what else processes share: arenas of pre and step, boards, undo records */
    size_t program;  /* see budget_program; not in total */
    size_t total;
    size_t untouched; /* part of total, for the worst case: a run may never use it */
};

/* Lent memory is not counted. */
struct budget budget_of(const struct machine *m, const struct store *store);

/* Bytes of m together with all executables that exist at the same time (machine_place.previous). */
size_t budget_with_others(const struct machine *m, const struct store *store);

/* The allowance for the programs of all processes that have m and its predecessors. */
size_t budget_program(const struct machine *m);

/* The tensors that live at the peak of the largest arena, the largest first. Writes at most `most`,
 * returns how many there are. */
size_t budget_peak(const struct machine *m, const tri_tensor **out, size_t most);

/* With a mesh: the most bytes of a lane's arena that the seat at these coordinates needs at once,
 * in the order in which one thread runs all seats, and of what its legs hand over. What seats share
 * counts for each. SIZE_MAX: out of memory. */
size_t budget_seat(const struct machine *m, const int16_t *at);

/* The smallest of --memory-limit (asked; 0: none), the cgroup's limit and the machine's available
 * memory; *whose names it. held: bytes that this process has already taken from it. */
size_t budget_limit(int64_t asked, size_t held, const char **whose);

/* What a run needs and what it may take, in bytes of all its processes with their programs. */
struct verdict {
    bool fits;
    size_t needs, limit;
    const char *whose; /* names the limit; empty: there is none */
};
/* Of m and all executables that exist at the same time. asked: --memory-limit; 0: none. */
struct verdict budget_verdict(const struct machine *m, const struct store *store, int64_t asked);
/* "fits: 3,238 of 4,096 MiB, --memory-limit". A limit of what is needed, as printed, suffices. */
void budget_tell(const struct verdict *v, struct text *out);
/* MiB, rounded up, with a comma before the last three digits. */
void budget_mib(size_t bytes, struct text *out);

/* What all these executables have of the memory, parts of 0 bytes left out. */
#define BUDGET_PARTS 16
struct budget_part {
    size_t bytes;
    const char *what, *more; /* "activations", ": with gradients and scratch" */
};
size_t budget_parts(const struct machine *m, const struct store *store,
                    struct budget_part out[BUDGET_PARTS]);
/* "sums of lanes: 2,520, optimizer state: 950 MiB": the parts that are at least a tenth. */
void budget_tell_most(const struct machine *m, const struct store *store, struct text *out);

/* Refuses what does not fit. */
tri_status budget_check(const struct machine *m, const struct store *store, int64_t asked);

#endif
