/* SPDX-License-Identifier: Apache-2.0
 * Loss scaling. Small gradients underflow in f16, so the loss is multiplied by a scale before
 * differentiation and the gradients are divided by it afterwards. A step whose gradients overflow
 * is skipped. Scales are powers of two, so scaling rounds nothing. */
#ifndef TRAIN_SCALING_H
#define TRAIN_SCALING_H

#include "graph/graph.h"

#define SCALE_MOST 0x1p24

struct scaling {
    double start;  /* the initial or constant scale; 0: no scaling */
    int64_t every; /* good steps before a dynamic scale doubles; 0: constant */
};

/* "off" or null, "dynamic", "dynamic:start=X,every=N", or a number. */
tri_status scaling_parse(const char *text, struct scaling *out);

#endif
