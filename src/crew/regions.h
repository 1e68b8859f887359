/* SPDX-License-Identifier: Apache-2.0
 * The table of regions, the memory that is asked for by name. A process without others takes the
 * regions of its executables for itself (machine/machine.c). Workers have all regions in the
 * store's file, which is taken as a whole at the start (run/worker_settle.c). The head says where
 * each region is, so the agent finds it after a death (launch/recover.c). */
#ifndef CREW_REGIONS_H
#define CREW_REGIONS_H

#include <stdint.h>

#define CREW_PAGE 4096

enum {
    REGION_HOST = 1,     /* in the host's space, whatever the device; zeros at the start */
    REGION_EACH = 2,     /* executables for other shapes of a step have their own */
    REGION_RESERVED = 4, /* a process without others may never touch a part of it */
    REGION_LINE = 8,     /* has a line in `trireme memory`; all others are "shared" */
    /* It begins with n claims. After a death those become free that are held by */
    REGION_BY_THREAD = 16, /* the worker's threads, */
    REGION_BY_WORKER = 32, /* the worker as a whole, or */
    REGION_BY_READER = 64, /* the worker as a whole, but only when its process is gone */
};

/* Each row: name, bytes of one, how many, the above, what it is for. 0: whoever plans the store
 * says it; for executables that is machine_bytes. Written by whoever holds the claim of the part,
 * unless a comment names another. */
#define EVERY_REGION(X) \
    X(VALUES, 0, 1, REGION_LINE, "parameters and states") \
    X(FILLS, sizeof(claim_word), 0, REGION_BY_WORKER, "claims of initial values") \
    X(SLOTS, 0, 1, REGION_RESERVED | REGION_LINE, "sums of lanes") /* of the phase count */ \
    X(SLOTS_OF_LANES, 0, 1, REGION_RESERVED | REGION_LINE, "sums of lanes") \
    X(BOARD, 0, 1, REGION_HOST | REGION_EACH, "claims of lanes and slots") /* as slots */ \
    X(BOARD_OF_LANES, 0, 1, REGION_HOST | REGION_EACH, "claims of lanes and slots") \
    X(BOARDS, sizeof(struct crew_board), 0, 0, "where boards are") /* the reporter, once */ \
    X(PARTS, sizeof(struct wire_part), 0, 0, "how sums travel") /* the same */ \
    /* With several hosts: by lane, what this host computes; by phase and node, what it keeps. The \
     * reporter, when it opens a step; MINE also the ferry. */ \
    X(MINE, 0, 1, REGION_HOST, "which lanes are this host's") \
    X(KEEPS, 0, 2, REGION_HOST, "which sums other hosts read") \
    X(PRE, 0, 1, 0, "activations") /* if shared: arenas of pre and step, else in thread 0's */ \
    X(STEP, 0, 1, 0, "activations") \
    X(CARRIED, 0, 1, REGION_LINE, "what is computed before the lanes") \
    X(GROUPS, 0, 0, 0, "orders of groups") /* see crew/group.h */ \
    X(REPLICAS, 0, 0, REGION_LINE, "replicas' arenas") /* the members of the group */ \
    X(ROWS, 0, 2, REGION_EACH, "outputs") /* gathered in even and in odd steps */ \
    X(BUFFERS, 0, 1, REGION_HOST | REGION_RESERVED, "a batch of data") \
    X(LOADS, sizeof(claim_word), 0, REGION_BY_READER, "claims of samples") \
    X(NAMES, CREW_NAME, 0, 0, "names of operators") /* the reporter, once */ \
    X(AUDITS, sizeof(claim_word), 0, REGION_BY_THREAD, "audits") /* by leg, then lane */ \
    X(AUDIT_SUMS, 0, 0, 0, "checksums of results") /* by thread, which writes it, then lane */ \
    X(RESULTS, 0, 2, 0, "values of outputs") /* numbers, of even and odd steps; committer */ \
    X(EVALUATION, 0, 0, REGION_BY_WORKER, "an evaluation") /* see crew/eval_queue.h */ \
    /* These are sized when the programs have their places; so they are the last. */ \
    X(TASKS, sizeof(claim_word), 0, 0, "claims of the update's tasks") \
    X(UNDO, 0, (int64_t)size->place_threads, 0, "undo records") /* the thread */

enum region_number {
#define REGION(name, bytes, n, how, what) REGION_##name,
    EVERY_REGION(REGION)
#undef REGION
    REGIONS
};

extern const struct region_row {
    unsigned how;
    const char *what;
} region_rows[REGIONS];

struct region {
    uint64_t at;    /* offset in the store */
    uint64_t bytes; /* of one */
    int64_t n;      /* how many */
};

struct crew_size;
/* Sets what the table says of the sizes; the rest is 0. */
void regions_begin(struct region all[REGIONS], const struct crew_size *size);
/* Sets the offsets. Returns the bytes of all. */
uint64_t regions_place(struct region all[REGIONS]);

/* Number i of a region; base: where this process has mapped the store. */
static inline void *region_at(const struct region *all, char *base, enum region_number r,
                              int64_t i) {
    return base + all[r].at + all[r].bytes * (uint64_t)i;
}

#endif
