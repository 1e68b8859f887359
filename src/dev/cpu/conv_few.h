/* SPDX-License-Identifier: Apache-2.0
 * Which convolutions conv_few.c and conv_across.c do. */
#ifndef DEV_CPU_CONV_FEW_H
#define DEV_CPU_CONV_FEW_H

#include "dev/cpu/cpu.h"

/* In f32, of few channels in and out, with stride 1, over planes that the second-level cache holds;
 * whatever the number of samples. For conv2d, conv2d_dx and conv2d_dw alike; false for any other. */
bool conv_few_takes(const tri_node *n);

/* Those among them whose samples fill vectors, and whose tensors the second-level cache holds so many
 * samples of. */
bool conv_across_takes(const tri_node *n);

#endif
