/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DEV_CPU_MULTIPLY_H
#define DEV_CPU_MULTIPLY_H

#include "dev/cpu/isa.h"

/* Some microseconds of fused multiply-adds that are independent enough to keep all units busy: a
 * sum becomes sum * x[0] + x[1]. x[2]: a result, so that the compiler keeps them. Returns the
 * number of operations, two for each. */
typedef double cpu_multiply_fn(float x[3]);

#define CPU_MULTIPLY(isa) cpu_multiply_fn cpu_multiply_##isa;
EVERY_ISA(CPU_MULTIPLY)
#undef CPU_MULTIPLY

#endif
