/* SPDX-License-Identifier: Apache-2.0
 * Data sets made of others (tri_data_subset and similar functions of the public header). */
#ifndef DATA_OVER_H
#define DATA_OVER_H

#include "data/data.h"

/* tri_data_take or tri_data_subset from a text: "FIRST:END", either of which may be missing, or a
 * file of sample numbers. Takes ownership of d; null with a message. */
tri_data *data_subset(tri_data *d, const char *text);

#endif
