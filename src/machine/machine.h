/* SPDX-License-Identifier: Apache-2.0
 * An executable (`struct machine`): the compiled programs of all phases of a step, for one shape of
 * the step, over one store. A run has one executable per shape of its training steps, and further
 * ones for evaluation. */
#ifndef MACHINE_MACHINE_H
#define MACHINE_MACHINE_H

#include "crew/regions.h"
#include "machine/finite.h"
#include "machine/program.h"
#include "machine/replica.h"
#include "machine/store.h"
#include "machine/tree.h"
#include "plan/passes.h"

#define MACHINE_BUFFERS 2 /* batch buffers: one for this step, one for the next */

/* An input of the network. A batch buffer holds the whole batch of it in one piece. The program of
 * a lane is bound to the lane's rows. */
struct run_input {
    const char *name;
    tri_spec spec;
    size_t sample_bytes;
    int64_t below; /* integers must be less; 0: any */
    int field;     /* of the data; -1: none */
    bool labels;   /* --tail pad marks the samples that it adds here, see run/padding.h */
    bool used;     /* a result depends on it */
    bool fed;      /* by tri_feed, since the last step */
    size_t offset; /* in a batch buffer */
    void *memory;  /* in the device's space */
    char *host;    /* in the batch buffer; the same as memory if the device uses the host's space */
};

#define FEED_NOWHERE SIZE_MAX

/* Where the fields of the data are written: sample `row` at first + row * step of a batch buffer.
 * Fields that the network does not use all go to the start of a spare buffer, each sample over the
 * last. A network for shorter samples uses only the front of some fields: each of these has a place
 * in the spare buffer, from where the front is copied. */
struct feed {
    int n;
    size_t first[TRI_MAX_FIELDS]; /* FEED_NOWHERE: the network does not use the field */
    size_t step[TRI_MAX_FIELDS];
    size_t spare[TRI_MAX_FIELDS]; /* offset in the spare buffer */
    int input[TRI_MAX_FIELDS];    /* the input that takes the front of the field; -1: none */
    size_t spare_bytes;
};

/* Where one sample is written. */
struct feed_place {
    char *buffer, *spare;
    int64_t row;
};

/* An output is either computed by the step's program, or gathered: each lane writes its rows. */
struct run_output {
    const char *name;
    tri_spec spec;
    bool metric;
    void *memory;             /* of the value after a step, in the device's space */
    void *owned;              /* kept by machine_keep_outputs */
    size_t lane_bytes[2];     /* gathered: bytes per lane, for both sizes of lanes */
    const tri_tensor *tensor; /* in the step's graph; null: gathered */
    double result;            /* of the last evaluation */
    double value;             /* scalars of shared executables: of the last step */
};

struct run_scalar {
    const char *name;
    float value;
    void *memory;
};

/* An update whose value the program does not write in the target's place. value and condition are
 * tensor numbers in the step's graph. */
struct run_update {
    const struct stored *target;
    int value, condition; /* condition -1: none */
};

/* Where memory comes from: allocated for this executable, shared by processes, lent by another
 * executable. */
enum memory_source { SOURCE_OWN, SOURCE_SHARED, SOURCE_LENT };

/* What one thread needs to compute lanes. */
struct machine_thread {
    struct program count[2], lane[2]; /* by the size of the lane */
    void *arena;
    size_t arena_bytes;
    enum memory_source from;
};

/* What a process needs to play one member of a replica. */
struct machine_member {
    char *arena;             /* of the replica that it plays in; null: not made yet */
    struct program *lane[2]; /* by the size of the lane; of thread 0, or */
    struct program own[2];
    struct replica *replica[2]; /* then by leg */
};

/* What a thread has seen of the tracks of a pipeline in a step. */
struct pipeline_view {
    uint32_t step;
    int done[STAGE_MOST]; /* by track: so many turns are over */
};

/* A thread that claims legs, as number `number` of `all`. */
struct pipeline_claimer {
    struct tree_thread who;
    int number, all;
    /* Whether it may take a turn of another's track; null: no. */
    bool (*takes)(void *user, int track, const struct turn *t);
    void *user;
};

/* In phases count and lane each thread claims lanes and runs its own program on them. In phases pre
 * and step all threads run one program together, each its share of the parts of each unit. */
struct machine {
    struct dev *dev;
    struct team *team;                       /* not owned */
    struct store *store;                     /* not owned */
    const struct machine *lender, *previous; /* see struct machine_place */
    bool other_shape;                        /* see struct machine_place */
    const struct region *shared;             /* null: only this process takes part. Not owned */
    char *base;                              /* of the store's file, if there is one */
    void *memory[REGIONS];                   /* null: it has none, as machine_bytes says */
    int auditors;        /* see struct machine_place */
    int all_threads;     /* see struct machine_place */
    int hosts;           /* see struct machine_place */
    bool paths;          /* see struct machine_place */
    const int *weight;   /* see struct machine_place */
    int processes;       /* see struct machine_place; at least 1 */
    size_t shared_bytes; /* of the store's file, without regions that have a line of their own */
    tri_graph *whole;
    int64_t lanes, batch;
    tri_options options;
    struct compilation compilation;
    struct finite finite;
    bool compiled;
    struct program pre, step;
    struct machine_thread *thread; /* the arena of thread 0 also serves pre and step */
    int n_threads;                 /* at least one */
    /* With a mesh and several workers, these compute lanes as members of replicas. The programs of
     * lanes are made for so many members; those of thread 0 serve the member that this process
     * plays first. 1: there are none. */
    int members, replicas;
    size_t replica_bytes;          /* of a replica's arena */
    struct machine_member *member; /* by number */
    bool plays;                    /* the programs of thread 0 serve a member */
    struct tree tree[2];           /* of count, of lane */
    struct pipeline pipeline;      /* of the legs of lanes; empty: there are no stages */
    struct pipeline_times times;   /* when each leg runs if all take the same time */
    struct pipeline_view *view;    /* by thread */
    uint32_t round;                /* counts steps; boards use it as the step's number */
    bool updating;                 /* the step's program has begun, or it failed: parameters may be
                                    * partly updated */
    size_t carried_bytes;
    struct run_input *input;
    int n_inputs;
    size_t buffer_bytes;     /* of one batch buffer */
    size_t described;        /* bytes of the graphs and programs themselves, about */
    size_t held;             /* bytes that the data and its order take in each process */
    size_t buffers_offset;   /* of this shape's batch buffers among those of all shapes */
    size_t all_buffer_bytes; /* first shape of several: of the buffers of all shapes; else 0 */
    int n_buffers;
    int buffer;   /* that the programs' inputs are bound to */
    bool shorter; /* inputs may take only the front of a field */
    bool touched; /* its memory has been touched */
    struct feed feed;
    struct run_output *output;
    int n_outputs;
    struct run_scalar *scalar;
    int n_scalars;
    void *scalars;
    struct run_update *update;
    int n_updates;
};

/* Enumerates all programs: pre, step, four per thread, two per member. Null after the last. A phase
 * that the network does not have leaves an empty program, without a graph. So does a member that
 * has none of its own. */
struct program *machine_program(const struct machine *m, int i);

/* What an executable needs of a region, or of each of several that are alike. */
size_t machine_bytes(const struct machine *m, enum region_number r);
/* Where memory comes from. A thread's arena is lent if the lender's is large enough: the lender is
 * idle while this executable runs. */
enum memory_source machine_source(const struct machine *m, enum region_number r);
enum memory_source machine_arena_source(const struct machine *m, int thread);

struct machine_place {
    struct dev *dev;
    struct team *team;
    struct store *store;            /* if it is empty, the model's entries are listed in it */
    const struct machine *lender;   /* nullable: lends its arenas where they are large enough */
    bool other_shape;               /* this executable is for steps of another shape of the lender's
                                     * run. The lender also lends slots, carried memory and batch
                                     * buffers; see machine_join */
    const struct machine *previous; /* list of all executables that exist at the same time, for the
                                     * memory budget; null: the lender */
    int all_threads;                /* threads of all processes; 0: no other process takes part */
    int hosts;                      /* that share the steps; 0: one */
    bool paths;                     /* their sums may take another path than the exchange */
    const int *weight;              /* by host: see crew_size; borrowed */
    int levels;                     /* see compilation.given_levels */
    bool apart;                     /* see there */
    int processes;                  /* that have such an executable each; 0 means 1 */
    int auditors;                   /* threads of all processes that may audit lanes */
};

/* Compiles `model` and plans memory. Only descriptions are allocated. */
tri_status machine_plan(tri_graph *model, const tri_options *o, const struct machine_place *place,
                        struct machine *m);
/* m[0] lends to the others; all are planned. Enlarges what they share to what the largest needs. */
tri_status machine_join(struct machine *m, int n);
/* Allocates the memory of a planned executable, after checking the budget. */
tri_status machine_allocate(struct machine *m, const tri_options *o);
/* Touches the pages of the arenas. machine_allocate does it unless processes share memory; then it
 * must wait until the budget of all has been checked. */
void machine_touch(struct machine *m);
/* machine_plan and machine_allocate. */
tri_status machine_make(tri_graph *model, const tri_options *o, const struct machine_place *place,
                        struct machine *m);
void machine_free(struct machine *m);

/* Whether all threads of a process compute one lane together. */
bool machine_is_joint(const struct machine *m);
/* Makes the tree of phase k, whose programs exist. */
tri_status machine_make_tree(struct machine *m, int k);
/* Binds a program's sources, and what is computed before the lanes. */
void machine_bind(struct machine *m, struct program *p);
/* Prepares a member's programs for the arena of this replica. */
tri_status machine_play(struct machine *m, int member, int replica);
void machine_free_members(struct machine *m);

char *machine_buffer(const struct machine *m, int buffer);
/* From now on inputs are read from this batch buffer. */
void machine_use_buffer(struct machine *m, int buffer);
/* Binds a lane's inputs to the rows from sample `first` on. buffer: another batch buffer than the
 * one in use (only in the host's space), or null. */
void machine_bind_rows(const struct machine *m, struct program *p, char *buffer, int64_t first);
/* Which of the two sizes of lanes it has. */
int machine_lane_size(const struct machine *m, int64_t lane);
/* Claims a leg of a lane in the order of the schedule: first of the tracks that the claimer serves.
 * Returns the lane; PIPELINE_WAITS: what comes next needs others; PIPELINE_OVER: nothing is left to
 * claim. */
#define PIPELINE_WAITS (-1)
#define PIPELINE_OVER (-2)
int machine_claim_leg(struct machine *m, const struct pipeline_claimer *c, int *leg);
/* Whether one could be claimed. */
bool machine_leg_is_ready(struct machine *m, const struct pipeline_claimer *c);
/* How many legs of lanes are over. */
int machine_legs_over(struct machine *m, uint32_t step);
/* The program for this lane of phase k (0: count, 1: lane). */
struct program *machine_lane_program(const struct machine *m, struct machine_thread *w, int k,
                                     int64_t lane);
/* Copies a lane's results to its rows of the gathered outputs; of a leg, those that it computes. */
void machine_collect_rows(struct machine *m, const struct program *p, int leg, int64_t lane);
/* Binds the finished sums of phase k to the programs that read them. */
void machine_bind_tops(struct machine *m, int k);
/* Copies the scalars' values from the executable of another shape. */
void machine_copy_scalars(struct machine *m, const struct machine *from);
/* Copies the value of update i to its target, if its condition holds. */
void machine_apply_update(const struct machine *m, int i);
/* Copies the scalars' values to the device. */
void machine_set_scalars(const struct machine *m);
/* Points outputs to the results of the step's program. */
void machine_find_outputs(struct machine *m);
/* Runs one step on the batch buffer in use. False: see the fault. */
bool machine_step(struct machine *m, uint64_t seed, int64_t step, struct tri_fault *fault);
struct run_output *machine_output(const struct machine *m, const char *name);
struct run_scalar *machine_scalar(const struct machine *m, const char *name);
struct run_input *machine_input(const struct machine *m, const char *name);
/* A scalar output of the last step; of the step that runs now. NaN: no such value. */
double machine_value(const struct machine *m, const struct run_output *o);
double machine_scalar_now(const struct machine *m, const struct run_output *o);
/* Where all gathered outputs are. */
void machine_place_rows(struct machine *m, char *at);
/* Copies the outputs of the last step out of the arena, which another executable may use next. */
tri_status machine_keep_outputs(struct machine *m);

#endif
