/* SPDX-License-Identifier: Apache-2.0
 * Measures the peak rate of arithmetic of this machine, for comparison with a network's rate. */
#ifndef MACHINE_RATE_H
#define MACHINE_RATE_H

#include "dev/dev.h"

/* *flops: operations per second of large matrix products of this type, when each of `threads`
 * threads computes one. Takes about half a second. */
tri_status rate_matmul(const struct dev *dev, tri_type type, int threads, double *flops);

#endif
