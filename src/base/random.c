/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"

#include <math.h>

#include "base/math.h"

#define ROUNDS 10
#define TWO_PI 6.283185307179586

void random_block(uint64_t key, uint64_t counter_hi, uint64_t counter_lo, uint32_t out[4]) {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)counter_lo, c1 = (uint32_t)(counter_lo >> 32);
    uint32_t c2 = (uint32_t)counter_hi, c3 = (uint32_t)(counter_hi >> 32);
    for (int r = 0; r < ROUNDS; r++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)b;
        c3 = (uint32_t)a;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

uint64_t random_key(uint64_t seed, uint64_t name_hash) {
    uint32_t out[4];
    random_block(seed, 0, name_hash, out);
    return (uint64_t)out[1] << 32 | out[0];
}

/* Four neighbouring indices share a block. Draws that need more have blocks of their own, told
 * apart by the top bits of the counter, which indices and streams never reach. */
#define OWN_BLOCK ((uint64_t)1 << 63)

uint32_t random_u32(uint64_t key, uint64_t stream, uint64_t index) {
    uint32_t out[4];
    random_block(key, stream, index / 4, out);
    return out[index % 4];
}

void random_u32_fill(uint64_t key, uint64_t stream, uint64_t first, size_t n, uint32_t *out) {
    size_t i = 0;
    for (; i < n && (first + i) % 4; i++) out[i] = random_u32(key, stream, first + i);
    for (; i + 4 <= n; i += 4) random_block(key, stream, (first + i) / 4, out + i);
    for (; i < n; i++) out[i] = random_u32(key, stream, first + i);
}

static double unit(uint32_t high, uint32_t low) {
    return (double)(((uint64_t)high << 32 | low) >> 11) * 0x1p-53;
}

double random_uniform(uint64_t key, uint64_t stream, uint64_t index) {
    uint32_t out[4];
    random_block(key, stream | OWN_BLOCK, index, out);
    return unit(out[0], out[1]);
}

/* Box and Muller's first number of the pair. */
static double normal_of(const uint32_t out[4]) {
    double u = 1 - unit(out[0], out[1]), v = unit(out[2], out[3]);
    return sqrt(-2 * math_log(u)) * math_cos(TWO_PI * v);
}

double random_normal(uint64_t key, uint64_t stream, uint64_t index) {
    uint32_t out[4];
    random_block(key, stream | OWN_BLOCK, index | OWN_BLOCK, out);
    return normal_of(out);
}

/* By rejection: each try has a counter of its own. Of 2^11 tries one is in the bounds but for odds
 * far below 2^-1000. */
double random_truncated_normal(uint64_t key, uint64_t stream, uint64_t index) {
    double x = 0;
    for (uint64_t attempt = 0; attempt < 2048; attempt++) {
        uint32_t out[4];
        random_block(key, stream | OWN_BLOCK | (attempt + 1) << 48, index | OWN_BLOCK, out);
        x = normal_of(out);
        if (fabs(x) <= 2) break;
    }
    return x;
}
