/* SPDX-License-Identifier: Apache-2.0
 * Sums of numbers without a run, to measure them: a bucket whose boards and slots are
 * in this process's own memory, on which threads publish lanes and add them as in machine/tree.h,
 * and which a mover (ferry/mover.h) serves as it serves the store of a run. */
#ifndef FERRY_SUMS_H
#define FERRY_SUMS_H

#include "ferry/mover.h"

/* A bucket's memory. */
struct sums_bucket {
    struct board board;
    struct view_sums view;
    claim_word *node, *slot;
    char *slots;
};
struct sums_memory {
    const struct lane_tree *tree; /* these three are borrowed */
    const uint8_t *keeps;         /* as in struct board */
    const _Atomic uint8_t *mine;
    size_t numbers;
    int threads; /* that publish, beside a mover */
    int slots;
};
tri_status sums_bucket_make(const struct sums_memory *m, struct sums_bucket *out);
void sums_bucket_free(struct sums_bucket *b);
char *sums_bucket_slot(const struct sums_bucket *b, int slot);

/* Sums over the lanes of some hosts: as many of each host as it has threads. */
struct sums_ask {
    int self, hosts, threads;
    enum path path;
    size_t numbers;
};

struct sums;
tri_status sums_open(const struct sums_ask *ask, struct sums **s);
void sums_close(struct sums *s); /* nullable */
/* Threads have the numbers from 0 on, on the board; the mover the next one. */
/* Begins a step, when that before is over. Threads then put and publish their lanes. */
void sums_begin(struct sums *s, uint32_t step);
struct mover_step sums_step(const struct sums *s, uint32_t epoch);
/* Writes the thread's numbers of a set. Nothing is written that is still there. */
void sums_put(struct sums *s, int thread, uint32_t set);
/* Publishes them, and makes the sums that are possible then. */
void sums_publish(struct sums *s, int thread);
/* Makes sums that have become possible as a mover has published something. */
void sums_follow(struct sums *s, int thread);
bool sums_are_there(struct sums *s);
/* Fails if a number of the sum over all lanes is another than that of one host. */
tri_status sums_check(struct sums *s, uint32_t set);

#endif
