/* SPDX-License-Identifier: Apache-2.0
 * Samples in a tar archive: KEY.jpg, KEY.jpeg or KEY.png with KEY.cls or KEY.json. Entries of one
 * key are adjacent. */
#ifndef DATA_TAR_SAMPLE_H
#define DATA_TAR_SAMPLE_H

#include "data/tar_scan.h"

enum tar_kind { TAR_OTHER, TAR_PICTURE, TAR_CLASS, TAR_JSON };

/* *key: the length of the sample's key in the name. */
enum tar_kind tar_kind_of(const char *name, size_t *key);

/* Reads the class from a TAR_CLASS or TAR_JSON entry. *found stays false, without a failure, for
 * JSON about other things. */
tri_status tar_read_class(struct tar_scan *scan, const struct tar_entry *e, enum tar_kind kind,
                          int64_t *label, bool *found);

#endif
