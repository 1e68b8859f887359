/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints: a directory with one folder for each, step-000001000, that is there when it is whole:
 *     model.safetensors      parameters and running statistics
 *     optimizer.safetensors  what the optimizer keeps from step to step
 *     state.json             where the run stood and how it was made; size and hash of both files
 * A folder is written under another name, synced, and renamed: a death at any moment leaves the ones before as
 * they are. */
#ifndef CHECKPOINT_CHECKPOINT_H
#define CHECKPOINT_CHECKPOINT_H

#include "io/safetensors.h"

#define CHECKPOINT_MODEL "model.safetensors"
#define CHECKPOINT_OPTIMIZER "optimizer.safetensors"
#define CHECKPOINT_STATE "state.json"

#define CHECKPOINT_FORMAT 1
#define CHECKPOINT_NAME 32
#define CHECKPOINT_TEXT 128

/* What a run does not read from its tensors. Texts that are too long are cut: they are compared, or shown. */
struct checkpoint_state {
    int64_t step, epoch; /* done; of the last step */
    int64_t batch, lanes, data_size;
    uint64_t seed;
    bool shuffle;
    char data[CHECKPOINT_TEXT], library[CHECKPOINT_TEXT], device[CHECKPOINT_TEXT];
    char weights[65], state[65]; /* hashes, as tri_hash */
    double loss;
    int n_scalars;
    struct checkpoint_scalar {
        char name[CHECKPOINT_TEXT];
        float value;
    } scalar[64]; /* those that a program sets */
};

/* What is written: entries[0 to n_model - 1] go to the model's file, the rest to the optimizer's. */
struct checkpoint_content {
    const struct checkpoint_state *state;
    const struct safetensors_entry *entries;
    size_t n_model, n_optimizer;
};

/* Whether checkpoints could be written there; makes the directory. */
tri_status checkpoint_prepare(const char *directory);
/* Writes the content as DIRECTORY/step-N, in place of one of that step that there may be. */
tri_status checkpoint_write(const char *directory, const struct checkpoint_content *c, size_t *bytes);
/* Removes all but the newest `keep` (0: none is removed) and those whose step is a multiple of keep_every (0:
 * no others); and what writers that have died have left. Only whoever writes calls it. */
tri_status checkpoint_prune(const char *directory, int64_t keep, int64_t keep_every);

/* The folders that are named as checkpoints, the newest first; *steps is freed with free(). */
tri_status checkpoint_list(const char *directory, int64_t **steps, size_t *n);
/* "DIRECTORY/step-000001000" */
void checkpoint_path(const char *directory, int64_t step, char path[4096]);

/* state.json of a checkpoint's folder; then both files compared with what it says of them. */
tri_status checkpoint_read_state(const char *folder, struct checkpoint_state *state);
tri_status checkpoint_verify(const char *folder);
/* The newest whole one. What is wrong with newer ones is added to `wrong`. TRI_FAILED where there is none;
 * *step -1 and TRI_OK where there is no checkpoint at all. */
tri_status checkpoint_newest(const char *directory, int64_t *step, struct text *wrong);

#endif
