/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as packed numbers: if they are taken, pack_put writes them again. Any numbers: they
 * come back. What pack_put wrote, with damage. Nothing beside the numbers changes. */
#include <stdlib.h>
#include <string.h>

#include "wire/pack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MOST 17000 /* numbers: more than a group */
#define MARK 0x5a

/* Returns whether they are n numbers. */
static bool check_bytes(const uint8_t *from, size_t bytes, size_t n, float *x) {
    static uint8_t again[4 * MOST + 2];
    uint8_t *exact = malloc(bytes ? bytes : 1);
    CHECK(exact);
    if (bytes) memcpy(exact, from, bytes);
    memset(x + n, MARK, sizeof *x);
    const bool good = pack_take(exact, bytes, x, n);
    if (good) CHECK(pack_put(x, n, again) == bytes && (!bytes || !memcmp(again, from, bytes)));
    for (size_t i = 0; i < sizeof *x; i++) CHECK(((uint8_t *)(x + n))[i] == MARK);
    free(exact);
    return good;
}

/* data: how many numbers (u16); what to do, and whether to begin at 16,000 (u8); the bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static float x[MOST + 1], back[MOST + 1];
    if (size < 3) return 0;
    const size_t n = (data[0] | (size_t)data[1] << 8) % 1000 + (data[2] >= 240 ? MOST - 1000 : 0);
    const int what = data[2] % 3;
    data += 3;
    size -= 3;
    if (what == 0) {
        check_bytes(data, size, n, back);
        return 0;
    }
    /* Numbers: the bytes over and over. */
    for (size_t i = 0; i < n * sizeof *x; i++) ((uint8_t *)x)[i] = size ? data[i % size] : 0;
    uint8_t *bytes = malloc(pack_most(n) + 1);
    CHECK(bytes);
    const size_t written = pack_put(x, n, bytes);
    CHECK(written <= pack_most(n));
    CHECK(check_bytes(bytes, written, n, back) && !memcmp(back, x, n * sizeof *x));
    /* Damage: where (u16), what (u8). */
    if (what == 2 && written) {
        for (size_t i = 0; i + 3 <= size; i += 3)
            bytes[(data[i] | (size_t)data[i + 1] << 8) % written] ^= data[i + 2];
        check_bytes(bytes, written, n, back);
    }
    free(bytes);
    return 0;
}
