/* SPDX-License-Identifier: Apache-2.0
 * CIFAR-10 and CIFAR-100 in their binary form. */
#ifndef DATA_CIFAR_H
#define DATA_CIFAR_H

#include "data/data.h"

/* Fields: "image" f32[3,32,32], "label" i64[]. */
tri_data *cifar_open(const struct data_source *source);

#endif
