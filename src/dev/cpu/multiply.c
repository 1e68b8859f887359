/* SPDX-License-Identifier: Apache-2.0
 * Fused multiply-adds in registers: the highest rate that products can reach. */
#include "dev/cpu/multiply.h"
#include "dev/cpu/vec.h"

#define CHAINS 12 /* hide the latency, and fit in 16 registers */
#define STEPS 4096

double FOR_ISA(cpu_multiply)(float x[3]) {
    const vec factor = vec_set(x[0]), summand = vec_set(x[1]);
    vec sum[CHAINS], all = {0};
    UNROLL for (int i = 0; i < CHAINS; i++) sum[i] = vec_set((float)i);
    for (int k = 0; k < STEPS; k++)
        UNROLL for (int i = 0; i < CHAINS; i++) sum[i] = vec_fma(sum[i], factor, summand);
    UNROLL for (int i = 0; i < CHAINS; i++) all += sum[i];
    x[2] = all[0];
    return 2.0 * STEPS * CHAINS * VEC;
}
