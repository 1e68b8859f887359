/* SPDX-License-Identifier: Apache-2.0
 * What the rows of cross_entropy and its derivative share. */
#ifndef OPS_CROSS_ENTROPY_H
#define OPS_CROSS_ENTROPY_H

#include "ops/op.h"

#define CROSS_ENTROPY "smoothing:float=0 ignore:int=0 ignore_index:int=-100"

/* Checks the logits (that input), the labels (the next one) and the attributes. */
bool cross_entropy_check(const tri_node *n, int logits);
double cross_entropy_flops(const tri_node *n);

#endif
