/* SPDX-License-Identifier: Apache-2.0
 * The members of a replica in one process, for tests; include it after cmocka.h. */
#ifndef REPLICA_WORLD_H
#define REPLICA_WORLD_H

#include <stdlib.h>
#include <string.h>

#include "machine/replica.h"

#define MOST_MEMBERS 8
#define MOST_THREADS 2
#define MOST_STOPS 4

/* An expanded graph, and what its sources are bound to. */
struct subject {
    const char *name;
    const tri_graph *g;
    struct dev *dev;
    void **source; /* by tensor; null: it is no source, or a literal */
};

/* Results of a run. At a stop those that are computed later get other memory. */
struct results {
    const tri_graph *g;
    void **at[2]; /* by tensor: of results outside of the arena */
};

struct world {
    const struct subject *s;
    int members, threads;
    struct program program[MOST_MEMBERS];
    struct replica replica[MOST_MEMBERS];
    char *memory;
    struct results results;
    size_t stop[MOST_STOPS];
    int n_stops;
    int leg;           /* that is run; LEGS_MOST: all */
    size_t begin, end; /* the items that are run */
    _Atomic uint64_t word[MOST_MEMBERS * MOST_THREADS];
    uint64_t base;
    wait_queue queue;
};

static inline void results_make(const tri_graph *g, struct results *r) {
    bool *outside = calloc((size_t)g->n_tensors + 1, sizeof *outside);
    memory_mark_outside(g, true, outside);
    r->g = g;
    for (int k = 0; k < 2; k++) {
        r->at[k] = calloc((size_t)g->n_tensors + 1, sizeof(void *));
        for (size_t i = 0; i < g->n_outputs; i++) {
            const tri_tensor *t = g->output[i].tensor;
            if (outside[t->id] && node_runs(t->node) && !r->at[k][t->id])
                r->at[k][t->id] = dev_host_allocate(memory_bytes(t));
        }
    }
    free(outside);
}

static inline void results_free(struct results *r) {
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < r->g->n_outputs; i++) {
            const tri_tensor *t = r->g->output[i].tensor;
            if (r->at[k][t->id]) dev_host_release(r->at[k][t->id], memory_bytes(t));
            r->at[k][t->id] = NULL;
        }
        free(r->at[k]);
    }
}

/* Results of items from `item` on go to memory k. */
static inline void results_bind(const struct results *r, struct program *p, size_t item, int k) {
    for (; item < p->n_items; item++)
        for (int j = 0; j < p->item[item].unit->n_out; j++) {
            int t = p->item[item].unit->out[j]->id;
            if (r->at[k][t]) program_bind(p, t, r->at[k][t]);
        }
}

static inline void bind_sources(const struct subject *s, struct program *p) {
    for (int t = 0; t < s->g->n_tensors; t++)
        if (s->source[t]) program_bind(p, t, s->source[t]);
}

/* One program run by one thread. */
struct single {
    struct program p;
    struct results results;
    char *arena;
};

static inline void single_make(const struct subject *s, struct single *o) {
    assert_int_equal(program_make(s->g, s->dev, PROGRAM_OUTPUTS, 1, &o->p), TRI_OK);
    results_make(s->g, &o->results);
    o->arena = dev_host_allocate(o->p.memory.total + MEMORY_ALIGN);
    memset(o->arena, 0xff, o->p.memory.total);
    program_place(&o->p, o->arena, o->arena);
    bind_sources(s, &o->p);
    results_bind(&o->results, &o->p, 0, 0);
}

static inline void single_free(struct single *o) {
    results_free(&o->results);
    dev_host_release(o->arena, o->p.memory.total + MEMORY_ALIGN);
    program_free(&o->p);
}

static inline void world_take(struct world *w, int leg, size_t begin, size_t end) {
    const struct replica_range range = {begin, end, w->stop, w->n_stops};
    w->leg = leg;
    w->begin = begin;
    w->end = end;
    for (int m = 0; m < w->members; m++) {
        if (w->replica[m].p) replica_free(&w->replica[m]);
        if (replica_make(&w->program[m], m, &range, &w->replica[m])) fail_msg("%s", tri_message());
    }
}

/* Takes the next leg. */
static inline void world_take_leg(struct world *w, int leg) {
    const struct program *p = w->program;
    size_t begin = leg ? w->end : 0, end = begin;
    while (end < p->n_items && p->item[end].unit->node[0]->leg == leg) end++;
    world_take(w, leg, begin, end);
}

static inline void world_make(const struct subject *s, int members, int threads,
                              const size_t *stop, int n_stops, struct world *w) {
    *w = (struct world){.s = s, .members = members, .threads = threads, .n_stops = n_stops};
    for (int i = 0; i < n_stops; i++) w->stop[i] = stop[i];
    results_make(s->g, &w->results);
    for (int m = 0; m < members; m++) {
        struct program *p = &w->program[m];
        if (program_make_member(s->g, s->dev, PROGRAM_OUTPUTS, threads, members, p))
            fail_msg("%s", tri_message());
        size_t bytes = p->memory.total + MEMORY_ALIGN;
        if (!m) w->memory = dev_host_allocate(bytes);
        program_place_member(p, m, w->memory);
        bind_sources(s, p);
    }
    world_take(w, LEGS_MOST, 0, w->program->n_items);
}

static inline void world_free(struct world *w) {
    dev_host_release(w->memory, w->program->memory.total + MEMORY_ALIGN);
    results_free(&w->results);
    for (int m = 0; m < w->members; m++) {
        replica_free(&w->replica[m]);
        program_free(&w->program[m]);
    }
}

/* Before a run: memory is NaN, and results are bound for what is before the first stop. */
static inline void world_begin(struct world *w) {
    memset(w->memory, 0xff, w->program->memory.total);
    for (int m = 0; m < w->members; m++) results_bind(&w->results, &w->program[m], 0, 0);
}

/* A stop of a member. */
static inline void world_rebind(struct world *w, int member, int stop) {
    if (stop < w->n_stops)
        results_bind(&w->results, &w->program[member], w->stop[stop], (stop + 1) % 2);
}

/* The first result of what was run that differs; null: none does. */
static inline const char *world_differs(struct world *w, const struct single *o) {
    for (size_t i = 0; i < w->s->g->n_outputs; i++) {
        const tri_tensor *t = w->s->g->output[i].tensor;
        if ((w->leg == LEGS_MOST || t->node->leg == w->leg) &&
            memcmp(program_value(&w->program[0], t->id), program_value(&o->p, t->id),
                   base_spec_bytes(&t->spec)))
            return t->node->name;
    }
    return NULL;
}

#endif
