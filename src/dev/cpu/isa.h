/* SPDX-License-Identifier: Apache-2.0
 * Sets of instructions. Files of vector kernels (`vector` in meson.build) are compiled once for
 * each, CPU_ISA being its name; all in them is static but for tables, whose names FOR_ISA makes.
 * Whichever is taken, the bits are the same. What there is for AVX-512 alone (conv_dw_tile.c) or taken
 * with it alone (conv_wino.c) stands in for oneDNN, where that may use these instructions. */
#ifndef DEV_CPU_ISA_H
#define DEV_CPU_ISA_H

#include "base/base.h"

enum isa { ISA_PLAIN, ISA_AVX2, ISA_AVX512, ISAS };

/* The sets that this processor's family has, in the enum's order, which is from slow to fast. */
#ifdef __x86_64__
#define EVERY_ISA(X) X(plain) X(avx2) X(avx512)
#else
#define EVERY_ISA(X) X(plain)
#endif

#ifdef CPU_ISA
#define ISA_PASTE(name, isa) name##_##isa
#define ISA_NAME(name, isa) ISA_PASTE(name, isa)
#define FOR_ISA(name) ISA_NAME(name, CPU_ISA)
#endif

/* The machine's best, or what the environment's TRIREME_ISA asks for. */
enum isa isa_best(void);
/* Whether there is what it asks for. */
tri_status isa_open(void);

#endif
