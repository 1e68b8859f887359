/* SPDX-License-Identifier: Apache-2.0 */
#include "dev/cpu/isa.h"

#include "dev/cpu/gemm.h"

#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

static const char *const names[ISAS] = {"plain", "avx2", "avx512", "avx512bf16"};

static bool machine_has(int isa) {
#ifdef __x86_64__
    if (isa == ISA_AVX2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (isa == ISA_AVX512)
        return machine_has(ISA_AVX2) && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
    if (isa == ISA_AVX512BF16)
        return machine_has(ISA_AVX512) && __builtin_cpu_supports("avx512bf16") &&
               gemm_pairs_as_documented_avx512bf16();
#endif
    return isa == ISA_PLAIN;
}

/* ISAS: unknown. */
static int find(const char *name) {
    int isa = 0;
    while (isa < ISAS && strcmp(name, names[isa])) isa++;
    return isa;
}

enum isa isa_products(void) {
    const char *name = getenv("TRIREME_ISA");
    int isa = name ? find(name) : ISAS;
    while (!machine_has(isa)) isa = isa == ISAS ? ISAS - 1 : isa - 1;
    return (enum isa)isa;
}

enum isa isa_best(void) {
    const enum isa isa = isa_products();
    return isa == ISA_AVX512BF16 ? ISA_AVX512 : isa;
}

bool isa_has_amx(void) {
#ifdef __x86_64__
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && d >> 22 & 1;
#else
    return false;
#endif
}

tri_status isa_open(void) {
    const char *name = getenv("TRIREME_ISA");
    if (!name || machine_has(find(name))) return TRI_OK;
    return base_fail(TRI_USAGE, "TRIREME_ISA=%s: this machine has plain%s%s%s", name,
                     machine_has(ISA_AVX2) ? ", avx2" : "",
                     machine_has(ISA_AVX512) ? ", avx512" : "",
                     machine_has(ISA_AVX512BF16) ? ", avx512bf16" : "");
}
