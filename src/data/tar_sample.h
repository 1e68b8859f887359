/* SPDX-License-Identifier: Apache-2.0
 * What the entries of a tar archive are to samples: KEY.jpg, KEY.jpeg or KEY.png, and beside it KEY.cls or
 * KEY.json. Entries of one key stand behind one another. */
#ifndef DATA_TAR_SAMPLE_H
#define DATA_TAR_SAMPLE_H

#include "data/tar_scan.h"

enum tar_kind { TAR_OTHER, TAR_PICTURE, TAR_CLASS, TAR_JSON };

/* *key: how many of the name's bytes are the sample's key. */
enum tar_kind tar_kind_of(const char *name, size_t *key);

/* Reads the class from an entry that is TAR_CLASS or TAR_JSON. *found stays false, without a failure, where JSON
 * tells of other things. */
tri_status tar_read_class(struct tar_scan *scan, const struct tar_entry *e, enum tar_kind kind, int64_t *label,
                          bool *found);

#endif
