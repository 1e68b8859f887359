/* SPDX-License-Identifier: Apache-2.0
 * Shared by the scenarios of test_fault.c. */
#ifndef SCENARIOS_H
#define SCENARIOS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/base.h"

/* True: it succeeded, and *result identifies the result. False: it failed and reported that. */
typedef bool scenario(uint64_t *result);

/* Another fault that a scenario found. A scenario must not exit: its output is discarded. */
extern const char *broken;

/* The path of a file in the test's directory, valid for the next four calls. */
const char *in_directory(const char *name);

static inline bool add(uint64_t *result, const void *data, size_t bytes) {
    *result = base_hash(data, bytes, *result);
    return true;
}

static inline bool add_text(uint64_t *result, const char *text) {
    return add(result, text, strlen(text));
}

/* files.c */

/* Counts jansson's allocations too, because its callers must handle a null. */
void count_jansson(void);

scenario replace_file, checkpoints, sealed_checkpoints, open_idx, open_idx_gz, open_byte_pairs,
    open_pairs, open_images, open_png, open_arrays, open_archive, own_data;

/* training.c */

scenario train_fused, train_unfused;

#endif
