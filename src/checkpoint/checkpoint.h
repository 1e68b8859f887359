/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints: a directory with one folder per checkpoint, step-000001000. It contains
 *     model.safetensors      parameters and running statistics
 *     optimizer.safetensors  the optimizer's state
 *     network.tri            the network as it was written (graph/parse.c)
 *     plan.txt               how the run was divided (plan/plan_file.h)
 *     state.json             where the run stood and how it was made; size and hash of the other
 *                            files, hash of itself
 * With a key each file is sealed (io/seal.h) under its name and step, and its name gets .sealed. A
 * folder is written under another name, synced, and renamed, so that it is complete when it has its
 * name; a crash at any moment leaves the earlier checkpoints as they are. */
#ifndef CHECKPOINT_CHECKPOINT_H
#define CHECKPOINT_CHECKPOINT_H

#include "checkpoint/policy_state.h"
#include "io/safetensors.h"

#define CHECKPOINT_MODEL "model.safetensors"
#define CHECKPOINT_OPTIMIZER "optimizer.safetensors"
#define CHECKPOINT_NETWORK "network.tri"
#define CHECKPOINT_PLAN "plan.txt"
#define CHECKPOINT_STATE "state.json"
#define CHECKPOINT_SEALED ".sealed"

/* All but state.json, those with tensors first. */
#define CHECKPOINT_FILES 4
#define CHECKPOINT_TENSORS 2
extern const char *const checkpoint_files[CHECKPOINT_FILES];

#define CHECKPOINT_FORMAT 3 /* of state.json; all earlier ones can be read */
#define CHECKPOINT_UNCHECKED "format 1: state.json has no checksum and is unchecked"
#define CHECKPOINT_TEXT 128
#define CHECKPOINT_MOST_SCALARS 64

/* Options that may change when a run is resumed, as texts by name. */
struct checkpoint_options {
    int n;
    struct checkpoint_option {
        char name[32], value[CHECKPOINT_TEXT];
    } one[20];
};

/* The state that is not in tensors. Texts that are too long are cut; they are only compared and
 * shown. */
struct checkpoint_state {
    /* when it was read: state.json has a checksum or a seal; false: format 1, unchecked */
    bool checked;
    int format;
    int files; /* of checkpoint_files, that it has: before format 3 no texts */
    int64_t step, epoch; /* completed; of the last step */
    int64_t batch, lanes, data_size;
    uint64_t seed;
    bool shuffle;
    char order[CHECKPOINT_TEXT]; /* further settings of the order of samples; "": none */
    char data[CHECKPOINT_TEXT], library[CHECKPOINT_TEXT], device[CHECKPOINT_TEXT];
    char weights[65], state[65]; /* hashes, as tri_hash */
    char grain[17]; /* hash of the plan's grain (plan/plan_file.h); "": not known */
    double loss;
    double rate; /* set by the program instead of the schedule's; NaN: none */
    char metric[CHECKPOINT_TEXT]; /* that judges evaluations; empty: no evaluations */
    struct policy_state policy_state;
    /* differences are reported; none: written by an older version */
    struct checkpoint_options options;
    int n_scalars;
    struct checkpoint_scalar {
        char name[CHECKPOINT_TEXT];
        float value;
    } scalar[CHECKPOINT_MOST_SCALARS]; /* set by a program */
};

/* What is written: entries[0 to n_model - 1] to the model's file, the rest to the optimizer's. */
struct checkpoint_content {
    const struct checkpoint_state *state;
    const struct safetensors_entry *entries;
    size_t n_model, n_optimizer;
    const struct safetensors_pair *metadata; /* of both files */
    size_t n_metadata;
    const char *network, *plan; /* the texts */
    const struct seal_key *key; /* null: not sealed */
    /* Called before what others can see is changed; fails if this process may not. Nullable. */
    tri_status (*may_change)(void *user);
    void *user;
};

/* Creates the directory; checks that checkpoints can be written there. */
tri_status checkpoint_prepare(const char *directory);
/* Writes DIRECTORY/step-N and replaces an existing checkpoint of that step. After a failure nothing
 * incomplete is left, of this or an earlier attempt. */
tri_status checkpoint_write(const char *directory, const struct checkpoint_content *c,
                            size_t *bytes);
/* Replaces state.json of a checkpoint that checkpoint_write has written. */
tri_status checkpoint_amend(const char *directory, const struct checkpoint_content *c);
/* Of the steps up to `last`, which was just written, keeps the newest `keep` (0: all), multiples of
 * keep_every (0: no others) and step `best`, and removes the rest; also what crashed writers have
 * left. Fails after trying all if one could not be removed. Such a checkpoint harms no run and,
 * once renamed, counts no more. Only the writer calls this. */
tri_status checkpoint_prune(const char *directory, int64_t last, int64_t keep, int64_t keep_every,
                            int64_t best);
/* For a disk without space for one more checkpoint: before step `last` is written, removes what
 * checkpoint_prune will remove after it, if the newest is intact and stays. *any: something was
 * removed. */
tri_status checkpoint_make_room(const char *directory, const struct seal_key *key, int64_t last,
                                int64_t keep, int64_t keep_every, int64_t best, bool *any);
/* Renames the checkpoints of steps after `last`, so that they no longer count, and reports each. */
tri_status checkpoint_set_aside(const char *directory, int64_t last);

/* The folders named as checkpoints, newest first; *steps is freed with free(). */
tri_status checkpoint_list(const char *directory, int64_t **steps, size_t *n);
/* "DIRECTORY/step-000001000" */
void checkpoint_path(const char *directory, int64_t step, char path[4096]);

/* "FOLDER/model.safetensors", or the same with .sealed */
void checkpoint_file(const char *folder, const char *file, bool sealed, char path[4096]);
/* Whether there is a checkpoint whose files are, or are not, sealed. */
bool checkpoint_is(const char *folder, bool sealed);

/* The key, if the checkpoint is sealed: one that is not can be read with a key given, too. */
const struct seal_key *checkpoint_key(const char *folder, const struct seal_key *key);

/* Below, key is null for checkpoints that are not sealed. A checkpoint in the other form, or sealed
 * with another key, is TRI_USAGE: it is not damaged. */

/* Checks that a checkpoint is what was written: state.json by its checksum, the other files by
 * their hashes in it, the step by the folder's name. Every reader calls this first. */
tri_status checkpoint_verify(const char *folder, const struct seal_key *key,
                             struct checkpoint_state *state);
/* Opens one of the two tensor files; step: from its state. header_only: for safetensors_read. */
tri_status checkpoint_open(const char *folder, const char *file, const struct seal_key *key,
                           int64_t step, bool header_only, struct safetensors **f);
/* Reads one of the two texts, with a zero after it; *text is freed with free(). */
tri_status checkpoint_read_text(const char *folder, const char *file, const struct seal_key *key,
                                int64_t step, char **text);
/* The newest intact checkpoint before step `before`. Describes what is wrong with newer ones in
 * `wrong`. TRI_FAILED if none is intact; state->step -1 and TRI_OK if there is no checkpoint at
 * all. */
tri_status checkpoint_newest(const char *directory, const struct seal_key *key, int64_t before,
                             struct checkpoint_state *state, struct text *wrong);
/* The path of the model's file: in the folder of one checkpoint, which must be intact; in any other
 * folder with such a file; or in the newest intact checkpoint of a directory of checkpoints.
 * `wrong` as above. */
tri_status checkpoint_model(const char *directory, const struct seal_key *key, char path[4096],
                            struct text *wrong);
/* Whether a run with that key may write checkpoints there: the newest must be in the same form. */
tri_status checkpoint_check_form(const char *directory, const struct seal_key *key);

#endif
