/* SPDX-License-Identifier: Apache-2.0 */
#include "machine/dealt.h"

#define PACKED 0.85

tri_status dealt_make(const struct machine *m, int phase, struct dealt *d) {
    const struct tree *t = &m->tree[1];
    *d = (struct dealt){.tree = &m->tree[phase], .phase = phase, .hosts = m->hosts};
    hosts_deal(&t->shape, t->cut, m->hosts, m->weight, d->begin);
    const struct transfer_share share = {.hosts = m->hosts, .begin = d->begin, .buckets = 1};
    return path_prices(&d->tree->shape, &share, d->price);
}

double dealt_range_bytes(const struct wire_map *m, uint64_t first, uint64_t n) {
    return (wire_is_packed(m) ? PACKED : 1) * (double)wire_bytes(m, first, n);
}

double dealt_bytes(const struct dealt *d, int bucket) {
    const struct wire_map map = tree_map(d->tree, bucket);
    return dealt_range_bytes(&map, 0, wire_blocks(&map));
}

enum path dealt_path(const struct dealt *d, int asked, const struct path_link *link, int bucket) {
    return d->phase && d->tree->bucket[bucket].adds
               ? path_taken(d->price, asked, link, dealt_bytes(d, bucket)) : PATH_EXCHANGE;
}

double dealt_seconds(const struct dealt *d, const struct path_link *link, int bucket,
                     enum path path) {
    return link->bandwidth > 0 ? path_seconds(&d->price[path], link, dealt_bytes(d, bucket)) : -1;
}
