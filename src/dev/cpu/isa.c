/* SPDX-License-Identifier: Apache-2.0 */
#include "dev/cpu/isa.h"

#include "base/nearest.h"
#include "dev/cpu/gemm.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#define NAME(isa) #isa,
const char *const isa_names[ISAS] = {EVERY_PRODUCT_ISA(NAME)};

static bool has_plain(void) { return true; }
#if defined CPU_WIDEST_plain
#elif defined __x86_64__
static bool has_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#ifdef CPU_AVX512
static bool has_avx512(void) {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
static bool has_avx512bf16(void) {
    return has_avx512() && __builtin_cpu_supports("avx512bf16") &&
           gemm_pairs_as_documented_avx512bf16();
}
#endif
#ifdef CPU_AMX
/* The processor has tiles for bf16, and Linux saves them when it switches threads, for a process
 * that has asked. It is asked once, when the set for bf16 is looked up: from then on stacks of
 * signal handlers must be larger. */
static bool tiles_are_there;
static void ask_for_tiles(void) {
    enum { TILE = 1 << 24, BF16 = 1 << 22, SAVES = 1 << 27, STATE = 3 << 17, REQUEST = 0x1023,
           TILE_DATA = 18 };
    unsigned a, b, c, d, low, high;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & SAVES)) return;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & TILE) || !(d & BF16)) return;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    tiles_are_there = (low & STATE) == STATE && !syscall(SYS_arch_prctl, REQUEST, TILE_DATA);
}
static bool has_amx(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (!has_avx512() || !__builtin_cpu_supports("avx512bf16")) return false;
    pthread_once(&once, ask_for_tiles);
    return tiles_are_there;
}
#endif
#elif defined __aarch64__
static bool has_neon(void) { return true; } /* it belongs to the architecture */
#endif

static bool machine_has(int isa) {
#define HAS(isa) has_##isa,
    static bool (*const has[ISAS])(void) = {EVERY_PRODUCT_ISA(HAS)};
    return isa < ISAS && has[isa]();
}

/* ISAS: unknown. */
static int find(const char *name) {
    int isa = 0;
    while (isa < ISAS && strcmp(name, isa_names[isa])) isa++;
    return isa;
}

/* Intel's VDPBF16PS has half the rate of fused multiply-adds of floats. */
static bool is_slow(int isa) {
#ifdef CPU_AVX512
    return isa == ISA_avx512bf16 && __builtin_cpu_is("intel");
#else
    (void)isa;
    return false;
#endif
}

/* Up to number `last`. */
static enum isa best_up_to(int last) {
    const char *name = getenv("TRIREME_ISA");
    const int asked = name ? find(name) : ISAS;
    int isa = asked < last ? asked : last;
    while (!machine_has(isa) || (asked == ISAS && is_slow(isa))) isa--;
    return (enum isa)isa;
}

enum isa isa_best(void) {
#define ONE(isa) +1
    return best_up_to(EVERY_ISA(ONE) - 1);
}

enum isa isa_products(bool half) { return half ? best_up_to(ISAS - 1) : isa_best(); }

const char *isa_products_why(void) {
    const int chosen = (int)isa_products(true);
    if (getenv("TRIREME_ISA")) return NULL;
#ifdef CPU_AMX
    if (chosen < ISA_amx && isa_has_amx() && __builtin_cpu_supports("avx512bf16"))
        return "for bf16 too, as the system does not let programs use the tiles of AMX";
#endif
    for (int isa = chosen; isa < ISAS; isa++)
        if (machine_has(isa) && is_slow(isa))
            return "for bf16 too, as its own instruction is slower on Intel";
    return NULL;
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
    struct nearest near = {.wanted = name};
    for (int isa = 0; isa < ISAS; isa++)
        if (machine_has(isa)) nearest_offer(&near, isa_names[isa]);
    return base_fail(TRI_USAGE, "TRIREME_ISA=%s: this machine has %s; set one of them, or unset it",
                     name, near.names);
}
