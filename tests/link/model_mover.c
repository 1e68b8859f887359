/* SPDX-License-Identifier: Apache-2.0 */
#include "link/model.h"

#include "ferry/mover_inside.h"

static uint64_t add_way(const struct way *w, uint64_t h) {
    const struct pieces *p = &w->pieces;
    ADD(h, w->unsent);
    ADD(h, w->here);
    if (!p->tree) return h;
    const size_t nodes = (size_t)p->tree->n_nodes;
    ADD(h, p->is_over);
    h = base_hash(p->slot, sizeof *p->slot * nodes, h);
    h = base_hash(p->operand, sizeof *p->operand * nodes, h);
    return base_hash(p->has, nodes * (size_t)p->chunks, h);
}

uint64_t model_of_mover(const struct mover *m, uint64_t h) {
    ADD(h, m->epoch);
    ADD(h, m->step);
    ADD(h, m->fresh);
    h = base_hash(m->lent, sizeof *m->lent * (size_t)m->hosts, h);
    h = base_hash(m->joined, sizeof *m->joined * (size_t)m->hosts, h);
    for (int i = 0; i < MOVER_CODED + m->hosts; i++) {
        const struct coded *c = &m->coded[i];
        const int is[] = {c->users, c->phase, c->bucket, c->node, c->chunk};
        h = base_hash(is, c->users ? sizeof is : sizeof *is, h);
    }
    for (int k = 0; k < 2; k++) {
        const struct phase *p = &m->phase[k];
        if (!p->is.tree) continue;
        const struct transfers *t = p->is.plan;
        h = base_hash(t->all, sizeof *t->all * (size_t)t->n, h);
        for (int i = 0; i < t->n; i++) {
            const struct move *x = &p->move[i];
            const int is[] = {(int)x->state, x->slot, x->coded, x->unsent};
            h = base_hash(is, sizeof is, h);
        }
        for (int b = 0; b < t->buckets; b++) h = add_way(&p->way[b], h);
    }
    return h;
}

int model_path_of(const struct mover *m) {
    const struct transfers *t = m->phase[1].is.plan;
    return m->phase[1].is.tree ? (int)t->path[t->buckets - 1] : -1;
}
