/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DEV_CPU_CONV_DW_H
#define DEV_CPU_CONV_DW_H

#include "dev/cpu/cpu.h"

extern const struct dev_row cpu_conv_dw[];
/* Whether a node is better done there than by oneDNN. */
bool conv_dw_takes(const tri_node *n);

#endif
