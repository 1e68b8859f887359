/* SPDX-License-Identifier: Apache-2.0
 * Reads and writes safetensors files: named tensors behind a JSON header, as PyTorch users know
 * them. Types are kept as they are, but F64, which is read as f32. */
#ifndef IO_SAFETENSORS_H
#define IO_SAFETENSORS_H

#include "base/base.h"
#include "io/outfile.h"

struct safetensors_entry {
    const char *name;
    tri_spec spec;
    const void *data; /* after reading: aligned to 16 bytes; may be null if it has no elements */
};

struct safetensors_pair {
    const char *key, *value;
};

/* Header and data, into a file that is open. Tensors stand in the given order, names and metadata are UTF-8.
 * The same arguments give the same bytes. */
tri_status safetensors_put(struct outfile *f, const struct safetensors_entry *entries, size_t n,
                           const struct safetensors_pair *metadata, size_t n_metadata);

/* The same as a file that replaces `path` (outfile_replace). */
tri_status safetensors_write(const char *path, const struct safetensors_entry *entries, size_t n,
                             const struct safetensors_pair *metadata, size_t n_metadata);

/* A file read into memory. It owns all that hangs on it. */
struct safetensors {
    const struct safetensors_entry *entry; /* n of them, in the order of their data */
    size_t n;
    const struct safetensors_pair *metadata; /* in the order of the header */
    size_t n_metadata;
    struct arena arena;
    const struct safetensors_entry **by_name;
};

/* Reads and checks everything. *file is null on failure. */
tri_status safetensors_open(const char *path, struct safetensors **file);
/* The same without the data, which are null: what the header says. */
tri_status safetensors_open_header(const char *path, struct safetensors **file);
/* The same of a sealed file (seal.h), which is authenticated before anything of it is read; there is memory for it
 * twice. One that is not sealed is taken as it is, unless seal->name says what it must be. */
tri_status safetensors_open_sealed(const char *path, const struct seal *seal, struct safetensors **file);
/* The same from memory, which is copied; `name` stands in messages. */
tri_status safetensors_parse(const void *bytes, size_t n, const char *name,
                             struct safetensors **file);
const struct safetensors_entry *safetensors_find(const struct safetensors *file, const char *name);
const char *safetensors_metadata(const struct safetensors *file, const char *key); /* or null */
void safetensors_close(struct safetensors *file);                                  /* or null */

#endif
