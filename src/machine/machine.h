/* SPDX-License-Identifier: Apache-2.0
 * The compiled phases of a step as one executable: programs, their memory, and how a step runs through them. */
#ifndef MACHINE_MACHINE_H
#define MACHINE_MACHINE_H

#include "crew/head.h"
#include "machine/finite.h"
#include "machine/program.h"
#include "machine/store.h"
#include "machine/tree.h"
#include "plan/passes.h"

#define MACHINE_BUFFERS 2 /* of samples: those of this step and of the next */

/* An input of the network: the whole batch lies in one piece of a room, and lanes take their rows of it. */
struct run_input {
    const char *name;
    tri_spec spec;
    size_t sample_bytes;
    int64_t below;
    int field;    /* of the data; -1: none */
    bool labels;  /* what --tail pad marks, see padding.h */
    bool used;    /* a result depends on it */
    bool fed;     /* since the step before, by tri_feed */
    size_t offset; /* in a room */
    void *memory; /* in the device's space */
    char *host;   /* where the data is written; the same memory if the space is the host's */
};

#define FEED_NOWHERE SIZE_MAX

/* Where the data's fields go: sample `row` of a batch to a room's first + row * step. Those that the network does
 * not take are all written to one place, sample after sample; of those that it takes a part of, as it is for shorter
 * samples, the front is copied from a place of their own. */
struct feed {
    int n;
    size_t first[TRI_MAX_FIELDS]; /* FEED_NOWHERE: there */
    size_t step[TRI_MAX_FIELDS];
    size_t spare[TRI_MAX_FIELDS]; /* where a field is written of which the network takes a part, or nothing */
    int input[TRI_MAX_FIELDS];    /* that takes a part of it; -1: none */
    size_t spare_bytes;
};

/* Where a sample goes. */
struct feed_place {
    char *buffer, *spare;
    int64_t row;
};

struct run_output {
    const char *name;
    tri_spec spec;
    bool metric;
    void *memory;             /* where it lies after a step, in the device's space */
    void *owned;              /* memory of its own: put together from lanes, or kept; else null */
    size_t lane_bytes[2];     /* what a lane of either size gives of it */
    const tri_tensor *tensor; /* in the step's graph; null if put together from lanes */
    double result;            /* of the last evaluation */
    double value;             /* of the last step, of a scalar, where the memory is shared */
};

struct run_scalar {
    const char *name;
    float value;
    void *memory;
};

/* Tensors are told by their numbers in the step's graph. */
struct run_update {
    const struct stored *target;
    int value, condition; /* condition -1: none */
};

/* Where memory comes from: allocated for this executable, shared by processes, lent by another
 * executable. */
enum memory_source { SOURCE_OWN, SOURCE_SHARED, SOURCE_LENT };

/* What one thread computes lanes with. */
struct machine_thread {
    struct program count[2], lane[2]; /* by the size of the lane */
    void *arena;
    size_t arena_bytes;
    enum memory_source from;
};

/* Memory of an executable besides its threads' arenas and its outputs. */
enum memory_use {
    MEMORY_PRE,     /* the arenas of what runs once a step, where processes share them; else thread */
    MEMORY_STEP,    /* 0's arena serves */
    MEMORY_CARRIED, /* results of pre, for lane and step */
    MEMORY_SLOTS,   /* of the trees of counts and of lanes */
    MEMORY_SLOTS_OF_LANES,
    MEMORY_BOARD,
    MEMORY_BOARD_OF_LANES,
    MEMORY_BUFFERS, /* of samples; in the host's space */
    MEMORY_USES
};

/* Memory that other processes share. */
struct machine_shared {
    void *at[MEMORY_USES]; /* null: each process has its own */
    char *rows[2];         /* outputs put together from lanes: of odd and of even steps */
};

/* A set of programs over one store: the training step, or one batch size of an evaluation. Lanes are
 * drawn by the workers, a thread each; what runs once a step is run by all threads together, operator
 * by operator in parts. */
struct machine {
    const struct dev *dev;
    struct team *team;   /* not owned */
    struct store *store; /* not owned */
    const struct machine *lender, *beside; /* see struct machine_place */
    bool turns;
    const struct machine_shared *shared; /* null: no other process takes part. Not owned */
    void *memory[MEMORY_USES];
    int more_slots;        /* see struct machine_place */
    int all_threads;             /* that share it: of all processes; 0: only its own */
    int processes;         /* that share it, each with as much memory of its own; 1: alone */
    size_t shared_bytes;   /* of the store's file, but for parameters, states and partial sums */
    tri_graph *whole;
    int64_t lanes, batch;
    tri_options options;
    struct compilation compilation;
    struct finite finite;
    bool compiled;
    struct program pre, step;
    struct machine_thread *thread; /* worker 0's arena serves pre and step too */
    int n_threads;                 /* at least one */
    struct tree tree[2];           /* of count, of lane */
    uint32_t round;                /* steps begun: what the boards call a step */
    bool updating; /* the step's program has begun, and has not ended: parameters are neither old nor new */
    size_t carried_bytes;
    struct run_input *input;
    int n_inputs;
    size_t buffer_bytes; /* of the inputs of a step */
    size_t held;       /* by the data and its order, in each process */
    size_t first_buffer, all_buffers; /* of a run's shapes: where its rooms begin; bytes of all, if it is the first */
    int n_buffers;
    int buffer;          /* where inputs are found now */
    bool shorter;      /* the inputs may take the front of a sample alone */
    bool touched;      /* its memory has been made real */
    struct feed feed;
    struct run_output *output;
    int n_outputs;
    struct run_scalar *scalar;
    int n_scalars;
    void *scalars;
    struct run_update *update;
    int n_updates;
};

/* All programs of the machine, one after the other; null behind the last. Some may be empty: they
 * have no graph. */
struct program *machine_program(const struct machine *m, int i);

/* Where memory comes from; a thread's arena is the lender's if that suffices, as the lender is idle
 * while this executable runs. */
enum memory_source machine_source(const struct machine *m, enum memory_use use);
enum memory_source machine_arena_source(const struct machine *m, int thread);

/* What a machine is made for. */
struct machine_place {
    const struct dev *dev;
    struct team *team;
    struct store *store;          /* if it is empty, it is made from the model */
    const struct machine *lender; /* nullable: its arenas serve this machine too, where they suffice */
    bool turns;                   /* the lender's partial sums and what is carried do, too, and its memory has rooms for
                                   * this one: it has steps of another shape of the same run. See machine_join */
    const struct machine *beside; /* whose memory is there as well, and those beside that one; null: the lender */
    int all_threads, processes;         /* see struct machine */
    int more_slots;               /* of partial sums, than the tree itself needs */
};

/* Compiles `model` and plans its memory; nothing is allocated but what describes it. */
tri_status machine_plan(tri_graph *model, const tri_options *o, const struct machine_place *place,
                        struct machine *m);
/* Machines that have been planned for the shapes of one run's steps, the lender first: what they share suffices for each. */
tri_status machine_join(struct machine *m, int n);
/* Gives a planned machine its memory; refuses what is more than there is. */
tri_status machine_settle(struct machine *m, const tri_options *o);
/* Makes the arenas' memory real; where it is shared with others, once it is known that there is enough. */
void machine_touch(struct machine *m);
/* Both. */
tri_status machine_make(tri_graph *model, const tri_options *o, const struct machine_place *place,
                        struct machine *m);
void machine_free(struct machine *m);
/* Of the samples of a step; and inputs are found there from now on. */
char *machine_buffer(const struct machine *m, int buffer);
size_t machine_buffer_bytes(const struct machine *m); /* of all rooms; of the first of several shapes: also of theirs */
void machine_use_buffer(struct machine *m, int buffer);
/* A lane takes its rows of the batch: those from sample `first` on. room: another than the step's, where the
 * device's space is the host's; or null. */
void machine_bind_rows(const struct machine *m, struct program *p, char *buffer, int64_t first);
/* The program of a lane of phase k (0: count, 1: lane). */
struct program *machine_lane_program(const struct machine *m, struct machine_thread *w, int k,
                                     int64_t lane);
/* What a lane has made of outputs that are split over the samples goes to its rows of them. */
void machine_collect_rows(struct machine *m, const struct program *p, int64_t lane);
/* The sums of phase k's lanes are there: programs that use them find them. */
void machine_bind_tops(struct machine *m, int k);
/* Those of a machine of another shape. */
void machine_take_scalars(struct machine *m, const struct machine *from);
/* Programs see the scalars' values; whoever reads outputs finds those of the step's program. */
void machine_set_scalars(const struct machine *m);
void machine_find_outputs(struct machine *m);
/* One step on what lies in the inputs; false: see the fault. */
bool machine_step(struct machine *m, uint64_t seed, int64_t step, struct tri_fault *fault);
struct run_output *machine_output(const struct machine *m, const char *name);
struct run_scalar *machine_scalar(const struct machine *m, const char *name);
struct run_input *machine_input(const struct machine *m, const char *name);
/* A scalar output of the last step; of the one that runs. */
double machine_value(const struct machine *m, const struct run_output *o);
double machine_scalar_now(const struct machine *m, const struct run_output *o);
/* Of what several processes share. */
struct machine_sizes {
    size_t arena[2]; /* of the programs before the lanes and behind them */
    size_t rows;     /* of outputs that are put together from lanes */
};
struct machine_sizes machine_sizes(const struct machine *m);
/* Outputs that are put together from lanes: bytes of all, and where they lie. */
size_t machine_rows_bytes(const struct machine *m);
void machine_rows(struct machine *m, char *at);
/* Outputs of the last step stay, whoever borrows the arena, until the next. */
tri_status machine_keep_outputs(struct machine *m);

#endif
