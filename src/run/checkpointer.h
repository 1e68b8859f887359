/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints of a run while it goes on: a step waits only until the store has been copied; a thread writes
 * the copy. And the way back. */
#ifndef RUN_CHECKPOINTER_H
#define RUN_CHECKPOINTER_H

#include <pthread.h>
#include <stdatomic.h>

#include "checkpoint/checkpoint.h"
#include "run/weights.h"

struct checkpointer {
    char *copy; /* of the store's entries, in its order */
    size_t copy_bytes;
    char **place; /* where each entry of the store stands in it */
    struct safetensors_entry *entries; /* in the copy; the model's first */
    struct checkpoint_content content;
    struct safetensors_pair metadata[WEIGHTS_PAIRS];
    struct checkpoint_state state;
    struct checkpoint_options options; /* of this run */
    struct seal_key *key; /* null: nothing is sealed */
    /* Of what is being written, by the thread. */
    pthread_t writer;
    bool writing;
    tri_status status;
    char error[512];
    char left[512];   /* why an old checkpoint could not be removed; empty: none was left */
    char warned[512]; /* what was told of that last */
    atomic_bool not_finite; /* a parameter was: nothing has been written, `error` says which */
    size_t written;
    double write_seconds;
    /* What has been. */
    bool locked; /* the directory is this process's */
    int lock;
    int64_t tried;   /* the step that was copied last; -1: none */
    int64_t kept;    /* the last one that is whole; -1: none */
    int64_t resumed; /* the step that the run began with */
    double last;     /* when the latest was begun, base_seconds */
    int times;
    double held_seconds, least_seconds; /* that steps were held up: of all, and by the one that did it least */
    double wait_seconds;                /* that they waited for the one before, of all */
};

/* What the options say can be done; makes the directory, reads the key. */
tri_status checkpointer_check(struct checkpointer *k, const tri_options *o);
/* The store's values, where the run stands, from the newest whole checkpoint, if the options ask for it and
 * there is one; if they do not ask for it there must be none. */
tri_status checkpointer_resume(struct checkpointer *k, tri_run *run);

/* Behind a step that this process tells of: saves if it is time. */
void checkpointer_step(struct checkpointer *k, tri_run *run);
/* Saves, and waits until that is written, if `trireme ctl` asks for it. */
void checkpointer_answer(struct checkpointer *k, tri_run *run);
/* Saves the step that is done, whatever the options say of when. */
void checkpointer_save(struct checkpointer *k, tri_run *run);
/* At the end of the run, of whoever reports, also of one that has failed: what is not saved yet. Waits for what is
 * being written; fails if that could not be. */
tri_status checkpointer_end(struct checkpointer *k, tri_run *run);
void checkpointer_free(struct checkpointer *k);

#endif
