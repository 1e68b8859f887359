/* SPDX-License-Identifier: Apache-2.0
 * A file that is written once, in order, and hashed on the way. Readers must not use it before it
 * is closed. It may be sealed (seal.h). */
#ifndef IO_OUTFILE_H
#define IO_OUTFILE_H

#include "io/seal.h"
#include "io/sha256.h"

struct outfile {
    const char *path; /* not owned, or `part` */
    int fd;
    size_t bytes; /* written so far */
    struct sha256 hash; /* of these bytes */
    struct sealing *sealing; /* null: not sealed */
    char target[4096], part[4096]; /* if it replaces another file; else empty */
};

/* The file that writing `path` replaces: `path`, or the target of the symlinks there, even if it
 * does not exist yet. Refuses anything but a regular file. */
tri_status outfile_target(const char *path, char target[4096]);
/* Whether outfile_replace can create a file there: checked before hours of training, not after. */
tri_status outfile_check(const char *path);
/* The target of `path` keeps its old content until this file is closed successfully; then it is
 * replaced as a whole. */
tri_status outfile_replace(struct outfile *f, const char *path, const struct seal *seal);

/* seal null: the file holds the bytes as written. A symlink at `path` is not followed. */
tri_status outfile_open(struct outfile *f, const char *path, const struct seal *seal);
tri_status outfile_write(struct outfile *f, const void *data, size_t bytes);
/* Replaces a file by a text, as a whole. */
tri_status outfile_text(const char *path, const struct text *t);
/* Syncs, closes and renames the file. hex (nullable): its SHA-256. After a failure the file is
 * removed; returns `status`, or its own failure if that was TRI_OK. */
tri_status outfile_close(struct outfile *f, tri_status status, char hex[65]);

/* Makes renames and removals in a directory durable. */
tri_status outfile_sync_directory(const char *directory);

#endif
