/* SPDX-License-Identifier: Apache-2.0
 * Classes of pictures that a file tells, where the pictures lie in one heap. */
#ifndef DATA_LABELS_H
#define DATA_LABELS_H

#include "data/folder.h"

struct labels {
    const char *file; /* lines "NAME CLASS ...", or one word each: the classes in the order of names */
    const char *ids;  /* or null: lines "CLASS NUMBER ...", what numbers in `file` stand for */
    char *const *classes; /* sorted */
    size_t n_classes;
};

/* label: [f->n_pictures]. Words end at blanks, tabs and commas. A class is a name or a number; NAME may
 * lack its ending. A first line that names no picture is a heading. Each picture must have a class. */
tri_status labels_read(const struct labels *l, const struct folder *f, int32_t *label);

#endif
