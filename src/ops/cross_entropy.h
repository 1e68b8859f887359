/* SPDX-License-Identifier: Apache-2.0
 * Declarations for the rows of cross_entropy and its gradient. */
#ifndef OPS_CROSS_ENTROPY_H
#define OPS_CROSS_ENTROPY_H

#include "ops/op.h"

#define CROSS_ENTROPY "smoothing:float=0 ignore:int=0 ignore_index:int=-100"

/* The logits may be classes `first` on of `all` (0: as many as there are logits); labels count in
 * all classes. */
#define CROSS_ENTROPY_PART " first:int=0 all:int=0"
#define CROSS_ENTROPY_FOLLOWS "first=begin:k all=extent:k"

/* Checks the logits (input number `logits`), the labels (the next input) and the attributes. */
bool cross_entropy_check(const tri_node *n, int logits);
double cross_entropy_flops(const tri_node *n);

#endif
