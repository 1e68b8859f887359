/* SPDX-License-Identifier: Apache-2.0
 * What this machine reaches at best: the measure that a network's rate is held against. */
#ifndef MACHINE_RATE_H
#define MACHINE_RATE_H

#include "dev/dev.h"

/* Arithmetic a second of a large product of matrices of this type, by so many threads at once, each
 * with a product of its own; takes about half a second. */
tri_status rate_matmul(const struct dev *dev, tri_type type, int threads, double *flops);

#endif
