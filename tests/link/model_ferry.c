/* SPDX-License-Identifier: Apache-2.0 */
#include "link/model.h"

#define link_end model_end
#define link_peer model_peer
#include "ferry/ferry.c"

uint64_t model_of_ferry(const struct ferry *f, uint64_t h) {
    ADD(h, f->epoch);
    ADD(h, f->held);
    ADD(h, f->first);
    ADD(h, f->step);
    ADD(h, f->teller);
    ADD(h, f->reports);
    ADD(h, f->joins);
    ADD(h, f->lacks);
    for (int i = 0; i < f->hosts.n; i++) {
        const struct peer *p = &f->peer[i];
        const uint64_t is[] = {p->joined, p->lost, p->whole, p->told, p->offered,
                               (uint64_t)p->lent, p->given, p->next};
        h = base_hash(is, sizeof is, h);
    }
    return model_of_mover(f->mover, h);
}

int model_path(const struct ferry *f) {
    return f->step == f->first ? -1 : model_path_of(f->mover);
}
