/* SPDX-License-Identifier: Apache-2.0
 * Reads and writes safetensors files: a JSON header and named tensors, as PyTorch users know them.
 * Types are kept, except F64, which is read as f32. */
#ifndef IO_SAFETENSORS_H
#define IO_SAFETENSORS_H

#include "base/base.h"
#include "io/outfile.h"

struct safetensors_entry {
    const char *name;
    tri_spec spec;
    /* after reading: aligned to 16 bytes; may be null for a tensor without elements */
    const void *data;
};

struct safetensors_pair {
    const char *key, *value;
};

/* Writes header and data to an open file. Tensors keep the given order; names and metadata are
 * UTF-8. The same arguments give the same bytes. */
tri_status safetensors_put(struct outfile *f, const struct safetensors_entry *entries, size_t n,
                           const struct safetensors_pair *metadata, size_t n_metadata);

/* The same to a file that replaces `path` (outfile_replace). */
tri_status safetensors_write(const char *path, const struct safetensors_entry *entries, size_t n,
                             const struct safetensors_pair *metadata, size_t n_metadata);

/* Where the data of an entry is in the file. */
struct safetensors_place {
    size_t at;
    bool doubles; /* it is F64 there */
};

/* A file that was read. It owns everything that it points to. */
struct safetensors {
    const struct safetensors_entry *entry; /* n of them, in the order of their data */
    size_t n;
    const struct safetensors_pair *metadata; /* in the order of the header */
    size_t n_metadata;
    struct arena arena;
    const struct safetensors_entry **by_name;
    const struct safetensors_place *place; /* by entry */
    /* What safetensors_read reads from: a file, or below 0 the bytes of one. */
    int fd;
    const unsigned char *bytes;
    size_t size;
    const char *path;
};

/* Reads and checks the whole file, or its header only; then all data pointers are null. seal
 * (nullable, and so is its key): how the file is sealed (seal.h). All of a sealed file is
 * authenticated before any of it is parsed; it is in memory meanwhile, and with `header_only` until
 * it is closed. With a key but no name in seal, the file need not be sealed. *file is null on
 * failure. */
tri_status safetensors_open(const char *path, const struct seal *seal, bool header_only,
                            struct safetensors **file);
/* Reads n elements of an entry, from element `first` on, of a file of which only the header was
 * read. `to` has room for n doubles if the entry is F64, and gets its spec's type. */
tri_status safetensors_read(const struct safetensors *f, const struct safetensors_entry *e,
                            size_t first, size_t n, void *to);
/* The same from memory, which is copied; `name` is used in messages. */
tri_status safetensors_parse(const void *bytes, size_t n, const char *name,
                             struct safetensors **file);
const struct safetensors_entry *safetensors_find(const struct safetensors *file, const char *name);
const char *safetensors_metadata(const struct safetensors *file, const char *key); /* nullable */
void safetensors_close(struct safetensors *file);                                  /* nullable */

#endif
