/* SPDX-License-Identifier: Apache-2.0
 * Pictures in folders, one for each class. */
#ifndef DATA_IMAGES_H
#define DATA_IMAGES_H

#include "data/data.h"

/* Fields: "image" f32[3,size,size], "label" i64[]. */
tri_data *images_open(const struct data_source *source);

#endif
