/* SPDX-License-Identifier: Apache-2.0
 * Scaling of the loss: half types of a small range (f16) lose small gradients, so the loss is
 * multiplied before them and the gradients are divided after; a step whose gradients overflow is
 * left out. Scales are powers of two: nothing is rounded by them. */
#ifndef TRAIN_SCALING_H
#define TRAIN_SCALING_H

#include "graph/graph.h"

#define SCALE_MOST 0x1p24

struct scaling {
    double start;  /* the first scale, or the only one; 0: none */
    int64_t every; /* good steps after which a dynamic scale is doubled; 0: it stays */
    tri_tensor *scale; /* of this step */
    tri_tensor *loss;
};

/* "off" or null, "dynamic", "dynamic:start=X,every=N", or a number. */
tri_status scaling_parse(const char *text, struct scaling *out);

/* The loss times the scale: what to differentiate. */
tri_tensor *scaling_begin(struct scaling *s, tri_tensor *loss);

/* Divides the n gradients again; there must be room for one more. Gives whether they and the loss
 * are finite, and the update is to be done; null where nothing is scaled. Adds what the next scale
 * is, and metrics. */
tri_tensor *scaling_end(struct scaling *s, tri_tensor **grads, int n);

#endif
