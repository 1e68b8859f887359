/* SPDX-License-Identifier: Apache-2.0
 * Instruction sets. Files of vector kernels (`vector` in meson.build) are compiled once per set,
 * with its name as CPU_ISA. FOR_ISA names what in them is not static. All sets give the same bits.
 * Files of products are compiled for two sets more, which have instructions for products of bf16,
 * and compute these alone. */
#ifndef DEV_CPU_ISA_H
#define DEV_CPU_ISA_H

#include "base/base.h"

/* The sets of this processor family, slow to fast. */
#if defined CPU_WIDEST_plain /* -Dwidest=plain */
#define EVERY_ISA(X) X(plain)
#define EVERY_PRODUCT_ISA EVERY_ISA
#elif defined __x86_64__ && defined CPU_WIDEST_avx2
#define EVERY_ISA(X) X(plain) X(avx2)
#define EVERY_PRODUCT_ISA EVERY_ISA
#elif defined __x86_64__
#define CPU_AVX512
#define EVERY_ISA(X) X(plain) X(avx2) X(avx512)
#ifdef CPU_AMX
#define EVERY_PRODUCT_ISA(X) EVERY_ISA(X) X(avx512bf16) X(amx)
#else
#define EVERY_PRODUCT_ISA(X) EVERY_ISA(X) X(avx512bf16)
#endif
#elif defined __aarch64__
#define EVERY_ISA(X) X(plain) X(neon)
#define EVERY_PRODUCT_ISA EVERY_ISA
#else
#define EVERY_ISA(X) X(plain)
#define EVERY_PRODUCT_ISA EVERY_ISA
#endif

#define ISA_NUMBER(isa) ISA_##isa,
enum isa { EVERY_PRODUCT_ISA(ISA_NUMBER) ISAS };

#ifdef CPU_ISA
#define ISA_PASTE(name, isa) name##_##isa
#define ISA_NAME(name, isa) ISA_PASTE(name, isa)
#define FOR_ISA(name) ISA_NAME(name, CPU_ISA)
#endif

extern const char *const isa_names[ISAS];
/* The machine's best, or the one in the environment's TRIREME_ISA; for files of products, of bf16
 * if half. */
enum isa isa_best(void);
enum isa isa_products(bool half);
/* Why a set for bf16 that the machine has is not the best; null: it is, or there is none. */
const char *isa_products_why(void);
/* The processor has tiles for products of bf16. */
bool isa_has_amx(void);
/* Checks that the machine has the set in TRIREME_ISA. */
tri_status isa_open(void);

#endif
