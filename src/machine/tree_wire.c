/* SPDX-License-Identifier: Apache-2.0
 * How the buckets of a tree travel, and which nodes are rounded to that. */
#include <stdlib.h>
#include <string.h>

#include "machine/tree.h"
#include "wire/topk.h"

/* What follows in a slot: a tensor to be rounded, or all until the next such tensor. */
static tri_status add_part(struct tree_bucket *b, uint64_t at, uint64_t end,
                           struct wire_part part) {
    if (at == end) return TRI_OK;
    if (!ARRAY_GROW(b->part, b->n_parts, b->most_parts)) return base_no_memory("buckets");
    part.at = at;
    part.n = (end - at) / 4;
    b->part[b->n_parts++] = part;
    return TRI_OK;
}

static void place_marks(struct tree_bucket *b) {
    for (size_t i = 0; i < b->n_parts; i++) {
        if (b->part[i].format != WIRE_TOPK) continue;
        b->part[i].marks = b->bytes;
        b->bytes += memory_round(topk_mark_bytes(b->part[i].n));
    }
}

/* The merge program has the results in the order of their offsets. */
static tri_status make_parts(struct tree *t, int bucket, const struct tree_wire *w) {
    struct tree_bucket *b = &t->bucket[bucket];
    const struct program *p = &t->merge[0];
    const struct wire_part plain = {.format = WIRE_F32};
    uint64_t at = 0;
    tri_status status = TRI_OK;
    b->adds = t->shape.n_tops == 1;
    for (int i = 0; i < p->n_result && !status; i++) {
        const int of = p->result[i].of;
        if (!tree_has(t, p, i, bucket)) continue;
        b->adds &= p->result[i].is->spec.type == TRI_F32;
        if (!w->part || w->part[of].format == WIRE_F32) continue;
        const uint64_t begin = t->offset[of], end = begin + base_spec_bytes(&p->result[i].is->spec);
        status = add_part(b, at, begin, plain);
        if (!status) status = add_part(b, begin, end, w->part[of]);
        at = end;
    }
    if (!status) status = add_part(b, at, b->bytes, plain);
    place_marks(b);
    return status;
}

tri_status tree_make_parts(struct tree *t, const struct tree_wire *w) {
    tri_status status = TRI_OK;
    t->rounds = w->part ? t->cut : -1;
    t->apart = w->apart;
    for (int b = 0; b < t->buckets.n && !status; b++)
        if (buckets_is_summed(&t->buckets, b)) status = make_parts(t, b, w);
    return status;
}

struct wire_map tree_map(const struct tree *t, int bucket) {
    return (struct wire_map){.part = t->bucket[bucket].part, .n = (int)t->bucket[bucket].n_parts};
}

bool tree_rounds(const struct tree *t, int node) {
    return t->rounds >= 0 && lane_tree_depth(&t->shape, node) <= t->rounds;
}

tri_status tree_check_hosts(const struct tree *t, const char *wire, int hosts) {
    const int nodes = t->cut < 0 ? 0 : lane_tree_cut(&t->shape, t->cut, NULL);
    int depth = t->cut;
    const bool few = hosts > t->shape.lanes;
    if (t->cut < 0 || hosts <= nodes) return TRI_OK;
    while (few ? 1 << depth < hosts : lane_tree_cut(&t->shape, depth, NULL) < hosts) depth++;
    return base_fail(TRI_USAGE, "--wire %s rounds %d sum(s) of lanes, which are shared by at most "
                     "as many hosts, and there are %d: --wire-nodes %d%s would do", wire, nodes,
                     hosts, 1 << depth, few ? " and more --lanes" : "");
}

void tree_round(const struct tree *t, int bucket, int node, const struct program_step *step,
                char *slot) {
    const int top = t->shape.node[node].top; /* the nodes with estimates are tops */
    const struct wire_key key = {step->seed, (uint64_t)step->step, node};
    struct wire_map m = tree_map(t, bucket);
    if (top >= 0 && t->values) m.estimate = t->values + t->apart * (size_t)top;
    if (tree_rounds(t, node)) wire_round(&m, &key, 0, wire_blocks(&m), slot);
}
