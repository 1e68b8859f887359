/* SPDX-License-Identifier: Apache-2.0
 * Measures the highest rate of arithmetic of this machine, for comparison with a network's rate. */
#ifndef MACHINE_RATE_H
#define MACHINE_RATE_H

#include "dev/dev.h"

/* *flops: operations per second of fused multiply-adds in registers, on `threads` threads; or of
 * large matrix products, one per thread, if the device cannot measure registers in this type. Takes
 * about half a second. */
tri_status rate_highest(struct dev *dev, tri_type type, int threads, double *flops);

#endif
