/* SPDX-License-Identifier: Apache-2.0
 * One step: the phases in their order, the lanes drawn by the workers. */
#include <stdatomic.h>

#include "exec/run.h"

/* One phase of all lanes. */
struct sweep {
    struct machine *m;
    int k; /* 0: count, 1: lane */
    struct program_step step;
    _Atomic int64_t next;
    atomic_bool failed;
    pthread_mutex_t mutex; /* of what follows */
    int64_t failed_lane;
    struct tri_fault *fault; /* of the lowest lane that fails: any order of threads finds the same */
};

/* What a lane gives of outputs that are split over the samples goes behind what the lanes before
 * it give: rows of samples, or of groups of them. */
static void collect_rows(struct machine *m, const struct program *p, int64_t lane) {
    int64_t large = 0; /* lanes before of the first size */
    while (large < lane && lane_samples(m->batch, m->lanes, large) == m->compilation.samples[0])
        large++;
    for (int i = 0; i < m->n_outputs; i++) {
        struct run_output *o = &m->output[i];
        if (o->tensor) continue;
        const tri_tensor *t = graph_output_find(p->g, o->name)->tensor;
        size_t at = (size_t)large * o->lane_bytes[0] + (size_t)(lane - large) * o->lane_bytes[1];
        m->dev->copy((char *)o->owned + at, program_value(p, t->id), base_spec_bytes(&t->spec));
    }
}

static bool run_lane(struct sweep *s, int64_t lane, int thread, struct program_step *step) {
    struct machine *m = s->m;
    struct machine_worker *w = &m->worker[thread];
    bool first_size = lane_samples(m->batch, m->lanes, lane) == m->compilation.samples[0];
    struct program *p = &(s->k ? w->lane : w->count)[first_size ? 0 : 1];
    char *slot = tree_slot(&m->tree[s->k]);
    step->sample = lane_first(m->batch, m->lanes, lane);
    machine_bind_rows(m, p, step->sample);
    tree_bind_outputs(&m->tree[s->k], p, slot);
    if (!program_run(p, NULL, step)) return false;
    if (s->k == 1) collect_rows(m, p, lane);
    return tree_put(&m->tree[s->k], lane, slot, thread, step);
}

static void keep_fault(struct sweep *s, int64_t lane, const struct tri_fault *fault) {
    pthread_mutex_lock(&s->mutex);
    if (!s->fault->failed || lane < s->failed_lane) {
        *s->fault = *fault;
        s->failed_lane = lane;
    }
    pthread_mutex_unlock(&s->mutex);
    atomic_store(&s->failed, true);
}

/* Lanes are drawn in their order, so that all before one that is drawn will end. */
static void draw_lanes(void *arg, int thread) {
    struct sweep *s = arg;
    struct tri_fault fault = {0};
    struct program_step step = s->step;
    if (thread >= s->m->n_workers) return;
    step.fault = &fault;
    while (!atomic_load(&s->failed)) {
        int64_t lane = atomic_fetch_add(&s->next, 1);
        if (lane >= s->m->lanes) return;
        if (!run_lane(s, lane, thread, &step)) {
            keep_fault(s, lane, &fault);
            return;
        }
    }
}

/* Runs a phase for every lane and sums what they yield; the sums are bound where they are used. */
static bool run_lanes_of(struct machine *m, int k, const struct program_step *step) {
    struct sweep s = {.m = m, .k = k, .step = *step, .fault = step->fault};
    pthread_mutex_init(&s.mutex, NULL);
    tree_begin(&m->tree[k]);
    team_run(m->n_workers > 1 ? m->team : NULL, draw_lanes, &s);
    pthread_mutex_destroy(&s.mutex);
    if (atomic_load(&s.failed)) return false;
    for (int i = 0; machine_program(m, i); i++)
        if (machine_program(m, i)->g)
            tree_bind_givens(&m->tree[k], machine_program(m, i), tree_sums(&m->tree[k]));
    return true;
}

static void apply_updates(struct machine *m) {
    for (int i = 0; i < m->n_updates; i++) {
        const struct run_update *u = &m->update[i];
        bool go = true;
        if (u->condition >= 0) m->dev->copy_out(&go, program_value(&m->step, u->condition), sizeof go);
        if (go)
            m->dev->copy(u->target->memory, program_value(&m->step, u->value),
                         base_spec_bytes(&u->target->spec));
    }
}

bool machine_step(struct machine *m, uint64_t seed, int64_t number, struct tri_fault *fault) {
    struct program_step step = {.seed = seed, .step = number, .fault = fault};
    const struct compilation *c = &m->compilation;
    for (int i = 0; i < m->n_scalars; i++)
        m->dev->copy_in(m->scalar[i].memory, &m->scalar[i].value, sizeof(float));
    if (c->count[0] && !run_lanes_of(m, 0, &step)) return false;
    if (c->pre && !program_run(&m->pre, m->team, &step)) return false;
    if (c->lane[0] && !run_lanes_of(m, 1, &step)) return false;
    if (!program_run(&m->step, m->team, &step)) return false;
    for (int i = 0; i < m->n_outputs; i++)
        if (m->output[i].tensor) m->output[i].memory = program_value(&m->step, m->output[i].tensor->id);
    apply_updates(m);
    return true;
}
