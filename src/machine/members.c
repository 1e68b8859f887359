/* SPDX-License-Identifier: Apache-2.0
 * The members of replicas that a process plays. Most processes play one; after deaths some play
 * several, whose programs are made then. */
#include <stdlib.h>

#include "machine/machine.h"

static tri_status make(struct machine *m, int number, int size) {
    struct machine_member *o = &m->member[number];
    const struct program *first = &m->thread[0].lane[size];
    const struct tree *t = &m->tree[1];
    const struct bucket_events *e = &t->events[size];
    tri_status status = TRI_OK;
    o->lane[size] = m->plays ? &o->own[size] : &m->thread[0].lane[size];
    if (m->plays)
        status = program_make_member(first->g, m->dev, PROGRAM_OUTPUTS, first->threads, m->members,
                                     &o->own[size]);
    o->replica[size] = calloc((size_t)t->buckets.legs, sizeof *o->replica[size]);
    if (!status && !o->replica[size]) status = base_no_memory("a replica");
    for (int leg = 0; leg < t->buckets.legs && !status; leg++) {
        const struct replica_range range = {t->items[size][leg], t->items[size][leg + 1],
                                            e->stop + e->leg[leg], e->leg[leg + 1] - e->leg[leg]};
        status = replica_make(o->lane[size], number, &range, &o->replica[size][leg]);
    }
    return status;
}

static void place(struct machine *m, int number, struct program *p, char *arena) {
    program_place_member(p, number, arena);
    machine_bind(m, p);
    if (m->tree[0].g) tree_bind_tops(&m->tree[0], p);
}

tri_status machine_play(struct machine *m, int number, int replica) {
    struct machine_member *o = &m->member[number];
    char *arena = region_at(m->shared, m->base, REGION_REPLICAS, replica);
    if (o->arena == arena) return TRI_OK;
    for (int size = 0; size < m->compilation.n_sizes && !o->arena; size++) {
        tri_status status = make(m, number, size);
        if (status) return status;
    }
    m->plays = true;
    for (int size = 0; size < m->compilation.n_sizes; size++)
        place(m, number, o->lane[size], arena);
    o->arena = arena;
    return TRI_OK;
}

void machine_free_members(struct machine *m) {
    for (int i = 0; m->member && i < m->members; i++)
        for (int size = 0; size < 2; size++) {
            struct replica *r = m->member[i].replica[size];
            for (int leg = 0; r && leg < m->tree[1].buckets.legs; leg++)
                if (r[leg].p) replica_free(&r[leg]);
            free(r);
        }
}
