/* SPDX-License-Identifier: Apache-2.0
 * The entries of a tar archive: ustar with the long names and sizes of pax and GNU. */
#ifndef DATA_TAR_SCAN_H
#define DATA_TAR_SCAN_H

#include "base/base.h"

#define TAR_NAME 1024 /* bytes of a name with its final zero; longer ones are refused */

/* Reads bytes at an offset: up to n, as many as there are; -1 with a message. */
typedef int64_t tar_read(void *user, uint64_t offset, void *to, size_t n);

struct tar_scan {
    tar_read *read;
    void *user;
    uint64_t size; /* of the archive */
    const char *name;
    uint64_t at; /* offset of the next header */
};

struct tar_entry {
    char name[TAR_NAME];
    uint64_t offset, size; /* of its content, which is inside the archive */
};

/* The next regular file; false at the end, or after a failure, with *status. */
bool tar_next(struct tar_scan *s, struct tar_entry *out, tri_status *status);

#endif
