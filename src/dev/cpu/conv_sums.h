/* SPDX-License-Identifier: Apache-2.0
 * What becomes of the sums that parts of a convolution's weight derivative have made, in f32 and in
 * an order of their own whose outermost dimension is the output channels: they are added up, always
 * from the first part to the last, and brought into the order and type of the node's output. And
 * how many parts. */
#ifndef DEV_CPU_CONV_SUMS_H
#define DEV_CPU_CONV_SUMS_H

#include "dev/cpu/copy.h"
#include "dev/cpu/cpu.h"
#include "ops/window.h"

#define CONV_MOST_PARTS 16
/* Parts of a convolution that are each worth a thread's while. */
int64_t conv_parts(const struct window *w);
/* At most so many along the samples: where the weight is most of what is read, which is read for
 * each part, of at least 4 samples. */
int64_t conv_sample_parts(const struct window *w, int64_t parts);
/* At most so many of the weight's derivative: partial sums should not cost more than what they are
 * made of; but two parts are worth it. */
int64_t conv_sum_parts(const struct window *w, int64_t parts);

/* Output channels are shared among `parts`, in blocks. */
struct conv_sums {
    int64_t rows, block, parts;
    size_t row;       /* elements of an output channel */
    struct copy copy; /* of a block */
};

/* At most so many parts; `block`: as many channels stay together, at least. */
tri_status conv_sums_make(const tri_node *n, const struct pack *order, int64_t block, int64_t most,
                          struct conv_sums *s);
/* The output channels of a part. */
struct cpu_range conv_sums_channels(const struct conv_sums *s, int64_t part);
/* To the node's output, from the part's sums, of its own channels. */
void conv_sums_put(const struct conv_sums *s, const tri_call *c, int64_t part, const float *sums);
/* The part's channels of `n` whole sums that lie one after the other: added up, then put. */
void conv_sums_add(const struct conv_sums *s, const tri_call *c, int64_t part, float *sums,
                   int64_t n);

#endif
