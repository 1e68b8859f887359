/* SPDX-License-Identifier: Apache-2.0
 * state.json as text. From format 2 on it contains a SHA-256 of itself, computed with zeros in
 * place of its digits, so that every changed bit is found. */
#ifndef CHECKPOINT_STATE_H
#define CHECKPOINT_STATE_H

#include "checkpoint/checkpoint.h"

/* What state.json says about another file of the folder. */
struct state_file {
    char hash[65];
    size_t bytes;
};

/* file: of CHECKPOINT_FILES. Adds the whole file to `out`. */
tri_status state_write(const struct checkpoint_state *s, const struct state_file *file,
                       struct text *out);
/* `path` is used in messages. s->checked: the file has a checksum of itself, which is correct. Of
 * the files, s->files are read. */
tri_status state_read(const char *path, const char *text, size_t bytes, struct checkpoint_state *s,
                      struct state_file *file);

#endif
