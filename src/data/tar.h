/* SPDX-License-Identifier: Apache-2.0
 * Pictures in tar archives, as WebDataset has them: KEY.jpg and KEY.cls (a number) or KEY.json (with
 * a number called label, class or cls) behind one another. */
#ifndef DATA_TAR_H
#define DATA_TAR_H

#include "data/data.h"

/* Fields: "image" f32[3,size,size], "label" i64[]. */
tri_data *tar_open(const struct data_source *source);

#endif
