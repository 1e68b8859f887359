/* SPDX-License-Identifier: Apache-2.0 */
#include "dev/cpu/isa.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[ISAS] = {"plain", "avx2", "avx512"};

static bool machine_has(int isa) {
#ifdef __x86_64__
    if (isa == ISA_AVX2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (isa == ISA_AVX512)
        return machine_has(ISA_AVX2) && __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl");
#endif
    return isa == ISA_PLAIN;
}

/* ISAS: unknown. */
static int find(const char *name) {
    int isa = 0;
    while (isa < ISAS && strcmp(name, names[isa])) isa++;
    return isa;
}

enum isa isa_best(void) {
    const char *name = getenv("TRIREME_ISA");
    int isa = name ? find(name) : ISAS;
    while (!machine_has(isa)) isa = isa == ISAS ? ISAS - 1 : isa - 1;
    return (enum isa)isa;
}

tri_status isa_open(void) {
    const char *name = getenv("TRIREME_ISA");
    if (!name || machine_has(find(name))) return TRI_OK;
    return base_fail(TRI_USAGE, "TRIREME_ISA=%s: this machine has plain%s%s", name,
                     machine_has(ISA_AVX2) ? ", avx2" : "",
                     machine_has(ISA_AVX512) ? ", avx512" : "");
}
