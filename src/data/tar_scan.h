/* SPDX-License-Identifier: Apache-2.0
 * The entries of a tar archive: ustar, with the long names and sizes of pax and GNU. */
#ifndef DATA_TAR_SCAN_H
#define DATA_TAR_SCAN_H

#include "base/base.h"

#define TAR_NAME 1024 /* bytes of a name, its end included; longer ones are refused */

/* Bytes at any place: as many as there are, up to n; -1 with a message. */
typedef int64_t tar_read(void *user, uint64_t offset, void *to, size_t n);

struct tar_scan {
    tar_read *read;
    void *user;
    uint64_t size; /* of the archive */
    const char *name;
    uint64_t at; /* the next header */
};

struct tar_entry {
    char name[TAR_NAME];
    uint64_t offset, size; /* of its content, which lies within the archive */
};

/* The next regular file; false at the end, or with *status a failure. */
bool tar_next(struct tar_scan *s, struct tar_entry *out, tri_status *status);

#endif
