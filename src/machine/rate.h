/* SPDX-License-Identifier: Apache-2.0
 * Measures the highest rates of arithmetic and memory of this machine, for comparison with those of
 * a network. */
#ifndef MACHINE_RATE_H
#define MACHINE_RATE_H

#include "dev/dev.h"

/* *flops: operations per second of fused multiply-adds in registers, on `threads` threads; or of
 * large matrix products, one per thread, if the device cannot measure registers in this type. Takes
 * about half a second. */
tri_status rate_highest(struct dev *dev, tri_type type, int threads, double *flops);

/* Bytes per second that so many threads read and write together, of memory that fits into no cache.
 */
tri_status rate_memory(int threads, double *bandwidth);

/* Writes FOLDER/rates.json of a profile (src/profile/read.h), of one thread. */
tri_status rate_write(struct dev *dev, const char *folder);

#endif
