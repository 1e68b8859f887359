/* SPDX-License-Identifier: Apache-2.0
 * NumPy arrays: one field per file, one sample per row. */
#ifndef DATA_NPY_H
#define DATA_NPY_H

#include "data/data.h"

struct npy_header {
    tri_type type;
    bool wide;       /* the file has doubles, read as f32 */
    int rank;        /* 1 or more */
    int64_t dim[TRI_MAX_RANK];
    size_t offset;    /* of the first element */
    size_t row_bytes; /* in the file */
};

/* Checks the start of a file and that its size fits; `name` is used in messages. */
tri_status npy_parse(const unsigned char *bytes, size_t n, const char *name,
                     struct npy_header *out);

#endif
