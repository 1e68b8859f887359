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
    tri_tensor *scale; /* the scale of this step */
    tri_tensor *loss;
};

/* "off" or null, "dynamic", "dynamic:start=X,every=N", or a number. */
tri_status scaling_parse(const char *text, struct scaling *out);

/* The loss times the scale, to be differentiated. */
tri_tensor *scaling_begin(struct scaling *s, tri_tensor *loss);

/* Divides the n gradients by the scale and adds the update of the scale and the metrics. Returns
 * whether the gradients and the loss are finite, the condition for the update; null without
 * scaling. The array needs space for n + 1 elements. */
tri_tensor *scaling_end(struct scaling *s, tri_tensor **grads, int n);

#endif
