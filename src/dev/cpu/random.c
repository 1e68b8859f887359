/* SPDX-License-Identifier: Apache-2.0
 * dropout. Every element draws the number of its place in the whole batch. */
#include "dev/cpu/draw.h"

#include "dev/cpu/cpu.h"
#include "dev/cpu/isa.h"

#define CHUNK 1024

static void drop(float *y, uint8_t *mask, const float *x, const uint32_t *drawn, int64_t n,
                        uint32_t limit, float scale) {
    INDEPENDENT for (int64_t i = 0; i < n; i++) {
        mask[i] = drawn[i] >= limit;
        y[i] = drawn[i] >= limit ? x[i] * scale : 0;
    }
}

static void dropout(const tri_call *c) {
    const tri_node *n = c->node;
    double p = tri_attr_float(n, "p");
    bool training = tri_attr_int(n, "training");
    float scale = training ? (float)(1 / (1 - p)) : 1;
    uint32_t limit = training ? (uint32_t)(p * 4294967296.0) : 0;
    uint64_t key = random_key(c->seed, base_hash_text(node_key(n)));
    const float *x = c->in[0];
    float *y = c->out[0];
    uint8_t *mask = c->out[1];
    uint32_t drawn[CHUNK];
    for (int64_t i = 0, count = cpu_out_count(n, 0); i < count; i += CHUNK) {
        int64_t some = count - i < CHUNK ? count - i : CHUNK;
        draw_fill(key, (uint64_t)c->step, (uint64_t)(c->first + i), (size_t)some, drawn);
        drop(y + i, mask + i, x + i, drawn, some, limit, scale);
    }
}

const struct dev_row FOR_ISA(cpu_random)[] = {
    {.op = "dropout", .run = dropout},
    {0},
};
