/* SPDX-License-Identifier: Apache-2.0
 * Scenarios of test_fault.c with files and data. */
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "checkpoint/checkpoint.h"
#include "data/data.h"
#include "fault/scenarios.h"
#include "io/safetensors.h"

void *__real_malloc(size_t bytes);
void __real_free(void *p);

/* ---- files ---- */

/* The file is the old one or the new one, whichever call fails. */
bool replace_file(uint64_t *result) {
    static const float old[] = {1, 2, 3}, new[] = {4, 5, 6};
    const char *path = in_directory("replaced.safetensors");
    struct safetensors_entry e = {"w", {TRI_F32, TRI_SHAPE(3)}, old};
    const struct safetensors_pair about = {"about", "nothing"};
    if (safetensors_write(path, &e, 1, &about, 1)) return false;
    e.data = new;
    bool written = !safetensors_write(path, &e, 1, &about, 1);
    char message[512];
    snprintf(message, sizeof message, "%s", tri_message());
    struct safetensors *file;
    if (safetensors_open(path, NULL, false, &file)) {
        if (!written) broken = "the file is neither the old one nor the new one";
        return false; /* one call fails, not two */
    }
    const void *data = safetensors_find(file, "w")->data;
    if (memcmp(data, new, sizeof new) && (written || memcmp(data, old, sizeof old)))
        broken = "the file holds something else";
    add_text(result, safetensors_metadata(file, "about"));
    add(result, data, sizeof old);
    safetensors_close(file);
    if (!written) base_fail(TRI_FAILED, "%s", message);
    return written;
}

static bool write_checkpoint(const char *where, const struct seal_key *key, int64_t step,
                             float value) {
    struct safetensors_entry e[] = {{"w", {TRI_F32, TRI_SHAPE(1)}, &value},
                                    {"optimizer.w", {TRI_F32, TRI_SHAPE(1)}, &value}};
    struct checkpoint_state state = {.step = step, .batch = 4, .lanes = 2, .n_scalars = 1,
                                     .scalar = {{"t", 0.5f}}};
    const struct checkpoint_content c = {
        .state = &state, .entries = e, .n_model = 1, .n_optimizer = 1, .network = "graph\n",
        .plan = "[grain]\n", .key = key};
    size_t bytes;
    return !checkpoint_write(where, &c, &bytes);
}

/* Newer checkpoints that an earlier run left do not count: the one just written stays. */
static bool keep_last(const char *where, int64_t last) {
    char folder[4096];
    if (checkpoint_prune(where, last, 1, 0, 0)) return false;
    checkpoint_path(where, last, folder);
    /* calls that do not fail */
    if (faccessat(AT_FDCWD, folder, F_OK, 0)) broken = "what was just written is removed";
    return true;
}

/* Whatever fails while the second checkpoint is written, in place of one of its step, or while old
 * ones are removed: the newest one that is loaded is complete, and it is one of those written. */
static bool replace_checkpoint(const char *where, const struct seal_key *key, uint64_t *result) {
    struct text wrong = {0};
    struct checkpoint_state state;
    char folder[4096], message[512];
    bool ok = !checkpoint_prepare(where) && !checkpoint_check_form(where, key) &&
              write_checkpoint(where, key, 1, 1) && write_checkpoint(where, key, 2, 2) &&
              keep_last(where, 1);
    if (!ok) return false;
    bool written = write_checkpoint(where, key, 2, 3) && !checkpoint_prune(where, 2, 1, 0, 0);
    snprintf(message, sizeof message, "%s", tri_message());
    tri_status none = checkpoint_newest(where, key, INT64_MAX, &state, &wrong);
    text_free(&wrong);
    if (none) {
        if (!written) broken = "no checkpoint is whole";
        return false;
    }
    checkpoint_path(where, state.step, folder);
    struct safetensors *file;
    if (checkpoint_open(folder, CHECKPOINT_MODEL, key, state.step, false, &file)) return false;
    float value = *(const float *)safetensors_find(file, "w")->data;
    if (state.step != 2 || state.scalar[0].value != 0.5f || (value != 2 && value != 3) ||
        (written && value != 3))
        broken = "the newest checkpoint is none that was written";
    add(result, &value, sizeof value);
    safetensors_close(file);
    if (!written) base_fail(TRI_FAILED, "%s", message);
    return written;
}

bool checkpoints(uint64_t *result) {
    return replace_checkpoint(in_directory("checkpoints"), NULL, result);
}

bool sealed_checkpoints(uint64_t *result) {
    struct seal_key *key;
    if (seal_key_open(in_directory("key"), &key)) return false;
    bool ok = replace_checkpoint(in_directory("sealed"), key, result);
    seal_key_free(key);
    return ok;
}

static bool first_sample(tri_data *d, uint64_t *result) {
    float image[256] = {0};
    int64_t label = -1;
    bool ok = d && !tri_data_get(d, 0, 0, 0, (void *const[]){image, &label});
    add(result, image, sizeof image);
    add(result, &label, sizeof label);
    tri_data_free(d);
    return ok;
}

bool open_idx(uint64_t *result) {
    char spec[160];
    snprintf(spec, sizeof spec, "idx:%s,mean=0.5,std=0.25", in_directory("plain"));
    return first_sample(tri_data_open(spec, NULL, 1), result);
}

bool open_idx_gz(uint64_t *result) {
    char spec[160];
    snprintf(spec, sizeof spec, "idx:%s,split=test", in_directory("packed"));
    return first_sample(tri_data_open(spec, NULL, 1), result);
}

/* All fields of sample 0 of a text, with the golden vocabularies. */
static bool open_text(const char *options, const char *vocabulary, uint64_t *result) {
    char spec[1024];
    char field[8][256];
    void *out[8];
    for (int i = 0; i < 8; i++) out[i] = field[i];
    memset(field, 0, sizeof field);
    snprintf(spec, sizeof spec, "text:%s,length=16%s%s/tokens%s", in_directory("text*"), options,
             getenv("TRI_GOLDEN"), vocabulary);
    tri_data *d = tri_data_open(spec, NULL, 1);
    bool ok = d && !tri_data_get(d, 0, 0, 0, out);
    int64_t size = tri_data_size(d);
    add(result, &size, sizeof size);
    add(result, field, sizeof field);
    tri_data_free(d);
    return ok;
}

static void *counted_malloc(size_t bytes) { return malloc(bytes); }
static void counted_free(void *p) { free(p); }
void count_jansson(void) { json_set_alloc_funcs(counted_malloc, counted_free); }

/* jansson 2.14 itself does not survive a failed allocation when an object with many keys grows. */
bool open_byte_pairs(uint64_t *result) {
    json_set_alloc_funcs(__real_malloc, __real_free);
    bool ok = open_text(",tokenizer=gpt2:", "", result);
    count_jansson();
    return ok;
}

bool open_pairs(uint64_t *result) {
    return open_text(",for=bert,tokenizer=bert:", "/vocab.txt", result);
}

/* Its list of pictures exists or not, is read or written; the one picture is augmented. */
bool open_images(uint64_t *result) {
    char spec[320];
    snprintf(spec, sizeof spec, "images:%s,index=%s,size=8,max-bad=0", in_directory("pictures"),
             in_directory("list"));
    bool ok = first_sample(tri_data_open(spec, NULL, 1), result);
    unlink(in_directory("list"));
    return ok;
}

bool open_png(uint64_t *result) {
    char spec[320];
    snprintf(spec, sizeof spec, "images:%s,split=val,labels=%s,index=none,size=8,max-bad=0",
             in_directory("pictures"), in_directory("labels"));
    return first_sample(tri_data_open(spec, NULL, 1), result);
}

bool open_arrays(uint64_t *result) {
    char spec[160];
    snprintf(spec, sizeof spec, "npy:%s", in_directory("x.npy"));
    return first_sample(tri_data_open(spec, NULL, 1), result);
}

bool open_archive(uint64_t *result) {
    char spec[160];
    snprintf(spec, sizeof spec, "tar:%s,size=8,max-bad=0", in_directory("*.tar"));
    return first_sample(tri_data_open(spec, NULL, 1), result);
}

static int fill(void *user, int64_t index, int64_t epoch, uint64_t seed, void *const *out) {
    (void)user, (void)epoch, (void)seed;
    for (int i = 0; i < 4; i++) ((float *)out[0])[i] = (float)index;
    *(int64_t *)out[1] = index;
    return 0;
}

bool own_data(uint64_t *result) {
    const tri_field fields[] = {{"x", TRI_F32, TRI_SHAPE(4)}, {"y", TRI_I64, TRI_SCALAR}};
    return first_sample(tri_data_new("own", 3, fields, 2, fill, NULL, true), result);
}
