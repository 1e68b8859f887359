/* SPDX-License-Identifier: Apache-2.0 */
#include "link/model.h"

#include "link/world.c"

bool model_keeps_sessions;

void model_end(struct link *l, int host) {
    if (!model_keeps_sessions) link_end(l, host);
}

tri_status model_peer(struct link *l, int host, uint32_t epoch, const char *address) {
    if (*joined(world_of(l), l->o.self, host) && model_keeps_sessions)
        link_tell(l, LINK_JOINED, host);
    return link_peer(l, host, epoch, address);
}

uint64_t model_of_world(const struct link_world *w, uint64_t h) {
    const size_t pairs = (size_t)w->hosts * (size_t)w->hosts;
    h = base_hash(w->joined, pairs * sizeof *w->joined, h);
    for (size_t i = 0; i < pairs; i++) {
        const struct path *p = &w->path[i];
        ADD(h, p->epoch);
        ADD(h, p->ready);
        ADD(h, p->waits);
        ADD(h, p->started);
        for (size_t k = p->first; k < p->n; k++) {
            const struct between *b = &p->queue[k];
            const uint32_t is[] = {b->dies, b->is_taken, b->header.epoch, b->header.step,
                                   b->header.kind, b->header.item, b->header.node, b->header.part};
            h = base_hash(is, sizeof is, h);
        }
    }
    return h;
}
