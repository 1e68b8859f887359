/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/allreduce.h"

#define PAGE ((size_t)4096)
#define STREAM ((size_t)16 << 20) /* bytes; larger inputs bypass the caches */

static size_t pages(size_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE; }

static size_t lines_bytes(int ranks) { return pages((size_t)ranks * sizeof(struct barrier_line)); }

size_t allreduce_bytes(int ranks, size_t most) {
    return lines_bytes(ranks) + 2 * (size_t)ranks * pages(most * sizeof(float));
}

void allreduce_join(struct allreduce *a, void *memory, int ranks, int rank, size_t most,
                    bool crowded) {
    CHECK(ranks >= 1 && ranks <= SUM_RANKS && rank >= 0 && rank < ranks);
    CHECK((uintptr_t)memory % BARRIER_LINE == 0);
    size_t bytes = pages(most * sizeof(float));
    char *inputs = (char *)memory + lines_bytes(ranks);
    char *results = inputs + (size_t)ranks * bytes;
    *a = (struct allreduce){
        .barrier = {.line = memory, .ranks = ranks, .rank = rank, .crowded = crowded},
        .most = most,
        .backward = true};
    for (int r = 0; r < ranks; r++) {
        a->in[r] = (const float *)(inputs + (size_t)r * bytes);
        a->out[r] = (float *)(results + (size_t)r * bytes);
    }
}

float *allreduce_input(const struct allreduce *a) { return (float *)a->in[a->barrier.rank]; }

const float *allreduce_result(const struct allreduce *a) { return a->out[a->barrier.rank]; }

/* The start of rank r's share of n elements. No two ranks write to one cache line. */
static size_t share(size_t n, int r, int ranks) {
    size_t lines = (n + SUM_ALIGN - 1) / SUM_ALIGN;
    size_t begin = lines * (size_t)r / (size_t)ranks * SUM_ALIGN;
    return begin < n ? begin : n;
}

/* After the first barrier all inputs are complete and nobody uses an old result. After the second
 * nobody reads an input any more and all shares are written. The first call goes backward, since
 * inputs are usually written forward and their ends are in the cache; then calls alternate, as the
 * end of the last call is in the cache. */
void allreduce_sum(struct allreduce *a, size_t n) {
    int rank = a->barrier.rank, ranks = a->barrier.ranks;
    CHECK(n <= a->most);
    barrier_wait(&a->barrier);
    unsigned way = a->backward ? SUM_BACKWARD : 0;
    if (n * sizeof(float) >= STREAM) way |= SUM_STREAM;
    a->backward = !a->backward;
    sum_to_all(a->in, a->out, ranks, share(n, rank, ranks), share(n, rank + 1, ranks), way);
    barrier_wait(&a->barrier);
}
