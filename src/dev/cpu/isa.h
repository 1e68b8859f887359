/* SPDX-License-Identifier: Apache-2.0
 * Instruction sets. Files of vector kernels (`vector` in meson.build) are compiled once per set,
 * with its name as CPU_ISA. Everything in them is static except tables, which FOR_ISA names. All
 * sets give the same bits. Files of products are compiled for one set more, which has an
 * instruction for products of bf16. */
#ifndef DEV_CPU_ISA_H
#define DEV_CPU_ISA_H

#include "base/base.h"

enum isa { ISA_PLAIN, ISA_AVX2, ISA_AVX512, ISA_AVX512BF16, ISAS };

/* The sets of this processor family, in the enum's order, slow to fast. */
#ifdef __x86_64__
#define EVERY_ISA(X) X(plain) X(avx2) X(avx512)
#define EVERY_PRODUCT_ISA(X) EVERY_ISA(X) X(avx512bf16)
#else
#define EVERY_ISA(X) X(plain)
#define EVERY_PRODUCT_ISA EVERY_ISA
#endif

#ifdef CPU_ISA
#define ISA_PASTE(name, isa) name##_##isa
#define ISA_NAME(name, isa) ISA_PASTE(name, isa)
#define FOR_ISA(name) ISA_NAME(name, CPU_ISA)
#endif

/* The machine's best, or the one in the environment's TRIREME_ISA; for files of products. */
enum isa isa_best(void);
enum isa isa_products(void);
/* Instructions for products of bf16 tiles, which our kernels do not use. */
bool isa_has_amx(void);
/* Checks that the machine has the set in TRIREME_ISA. */
tri_status isa_open(void);

#endif
