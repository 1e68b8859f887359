/* SPDX-License-Identifier: Apache-2.0
 * Labelled images in the files of MNIST and its family, plain or compressed by gzip. */
#ifndef DATA_IDX_H
#define DATA_IDX_H

#include "data/data.h"

#define IDX_MAX_RANK 4
#define IDX_HEADER_BYTES (4 + 4 * IDX_MAX_RANK) /* of the longest header */
#define IDX_MAX_BYTES (INT64_C(1) << 33) /* of one file: ten times the largest of the family */

struct idx_array {
    int rank;
    int64_t dim[IDX_MAX_RANK];
    const unsigned char *data; /* inside the bytes that were parsed */
    size_t bytes;
};

/* Checks the header of a file of unsigned bytes from its first n bytes; `name` is used in messages.
 * out->data is where the elements begin. */
tri_status idx_header(const unsigned char *bytes, size_t n, const char *name,
                      struct idx_array *out);
/* Checks a whole file in memory. */
tri_status idx_parse(const unsigned char *bytes, size_t n, const char *name,
                     struct idx_array *out);

/* Unpacks gzip data to at most `most` bytes; *out is freed with free(). */
tri_status idx_unpack(const unsigned char *bytes, size_t n, const char *name, size_t most,
                      unsigned char **out, size_t *n_out);

#endif
