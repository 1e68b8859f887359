/* SPDX-License-Identifier: Apache-2.0
 * Products of bf16 in registers, in two instructions of x86-64: the highest rates that products
 * can reach. This file alone is compiled for them, so it has nothing that other processors run. */
#include "kernels.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

#define STEPS 1024

/* ---- VDPBF16PS ---- */

#define CHAINS 12 /* hide the latency */

double pairs_multiply(void) {
#ifdef __AVX512BF16__
    static volatile float kept;
    __m512 sum[CHAINS];
    const __m512bh factor = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5f), _mm512_set1_ps(0.5f));
    for (int i = 0; i < CHAINS; i++) sum[i] = _mm512_set1_ps((float)i);
    for (int k = 0; k < STEPS; k++)
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS; i++) sum[i] = _mm512_dpbf16_ps(sum[i], factor, factor);
    for (int i = 1; i < CHAINS; i++) sum[0] = _mm512_add_ps(sum[0], sum[i]);
    kept = _mm512_cvtss_f32(sum[0]);
    (void)kept;
    return 2.0 * STEPS * CHAINS * 32;
#else
    return 0;
#endif
}

/* ---- tiles ---- */

double tiles_multiply(void) {
#ifdef __AMX_BF16__
    /* Palette 1: eight tiles of 16 rows of 64 bytes. static: gcc 12 takes 8 of the bytes as read,
     * and drops what is written into the others of a local one. */
    static const struct {
        uint8_t palette, begin, none[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = {.palette = 1,
                .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
    _tile_loadconfig(&config); /* the tiles become zeros */
    for (int k = 0; k < STEPS; k++) {
        _tile_dpbf16ps(0, 6, 7);
        _tile_dpbf16ps(1, 6, 7);
        _tile_dpbf16ps(2, 6, 7);
        _tile_dpbf16ps(3, 6, 7);
        _tile_dpbf16ps(4, 6, 7);
        _tile_dpbf16ps(5, 6, 7);
    }
    _tile_release();
    return 2.0 * STEPS * 6 * 16 * 16 * 32;
#else
    return 0;
#endif
}
