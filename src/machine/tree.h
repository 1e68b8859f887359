/* SPDX-License-Identifier: Apache-2.0
 * The tree that sums the results of the lanes, bucket by bucket. A thread writes a lane's part of
 * a bucket to a slot. The thread that publishes the second of two siblings sums both into a third
 * slot. Lanes may end in any order, on any thread of any process. plan/lane_tree.h has the tree's
 * shape, machine/buckets.h the buckets, crew/board.h the claims.
 *
 * A lane is claimed on the board of the last bucket. The words of its other buckets are not
 * claimed: whoever is first publishes. What a thread that dies has published stays.
 *
 * If a lane is cut into legs (plan/legs.h), each leg has buckets of its own and is claimed for
 * itself. What it hands to other legs is in buckets that are not summed: such a slot is free again
 * when the legs that read it are done. */
#ifndef MACHINE_TREE_H
#define MACHINE_TREE_H

#include "base/wait.h"
#include "crew/board.h"
#include "machine/buckets.h"
#include "plan/pipeline.h"
#include "wire/wire.h"

#define TREE_NONE SIZE_MAX

struct tree_bucket {
    struct board board;
    size_t bytes; /* of the results */
    int class;    /* of its slots */
    int kept;     /* slots, if it is not summed */
    struct wire_part *part; /* if it is summed: how it travels */
    size_t n_parts, most_parts;
    bool adds;    /* all results are numbers of f32, which are added */
};

/* Slots of one size, which buckets share. */
struct tree_class {
    size_t bytes, offset;
    int n_slots, first; /* first: among the words of all slots */
    int audits;         /* further slots without words, one for each thread that audits */
    int leg;            /* of buckets that are not summed: whose, and who reads them */
    struct leg_set readers;
};

struct tree {
    const tri_graph *g;    /* sums two slots: given 2N is left, 2N + 1 right, output N the sum */
    struct program *merge; /* one per thread of this process */
    int threads;
    int all_threads; /* of all processes, that compute lanes */
    int audits;      /* threads that may compute again what is done; 0: none do */
    int kept;        /* slots of a bucket for sums that are kept for other hosts */
    wait_queue *tells; /* woken when such a sum is published; nullable */
    claim_word *audit; /* by leg, audit_lanes words each: audits that legs' inputs wait for */
    int audit_lanes;
    bool repeats;    /* a leg may be computed twice */
    int cut;         /* hosts share the nodes that lane_tree_cut finds; -1: the lanes */
    int rounds;      /* nodes with so many sums above them, or fewer, are rounded; -1: none is */
    const char *values; /* of the store, where the first top's estimates are (wire_part.estimate) */
    size_t apart;       /* from the estimates of a top to those of the next, in bytes */
    struct lane_tree shape;
    struct buckets buckets;
    struct tree_bucket *bucket;
    int *bucket_of; /* by item of the merge program: the bucket that it sums a result of */
    struct bucket_events events[2]; /* of the two sizes of lanes */
    size_t *items[2];               /* the same: by leg its first item, and the number of items */
    int most_open;                  /* buckets at the same time, in any of the two */
    struct tree_class *class;
    int n_classes;
    int first, nodes; /* its first node among those of the trees of all shapes; their number */
    size_t *offset;   /* in a bucket's slot, by number in the whole graph; TREE_NONE: not summed */
    char **held;      /* by thread of this process, then bucket: a slot that it holds, or null */
    char *slots;      /* not owned */
};

/* In which format results travel, and which nodes are rounded to it. */
struct tree_wire {
    const struct wire_part *part; /* by number in the whole graph, without places in the slot; null:
                                   * all f32 */
    int cut;                      /* see struct tree; also the next */
    size_t apart;
};

struct tree_place {
    struct dev *dev;
    int64_t lanes;
    int levels;      /* of sums that the step makes */
    int threads;     /* of this process, that use the tree at the same time */
    int all_threads; /* of all processes, that compute lanes */
    int audits;      /* threads that may compute again what is done; 0: none do */
    int hosts;       /* that share the steps; 0: one */
    const int *weight; /* by host: see crew_size */
    bool repeats;    /* a leg may be computed twice, if its thread is late with it */
    const struct program *lane[2]; /* the phase's programs, by size of a lane; null: none */
    const struct pipeline *pipeline; /* of the legs; null: there is one leg */
    const struct pipeline_times *times;
    struct bucket_rule rule;
    struct tree_wire wire;
};
tri_status tree_make(const tri_graph *merge, const struct tree_place *place, struct tree *out);
/* Makes n trees, for steps of several shapes, use the same slots. Some may be empty: they get the
 * sizes, as one executable provides the memory of all. */
tri_status tree_join(struct tree *const *t, int n);
size_t tree_bytes(const struct tree *t);       /* of all slots */
size_t tree_top_bytes(const struct tree *t);   /* of the slots that every step uses at least */
/* Of the sums that are kept until all hosts have them, while all take part. */
size_t tree_kept_bytes(const struct tree *t, int hosts, const int *weight);
size_t tree_handed_bytes(const struct tree *t); /* of those that are handed from leg to leg */
size_t tree_board_bytes(const struct tree *t); /* of the words of all boards */
int tree_nodes(const struct tree *t);          /* of all buckets of this shape */
void tree_bind(struct tree *t, void *slots, void *words);
/* With several hosts: see struct board; shared. */
void tree_bind_hosts(struct tree *t, const _Atomic uint8_t *mine, const uint8_t *keeps);
/* How many slots of a bucket suffice beside those that suffice on one host, whichever of the hosts
 * take part. */
int tree_kept(const struct tree *t, int hosts, const int *weight);
/* The parts of all buckets, which have sizes and offsets; and marks, which make slots larger. */
tri_status tree_make_parts(struct tree *t, const struct tree_wire *w);
/* How a bucket travels; without estimates. */
struct wire_map tree_map(const struct tree *t, int bucket);
bool tree_rounds(const struct tree *t, int node);
/* Fails if rounded nodes are too few for so many hosts. wire: the formats, for the message. */
tri_status tree_check_hosts(const struct tree *t, const char *wire, int hosts);
/* Rounds a bucket of a node in a slot, if the node is one that is rounded. */
void tree_round(const struct tree *t, int bucket, int node, const struct program_step *step,
                char *slot);
/* Where the words of a bucket's board are; part: its first part among those of all trees. */
struct crew_board tree_words(const struct tree *t, int bucket, int part);
void tree_free(struct tree *t);

/* The calling thread, and its step. */
struct tree_thread {
    uint32_t step;
    int thread; /* among the threads of all workers */
    int local;  /* among those of this process */
};

/* A lane that a thread computes with a program. */
struct tree_lane {
    struct tree *tree;
    struct tree_thread who;
    int lane, size; /* size: which of the two sizes it has */
    int leg;
    bool audits; /* it is done, and computed again: nothing is published */
    struct program *p;
    const struct program_step *step;
    /* Called when a bucket's results are there. If it returns false, they are not published.
     * Nullable. */
    bool (*complete)(void *user, const struct tree_lane *l, int bucket);
    void *user;
    int64_t closing; /* nanoseconds: publishing, summing and comparing before the lane's end */
};

/* Takes a slot for the last bucket, and slots for what is handed to other legs, and lets the
 * program read what other legs have handed to this one. The program, when it runs, takes and
 * publishes the other buckets, and makes the sums that are possible then. False: no slot is free;
 * never if there is one leg. */
bool tree_begin(struct tree_lane *l);
/* Whether a bucket is handed by the leg to others, or to it. */
bool tree_hands(const struct tree *t, int leg, int bucket);
/* The lane's slot of a bucket that is open, or handed to its leg; else -1. */
int tree_slot(const struct tree_lane *l, int bucket);
/* The bucket that opens at stop k of a leg; -1: none opens there. */
int tree_opens(const struct tree *t, int size, int leg, int k);
/* Binds the bucket's results of another copy of the program, which helps to compute the lane. */
void tree_bind_slot(struct tree *t, struct program *p, int bucket, int slot);
/* Publishes the last bucket; sum: and makes the sums that are possible then. False: another thread
 * was first, or complete has returned false. */
bool tree_end(struct tree_lane *l, bool sum);
/* Releases the slots. failed: and publishes that the lane failed. */
void tree_drop(struct tree_lane *l, bool failed);

/* Makes a sum that nobody makes, as a thread that died left it, and the sums above it that are
 * possible then. False: there is none. */
bool tree_orphan(struct tree *t, const struct tree_thread *h, const struct program_step *step);
bool tree_has_orphan(struct tree *t, uint32_t step);
/* Whether the step's lanes have all been computed and summed. Of the first lane that failed, once
 * all others are computed, *failed is the number and *leg the leg; else *failed is -1. */
bool tree_complete(struct tree *t, uint32_t step, int *failed, int *leg);
/* As board_clear, for all buckets. */
void tree_clear(struct tree *t);
/* The board on which lanes of a leg are claimed. */
struct board *tree_board(struct tree *t, int leg);
/* Whether result i of the program is in the bucket. */
bool tree_has(const struct tree *t, const struct program *p, int i, int bucket);
/* Binds the program's givens to the sums of the tops, which must be published. */
void tree_bind_tops(struct tree *t, struct program *p);

#endif
