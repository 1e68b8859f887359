/* SPDX-License-Identifier: Apache-2.0
 * Instruction sets. Files of vector kernels (`vector` in meson.build) are compiled once per set,
 * with its name as CPU_ISA. Everything in them is static except tables, which FOR_ISA names. All
 * sets give the same bits. conv_dw_bf16.c exists only for AVX-512. */
#ifndef DEV_CPU_ISA_H
#define DEV_CPU_ISA_H

#include "base/base.h"

enum isa { ISA_PLAIN, ISA_AVX2, ISA_AVX512, ISAS };

/* The sets of this processor family, in the enum's order, slow to fast. */
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

/* The machine's best, or the one in the environment's TRIREME_ISA. */
enum isa isa_best(void);
/* Checks that the machine has the set in TRIREME_ISA. */
tri_status isa_open(void);

#endif
