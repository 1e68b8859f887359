/* SPDX-License-Identifier: Apache-2.0
 * Random operators. Numbers are keyed by the place in the whole batch, so every cut of the batch
 * draws the same ones. */
#include "base/random.h"

#include "dev/ref/ref.h"

/* The place in the whole tensor of element i of the part that the node has. */
static int64_t place_of(const tri_node *n, int64_t i) {
    tri_shape local = tri_attr_list(n, "local"), origin = tri_attr_list(n, "origin");
    tri_shape whole = tri_attr_list(n, "whole");
    int64_t place = local.rank ? 0 : i, stride = 1;
    for (int d = local.rank; d-- > 0; i /= local.dim[d]) {
        place += (origin.dim[d] + i % local.dim[d]) * stride;
        stride *= whole.dim[d];
    }
    return place;
}

static void dropout(const tri_call *c) {
    const tri_node *n = c->node;
    double p = tri_attr_float(n, "p");
    bool training = tri_attr_int(n, "training");
    float scale = training ? (float)(1 / (1 - p)) : 1;
    uint32_t limit = training ? (uint32_t)(p * 4294967296.0) : 0;
    uint64_t key = random_key(c->seed, base_hash_text(node_key(n)));
    int64_t count = tri_shape_count(&ref_out(c, 0)->shape);
    for (int64_t i = 0; i < count; i++) {
        uint64_t place = (uint64_t)(c->first + place_of(n, i));
        bool kept = random_u32(key, (uint64_t)c->step, place) >= limit;
        ref_store(c, 0, i, kept ? ref_load(c, 0, i) * (double)scale : 0);
        ref_store(c, 1, i, kept);
    }
}

const struct dev_row ref_random[] = {
    {.op = "dropout", .run = dropout},
    {0},
};
