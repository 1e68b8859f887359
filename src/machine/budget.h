/* SPDX-License-Identifier: Apache-2.0
 * What memory a run takes, known before it is touched; and whether there is so much. */
#ifndef MACHINE_BUDGET_H
#define MACHINE_BUDGET_H

#include "machine/machine.h"

/* The program, its libraries, the graphs: what a run takes at most besides its plan. */
#define BUDGET_PROGRAM ((size_t)64 << 20)

/* Bytes. */
struct budget {
    size_t parameters, states; /* of the network */
    size_t optimizer;
    size_t arena;    /* activations, gradients, scratchpads: of all workers */
    size_t scratch;  /* of arena: what operators need for themselves, where it is fullest */
    size_t partials; /* sums of lanes on their way through the tree */
    size_t carried;  /* computed once a step, before the lanes: weights in other types and layouts */
    size_t data;     /* inputs of this step and the next, outputs, and */
    size_t held;     /* of data: what its source holds, as ids of texts, and the order of its samples */
    size_t copy;     /* of all that is kept, for checkpoints while the run goes on */
    size_t shared;   /* what several processes share besides: the step's arena, boards, undo records */
    size_t program;  /* BUDGET_PROGRAM, of each process; not in total */
    size_t total;
};

/* Arenas that another machine lends are not counted. */
struct budget budget_of(const struct machine *m, const struct store *store);

/* With the machines beside it, which are there as long as it is: all bytes. */
size_t budget_with_others(const struct machine *m, const struct store *store);

/* The tensors that live where the fullest arena is fullest, the largest first: fills at most `most`,
 * returns how many there are. */
size_t budget_peak(const struct machine *m, const tri_tensor **out, size_t most);

/* The least of the limit asked for (0: none), the cgroup's and the machine's, and whose it is; `held` is
 * what this process has taken of it already. */
size_t budget_limit(int64_t asked, size_t held, const char **whose);

/* Refuses what is more than there is, beside the machines that lend to this one. */
tri_status budget_check(const struct machine *m, const struct store *store, int64_t asked);

#endif
