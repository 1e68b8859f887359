/* SPDX-License-Identifier: Apache-2.0 */
#include "link/model.h"

#include "ferry/mover.c"

uint64_t model_of_mover(const struct mover *m, uint64_t h) {
    ADD(h, m->epoch);
    ADD(h, m->step);
    ADD(h, m->fresh);
    h = base_hash(m->lent, sizeof *m->lent * (size_t)m->hosts, h);
    h = base_hash(m->joined, sizeof *m->joined * (size_t)m->hosts, h);
    for (int k = 0; k < 2; k++) {
        const struct phase *p = &m->phase[k];
        if (!p->is.tree) continue;
        const struct transfers *t = p->is.plan;
        h = base_hash(t->all, sizeof *t->all * (size_t)t->n, h);
        h = base_hash(p->move, sizeof *p->move * (size_t)t->n, h);
        h = base_hash(p->unsent, sizeof *p->unsent * (size_t)t->buckets, h);
    }
    return h;
}
