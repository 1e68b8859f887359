/* SPDX-License-Identifier: Apache-2.0
 * The loader reads the samples of a step into a batch buffer: when they are needed, or ahead, in
 * threads of its own. With two buffers it can read the next step's samples while the step's own are
 * in use. A buffer is read in pieces, some rows of a lane each. A claim for each piece says who
 * reads it, or that it is ready: no thread or worker reads a piece that another has read. */
#ifndef RUN_LOADER_H
#define RUN_LOADER_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/base.h"
#include "base/wait.h"
#include "crew/claim.h"
#include "crew/spend.h"
#include "run/crash.h"

struct machine;

#define LOADER_MOST_PIECES 64 /* of a lane */
#define LOADER_MOST_THREADS 64
#define LOADER_PATIENCE 5

/* This process among those that read for one run. */
struct loader_place {
    claim_word *word; /* loader_words of them, shared; null: this process's own */
    wait_queue *queue;
    const _Atomic uint64_t *done; /* steps */
    const atomic_int *ending;     /* not 0: the run ends; nullable */
    int owner;                    /* of its claims */
    int from, of; /* its threads start reading at piece from / of of all */
    const _Atomic uint8_t *mine; /* by lane: it is read ahead here; null: all are */
};

/* A thread that reads: one of the run's, or one that only reads ahead. */
struct loader_reader {
    struct loader *loader;
    char *spare; /* for fields that the network does not use */
    char *own;   /* a private batch buffer, if another reader is late; null: not needed yet */
    pthread_t thread;
    struct crash_thread self; /* of a thread that only reads ahead, as the next two */
    struct spender spender;
    struct spending spending;
    _Atomic int64_t step;     /* that it reads for */
    atomic_int lane;
};

struct loader {
    tri_run *run;
    struct loader_place place;
    int buffers;
    int run_threads; /* threads of the run that may fetch */
    claim_word *own_word;
    wait_queue own_queue;
    _Atomic uint64_t own_done;
    /* Protects the run's sampler, a source that is not concurrent, and the next three. */
    pthread_mutex_t reading;
    int64_t next_step; /* of a sequential source: steps before that of the next piece */
    int next_piece;
    char error[512];
    struct loader_reader *reader; /* the run's threads, then those that only read ahead */
    int slow;                     /* consecutive slow fetches of thread 0 */
    _Atomic int64_t slowest;      /* the longest time for a piece in this process, nanoseconds */
    uint64_t first;               /* the first step that may be read ahead */
    atomic_bool ahead;            /* threads read ahead */
    atomic_int n_threads;         /* that only read ahead, started so far */
    int most_threads;
    atomic_bool quit;
    bool made;
};

/* How many claims are needed for the buffers of so many executables. */
int loader_words(const struct machine *m, int shapes);

/* Needs data that has been matched, and executables that have their memory. place: null if the run
 * has one process. */
tri_status loader_make(struct loader *l, tri_run *run, const struct loader_place *place);
/* Adds the name of the sample to the text of a fault, if it is known. Steps count from 1. */
void loader_name_sample(struct loader *l, int64_t step, struct tri_fault *fault);
/* A thread's request for the samples of a lane. */
struct loader_request {
    int thread; /* of the run's threads */
    int64_t step;
    int lane;
    _Atomic uint64_t *heartbeat; /* grows while it waits; nullable */
};
/* Waits until the samples are in *buffer: the step's, or one of the thread's own if another reader
 * is late. Returns early if the step or the run is over. */
tri_status loader_fetch(struct loader *l, const struct loader_request *r, char **buffer);
/* Always one of the thread's own, and for this call alone. */
tri_status loader_fetch_apart(struct loader *l, const struct loader_request *r, char **buffer);
/* Fetches all samples of a step, with all threads. For a run of one process. */
tri_status loader_fetch_all(struct loader *l, int64_t step);
/* Reads the samples of a step again, to measure how long it takes. */
tri_status loader_read(struct loader *l, int64_t step);
/* The batch buffer of a step. */
int loader_buffer(const struct loader *l, int64_t step);
/* The step is done. For a run of one process. */
void loader_done(struct loader *l, int64_t step);
/* What the read-ahead thread of this thread id reads; false: it reads nothing. Safe in a signal
 * handler. */
bool loader_at(const struct loader *l, pid_t number, int64_t *step, int *lane);
/* Call it before the data and the executables are freed. False: a source has not returned to a
 * read-ahead thread for LOADER_PATIENCE seconds; then the loader, and what it uses of the run, must
 * not be freed. */
bool loader_free(struct loader *l);

#endif
