/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints: a directory with one folder for each, step-000001000, that is there when it is whole:
 *     model.safetensors      parameters and running statistics
 *     optimizer.safetensors  what the optimizer keeps from step to step
 *     state.json             where the run stood and how it was made; size and hash of both files, hash of itself
 * With a key each of them is sealed (io/seal.h), as what it is and of its step, and has .sealed behind its name.
 * A folder is written under another name, synced, and renamed: a death at any moment leaves the ones before as
 * they are. */
#ifndef CHECKPOINT_CHECKPOINT_H
#define CHECKPOINT_CHECKPOINT_H

#include "checkpoint/policy_state.h"
#include "io/safetensors.h"

#define CHECKPOINT_MODEL "model.safetensors"
#define CHECKPOINT_OPTIMIZER "optimizer.safetensors"
#define CHECKPOINT_STATE "state.json"
#define CHECKPOINT_SEALED ".sealed"

#define CHECKPOINT_FORMAT 2 /* of state.json; all before it are read */
#define CHECKPOINT_UNCHECKED "format 1: state.json has no checksum and is unchecked"
#define CHECKPOINT_NAME 32
#define CHECKPOINT_TEXT 128

/* Options that may change from one part of a run to the next, as texts by their names. */
struct checkpoint_options {
    int n;
    struct checkpoint_option {
        char name[32], value[CHECKPOINT_TEXT];
    } one[20];
};

/* What a run does not read from its tensors. Texts that are too long are cut: they are compared, or shown. */
struct checkpoint_state {
    bool checked; /* when it was read: state.json has a checksum or a seal; false: it is of format 1, unchecked */
    int64_t step, epoch; /* done; of the last step */
    int64_t batch, lanes, data_size;
    uint64_t seed;
    bool shuffle;
    char order[CHECKPOINT_TEXT]; /* what else is asked for of the order of samples; "": nothing */
    char data[CHECKPOINT_TEXT], library[CHECKPOINT_TEXT], device[CHECKPOINT_TEXT];
    char weights[65], state[65]; /* hashes, as tri_hash */
    double loss;
    double rate; /* that the program has set in place of the schedule's; NaN: none */
    char metric[CHECKPOINT_TEXT]; /* by which evaluations are judged; empty: there are none */
    struct policy_state policy_state;
    struct checkpoint_options options; /* those that are told where they differ; none: older programs wrote none */
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
    const struct safetensors_pair *metadata; /* of both files */
    size_t n_metadata;
    const struct seal_key *key; /* null: they are not sealed */
};

/* Whether checkpoints could be written there; makes the directory. */
tri_status checkpoint_prepare(const char *directory);
/* Writes the content as DIRECTORY/step-N, in place of one of that step that there may be. Of what could not be written,
 * now or before, nothing is left. */
tri_status checkpoint_write(const char *directory, const struct checkpoint_content *c, size_t *bytes);
/* Of those up to step `last`, the one that was just written, removes all but the newest `keep` (0: none is removed),
 * those whose step is a multiple of keep_every (0: no others), and that of step `best`; and what writers that have
 * died have left. Fails if one of them could not be removed, after it has tried all: it harms no run, and counts no more
 * unless even its name could not be changed. Only whoever writes calls it. */
tri_status checkpoint_prune(const char *directory, int64_t last, int64_t keep, int64_t keep_every, int64_t best);
/* Before step `last` is written where there is no room for it beside the others: removes already what
 * checkpoint_prune will remove behind it, if the newest is whole, which stays. *any: there was something. */
tri_status checkpoint_make_room(const char *directory, const struct seal_key *key, int64_t last, int64_t keep,
                                int64_t keep_every, int64_t best, bool *any);
/* Gives those of steps behind `last` a name that is none of a checkpoint, and tells each. */
tri_status checkpoint_set_aside(const char *directory, int64_t last);

/* The folders that are named as checkpoints, the newest first; *steps is freed with free(). */
tri_status checkpoint_list(const char *directory, int64_t **steps, size_t *n);
/* "DIRECTORY/step-000001000" */
void checkpoint_path(const char *directory, int64_t step, char path[4096]);

/* "FOLDER/model.safetensors", or that with .sealed */
void checkpoint_file(const char *folder, const char *file, bool sealed, char path[4096]);
/* Whether there is a checkpoint whose files are sealed, or are not. */
bool checkpoint_is(const char *folder, bool sealed);

/* In what follows key is null for what is not sealed. A checkpoint that is in the other form, or sealed with another
 * key, is TRI_USAGE: nothing is wrong with it. */

/* Whether a checkpoint is what was written: state.json by its checksum, both other files by their hashes in it, the step
 * in the folder's name. Everything that reads a checkpoint asks this first. */
tri_status checkpoint_verify(const char *folder, const struct seal_key *key, struct checkpoint_state *state);
/* One of both files, of the step that its state tells. */
tri_status checkpoint_open(const char *folder, const char *file, const struct seal_key *key, int64_t step,
                           struct safetensors **f);
/* The newest whole one of those before step `before`. What is wrong with newer ones is added to `wrong`. TRI_FAILED
 * where none is whole; state->step -1 and TRI_OK where there is no checkpoint at all. */
tri_status checkpoint_newest(const char *directory, const struct seal_key *key, int64_t before,
                             struct checkpoint_state *state, struct text *wrong);
/* The model's file in a directory of any kind: of the folder of one checkpoint, which must be whole; in a folder that
 * others have made; of the newest whole checkpoint of those in it. `wrong` as above. */
tri_status checkpoint_model(const char *directory, const struct seal_key *key, char path[4096], struct text *wrong);
/* Whether a run with that key may write its checkpoints there: the newest is in the same form. */
tri_status checkpoint_check_form(const char *directory, const struct seal_key *key);

#endif
