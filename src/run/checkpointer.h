/* SPDX-License-Identifier: Apache-2.0
 * Writes checkpoints while a run continues: a step waits only until the store has been copied, and
 * a thread writes the copy. Also resumes from checkpoints. */
#ifndef RUN_CHECKPOINTER_H
#define RUN_CHECKPOINTER_H

#include <pthread.h>
#include <stdatomic.h>

#include "checkpoint/checkpoint.h"
#include "run/weights.h"

struct checkpointer {
    char *copy; /* of the store's entries, in the store's order */
    size_t copy_bytes;
    char **place; /* of each entry of the store in the copy */
    struct safetensors_entry *entries; /* of the copy; the model's first */
    struct checkpoint_content content;
    struct text plan; /* of this run, as a file */
    struct safetensors_pair metadata[WEIGHTS_PAIRS];
    struct checkpoint_state state;
    struct checkpoint_options options; /* of this run */
    struct seal_key *key; /* null: nothing is sealed */
    /* Scalars that the program set after the step, once state.json may have been written. */
    pthread_mutex_t late; /* for what follows, while the writer runs */
    bool late_set, finished; /* finished: the writer looks no more */
    double late_rate;
    float late_scalar[CHECKPOINT_MOST_SCALARS];
    /* Set by the thread that writes. */
    pthread_t writer;
    bool writing;
    tri_status status;
    char error[512];
    char left[512];   /* why an old checkpoint could not be removed; empty: all were */
    char warned[512]; /* the latest warning about that */
    atomic_bool not_finite; /* a parameter is not finite: nothing was written; see `error` */
    size_t written;
    double write_seconds;
    pthread_mutex_t locking; /* for what follows */
    bool locked;             /* this process holds the directory's lock */
    int lock;
    bool waited; /* another process kept its lock meanwhile */
    int64_t tried;   /* the step that was copied last; -1: none */
    int64_t kept;    /* the latest step whose checkpoint is complete; -1: none */
    int64_t resumed; /* the step that the run resumed from */
    double last;     /* when the latest was begun, base_seconds */
    int times;       /* checkpoints begun */
    double held_seconds, least_seconds; /* how long they delayed steps: the sum, the least */
    double wait_seconds; /* how long steps waited for the previous checkpoint, the sum */
};

/* Checks the options, makes the directory and reads the key. */
tri_status checkpointer_check(struct checkpointer *c, const tri_options *o);
/* If the options ask for it, restores the run from the newest complete checkpoint, if there is one.
 * If they do not, the directory must have none. */
tri_status checkpointer_resume(struct checkpointer *c, tri_run *run);

/* After a step that this process reports: saves if that is due. */
void checkpointer_step(struct checkpointer *c, tri_run *run);
/* Between two steps. Scalars that the program has set after a step belong to its checkpoint. If
 * `trireme ctl` asks for a checkpoint: saves, and waits until it is written. */
void checkpointer_answer(struct checkpointer *c, tri_run *run);
/* At the end of the run, in the reporter, even if the run has failed: saves the latest step unless
 * that is done. Waits for the writer; fails if it failed. */
tri_status checkpointer_end(struct checkpointer *c, tri_run *run);
/* Lets another process have the directory's lock. If a checkpoint is being written, its thread
 * takes it again before it changes what others see. */
void checkpointer_yield(struct checkpointer *c);
void checkpointer_free(struct checkpointer *c);

#endif
