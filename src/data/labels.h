/* SPDX-License-Identifier: Apache-2.0
 * Classes of pictures from a file, for pictures that are not sorted into folders. */
#ifndef DATA_LABELS_H
#define DATA_LABELS_H

#include "data/folder.h"

struct labels {
    /* lines "NAME CLASS ...", or one class per line, in the order of the pictures' names */
    const char *file;
    const char *ids;  /* nullable: lines "CLASS NUMBER ...", the meaning of numbers in `file` */
    char *const *classes; /* sorted */
    size_t n_classes;
};

/* label: [f->n_pictures]. Blanks, tabs and commas separate words. A class is a name or a number;
 * NAME may lack its extension. A first line that names no picture is a heading. Each picture must
 * have a class. */
tri_status labels_read(const struct labels *l, const struct folder *f, int32_t *label);

#endif
