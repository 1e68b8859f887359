/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as numbers of a peer, for any map and range. If they are taken, wire_put writes them
 * again, and rounding changes nothing (but for topk: see wire.h); else there is a reason. Nothing
 * beside the range changes. */
#include <stdlib.h>
#include <string.h>

#include "wire/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PARTS 4
#define SLOT (PARTS * (600 + 1) * 4)
#define MARKS 80 /* bytes, of each part */

/* Which numbers of the slot are in the range. */
static void mark(const struct wire_map *m, bool *inside, uint64_t first, uint64_t n) {
    uint64_t block = 0;
    for (int p = 0; p < m->n; p++)
        for (uint64_t i = 0; i < m->part[p].n; i++) {
            if (i % WIRE_BLOCK == 0 && (!i || m->part[p].format != WIRE_TOPK)) block++;
            inside[m->part[p].at / 4 + i] = block > first && block <= first + n;
        }
}

/* data: for each part its size and format, which chunk, and the bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct wire_part part[PARTS];
    const struct wire_key key = {1, 2, 3};
    static _Alignas(8) char slot[SLOT + PARTS * MARKS], before[SLOT], estimate[SLOT];
    static bool inside[SLOT / 4];
    if (size < 3 * PARTS + 3) return 0;
    uint64_t at = 0;
    for (int p = 0; p < PARTS; p++, data += 3) {
        const uint64_t n = (data[0] | (uint64_t)data[1] << 8) % 600;
        const uint32_t format = data[2] % (WIRE_TOPK + 1);
        part[p] = (struct wire_part){.at = at, .n = n, .format = format, .name = (uint32_t)p,
                                     .kept = n ? 1 + (data[2] >> 3) % n : 0,
                                     .marks = SLOT + (uint64_t)p * MARKS, .estimate = at};
        at += 4 * n + 4 * (data[2] >> 7);
    }
    const struct wire_map m = {.part = part, .n = data[0] % PARTS + 1, .estimate = estimate};
    const int chunks = data[1] % 5 + 1;
    uint64_t first, n;
    wire_chunk(&m, data[2] % chunks, chunks, &first, &n);
    data += 3;
    size -= 3 * PARTS + 3;
    const size_t want = wire_bytes(&m, first, n);
    /* mostly as many as that: the bytes over and over */
    const bool fits = size && data[0] % 8;
    const size_t bytes = fits ? want : size;
    uint8_t *copy = malloc(bytes + 1), *again = malloc(bytes + 1);
    for (size_t i = 0; i < bytes; i++) copy[i] = data[i % size];
    memset(slot, 0x5a, SLOT);
    memset(inside, 0, sizeof inside);
    mark(&m, inside, first, n);
    uint8_t *exact = realloc(copy, bytes ? bytes : 1);
    if (wire_take(&m, exact, bytes, first, n, slot)) {
        CHECK(tri_message()[0] && !strchr(tri_message(), '\n'));
    } else {
        CHECK(bytes == want);
        wire_put(&m, slot, first, n, again);
        CHECK(!memcmp(again, exact, bytes));
        memcpy(before, slot, SLOT);
        wire_round(&m, &key, first, n, slot);
        for (int p = 0; p < m.n; p++) /* whose estimate is zeros */
            CHECK(part[p].format == WIRE_TOPK ||
                  !memcmp(before + part[p].at, slot + part[p].at, 4 * part[p].n));
    }
    for (size_t i = 0; i < SLOT; i++) CHECK(inside[i / 4] || slot[i] == 0x5a);
    free(again);
    free(exact);
    return 0;
}
