/* SPDX-License-Identifier: Apache-2.0
 * All-reduce between ranks of one machine, threads or processes, over memory that all of them have
 * mapped, wherever each has it. Nothing is copied: a rank sums its share of the elements, reading
 * everybody's input, and writes it to everybody's result. The order of sums is fixed (comm/sum.h),
 * so that all results have the same bits, wherever shares begin.
 *
 * The memory: a line of the barrier for each rank, then inputs, then results, each of which begins
 * on a page. */
#ifndef COMM_ALLREDUCE_H
#define COMM_ALLREDUCE_H

#include "comm/barrier.h"
#include "comm/sum.h"

/* One rank's view. */
struct allreduce {
    struct barrier barrier;
    size_t most;   /* elements */
    bool backward; /* the next call goes through its share from the end */
    const float *in[SUM_RANKS];
    float *out[SUM_RANKS];
};

/* Bytes of the memory for up to `most` elements. */
size_t allreduce_bytes(int ranks, size_t most);
/* Makes the rank's view of memory that was all zero and begins on a page, or at least at a multiple
 * of BARRIER_LINE. All ranks say the same but for `rank`. */
void allreduce_join(struct allreduce *a, void *memory, int ranks, int rank, size_t most,
                    bool crowded);

/* The rank's own. */
float *allreduce_input(const struct allreduce *a);
const float *allreduce_result(const struct allreduce *a);

/* Sums the first n elements; called by all ranks. The result is the rank's until its next call, and
 * so is the input as soon as the call returns. */
void allreduce_sum(struct allreduce *a, size_t n);

#endif
