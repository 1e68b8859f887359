/* SPDX-License-Identifier: Apache-2.0
 * The samples of a step: read when they are wanted, or ahead, by threads of their own. A step's
 * rows lie in a room of the machine; where there is a second room, the next step's can be read
 * while this one's are in use. Rooms are read in pieces, some rows of a lane each. A word for each
 * says of which step its samples are there, or who reads them: so what one thread or worker has
 * read, or is at, no other reads again. */
#ifndef RUN_LOADER_H
#define RUN_LOADER_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/base.h"
#include "base/wait.h"
#include "crew/claim.h"
#include "run/crash.h"

struct machine;

#define LOADER_MOST_PIECES 64 /* of a lane */
#define LOADER_MOST_THREADS 64
#define LOADER_PATIENCE 5

/* Where this process stands among those that read for one run. */
struct loader_place {
    claim_word *word; /* loader_words of them, that others see; null: this process's own */
    wait_queue *queue;
    const _Atomic uint64_t *done; /* steps */
    const atomic_int *ending;     /* not 0: no step goes on; nullable */
    int owner;    /* who it is, in the words */
    int from, of; /* its threads begin with the pieces behind from / of of all */
};

/* A thread that reads: a hand of the run, or one that does nothing else. */
struct loader_reader {
    struct loader *loader;
    char *spare; /* for fields that the network does not take */
    char *own;   /* a room, of any shape, for a lane whose samples another is late with; null: not needed yet */
    pthread_t thread;
    struct crash_thread self; /* of one that does nothing else */
    _Atomic int64_t step; /* that it reads for */
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
    pthread_mutex_t reading; /* of the run's sampler, of a source that one thread at a time may call, of the next three */
    int64_t next_step; /* of a source in an order of its own: the next piece, and steps before that one's */
    int next_piece;
    char error[512];
    struct loader_reader *reader; /* the hands; then those that do nothing else */
    int slow;       /* fetches of the first hand in turn that took long */
    _Atomic int64_t slowest; /* that a piece has taken this process, nanoseconds */
    uint64_t first; /* no step before it is read ahead */
    atomic_bool ahead; /* threads read */
    atomic_int n_threads; /* that do nothing else: that run */
    int most_threads;
    atomic_bool quit;
    bool made;
};

/* For steps of so many shapes. */
int loader_words(const struct machine *m, int shapes);

/* For a run with data that has been matched, and a machine that has its memory. place: null if the
 * process is alone. */
tri_status loader_make(struct loader *l, tri_run *run, const struct loader_place *place);
/* Adds to the text of a fault which sample of a step, counted from 1, it is about, if that is
 * known. */
void loader_name_sample(struct loader *l, int64_t step, struct tri_fault *fault);
/* What a hand wants: the samples of a lane of a step, counted from 1. turns (nullable) grows while
 * it waits. */
struct loader_wish {
    int thread; /* of the run's threads */
    int64_t step;
    int lane;
    _Atomic uint64_t *turns;
};
/* They are in *room, the step's or, where another is late with reading them, one of the hand's own.
 * Also returns where the step is over, or the run, so that nobody wants them any more. */
tri_status loader_fetch(struct loader *l, const struct loader_wish *w, char **buffer);
/* All of a step's, by a process that is alone and has nothing else to do. */
tri_status loader_fetch_all(struct loader *l, int64_t step);
/* Reads them, though they may be there: to see how long it takes. */
tri_status loader_read(struct loader *l, int64_t step);
/* The room that a step's samples lie in. */
int loader_buffer(const struct loader *l, int64_t step);
/* A process that is alone has done this step. */
void loader_done(struct loader *l, int64_t step);
/* What a thread of this number, no hand, reads; false: it reads nothing. A signal handler may
 * ask. */
bool loader_at(const struct loader *l, pid_t number, int64_t *step, int *lane);
/* Before the data goes, and the machine. False: a source does not come back to a thread that reads
 * ahead, for LOADER_PATIENCE seconds: the loader stays, and all that it has of the run has to. */
bool loader_free(struct loader *l);

#endif
