/* SPDX-License-Identifier: Apache-2.0
 * All-reduce between ranks of one machine, threads or processes, in memory that all of them have
 * mapped, at any address. Nothing is copied: each rank sums its share of the elements from all
 * inputs and writes it to all results. The order of sums is fixed (comm/sum.h), so all results have
 * the same bits, whatever the shares.
 *
 * The memory: one barrier line per rank, then inputs, then results; each input and result begins on
 * a page. */
#ifndef COMM_ALLREDUCE_H
#define COMM_ALLREDUCE_H

#include "comm/barrier.h"
#include "comm/sum.h"

/* One rank's view. */
struct allreduce {
    struct barrier barrier;
    size_t most;   /* elements */
    bool backward; /* the next call processes its share from the end */
    const float *in[SUM_RANKS];
    float *out[SUM_RANKS];
};

/* The size of the memory for up to `most` elements. */
size_t allreduce_bytes(int ranks, size_t most);
/* Sets up a rank's view. The memory is zero before the first rank joins, and begins at a multiple
 * of BARRIER_LINE, best on a page. All ranks pass the same values except `rank`. */
void allreduce_join(struct allreduce *a, void *memory, int ranks, int rank, size_t most,
                    bool crowded);

/* The rank's own. */
float *allreduce_input(const struct allreduce *a);
const float *allreduce_result(const struct allreduce *a);

/* Sums the first n elements; all ranks call it. The result is valid until the rank's next call. The
 * input may be changed as soon as the call returns. */
void allreduce_sum(struct allreduce *a, size_t n);

#endif
