/* SPDX-License-Identifier: Apache-2.0
 * A file that is written once, from begin to end, and hashed on the way: nobody takes it for whole before it
 * is closed. It may be sealed (seal.h). */
#ifndef IO_OUTFILE_H
#define IO_OUTFILE_H

#include "io/seal.h"
#include "io/sha256.h"

struct outfile {
    const char *path; /* not owned, or `part` */
    int fd;
    size_t bytes; /* in the file so far */
    struct sha256 hash; /* of them */
    struct sealing *sealing; /* null: it is not sealed */
    char target[4096], part[4096]; /* of one that replaces another; else empty */
};

/* What a file that is written whole takes the place of: `path`, or what the symlinks there lead to, also if that is not
 * there yet. Anything but a regular file is refused. */
tri_status outfile_target(const char *path, char target[4096]);
/* Whether outfile_replace could make a file there: told before hours of training, not after. */
tri_status outfile_check(const char *path);
/* The target of `path` stays as it is until this file is closed well, and then is this file; never a part of it. */
tri_status outfile_replace(struct outfile *f, const char *path, const struct seal *seal);

/* seal null: what is written is what the file holds. A symlink at its place is not followed. */
tri_status outfile_open(struct outfile *f, const char *path, const struct seal *seal);
tri_status outfile_write(struct outfile *f, const void *data, size_t bytes);
/* Syncs and closes it, and puts it in place; hex (nullable): the SHA-256 of the file. After any failure the file is gone, and this
 * gives `status`, or its own failure. */
tri_status outfile_close(struct outfile *f, tri_status status, char hex[65]);

/* Makes what has been renamed or removed in a directory last. */
tri_status outfile_sync_directory(const char *directory);

#endif
