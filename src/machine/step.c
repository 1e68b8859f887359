/* SPDX-License-Identifier: Apache-2.0
 * One step by one process: runs the phases in order. This is the reference for what a step
 * computes; steps by several processes (src/run) must give the same bits. */
#include "machine/machine.h"

#include <pthread.h>
#include <time.h>

#include "crew/spans.h"

int machine_lane_size(const struct machine *m, int64_t lane) {
    return lane_samples(m->batch, m->lanes, lane) != m->compilation.samples[0];
}

struct program *machine_lane_program(const struct machine *m, struct machine_thread *w, int k,
                                     int64_t lane) {
    return &(k ? w->lane : w->count)[machine_lane_size(m, lane)];
}

void machine_bind_tops(struct machine *m, int k) {
    for (int i = 0; machine_program(m, i); i++)
        if (machine_program(m, i)->g) tree_bind_tops(&m->tree[k], machine_program(m, i));
}

/* Phase count or lane, for all lanes. */
struct lanes_run {
    struct machine *m;
    int k; /* 0: count, 1: lane */
    struct program_step step;
    uint32_t number;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t changed;
    uint64_t changes; /* lanes or legs that are over */
    int64_t failed_lane;
    struct tri_fault *fault; /* of the lowest lane that failed, whatever the order of threads */
};

/* A lane's rows follow those of the lanes before it. A row is of one sample, or of a group of
 * them. */
void machine_collect_rows(struct machine *m, const struct program *p, int leg, int64_t lane) {
    int64_t large = 0; /* earlier lanes of the first size */
    while (large < lane && !machine_lane_size(m, large)) large++;
    for (int i = 0; i < m->n_outputs; i++) {
        struct run_output *o = &m->output[i];
        if (o->tensor) continue;
        const tri_tensor *t = graph_output_find(p->g, o->name)->tensor;
        if (p->g->legs && t->node->leg != leg) continue;
        size_t at = (size_t)large * o->lane_bytes[0] + (size_t)(lane - large) * o->lane_bytes[1];
        dev_copy(m->dev, (char *)o->memory + at, program_value(p, t->id),
                 base_spec_bytes(&t->spec));
    }
}

/* False: it failed, see the fault, or (*busy) no slot is free. */
static bool run_lane(struct lanes_run *s, const struct tree_thread *h, int leg, int lane,
                     struct program_step *step, bool *busy) {
    struct machine *m = s->m;
    struct program *p = machine_lane_program(m, &m->thread[h->local], s->k, lane);
    struct tree_lane l = {.tree = &m->tree[s->k], .who = *h, .lane = lane, .leg = leg,
                          .size = machine_lane_size(m, lane), .p = p, .step = step};
    const int64_t began = spend_is_recorded() ? base_now() : 0;
    if (began) spend_lane(lane, p->g->legs ? leg : -1);
    step->sample = lane_first(m->batch, m->lanes, lane);
    machine_bind_rows(m, p, NULL, step->sample);
    *busy = !tree_begin(&l);
    if (*busy) {
        board_release(tree_board(l.tree, leg), h->step, h->thread, lane);
        return false;
    }
    bool done = program_run(p, NULL, step);
    if (done && s->k == 1 && !finite_lane(m, p)) {
        finite_explain(m, p, 0, lane, step);
        done = false;
    }
    if (!done) {
        tree_drop(&l, true);
        return false;
    }
    if (s->k == 1) machine_collect_rows(m, p, leg, lane);
    tree_end(&l, true);
    if (began) spend_around(SPAN_LANE, began, base_now());
    if (began) spend_lane(-1, -1);
    return true;
}

static void keep_fault(struct lanes_run *s, int64_t lane, const struct tri_fault *fault) {
    pthread_mutex_lock(&s->mutex);
    if (!s->fault->failed || lane < s->failed_lane) {
        *s->fault = *fault;
        s->failed_lane = lane;
    }
    pthread_mutex_unlock(&s->mutex);
}

#define LATER 2000000 /* nanoseconds */

/* Waits for a change since there were so many. busy: or a little, as another thread that found no
 * slot either may have held one for a moment. */
static void wait_for_change(struct lanes_run *s, uint64_t changes, bool busy) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LATER;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    const bool legs = s->k && s->m->pipeline.tracks;
    const enum spent was = spend(busy ? SPENT_WAIT_SLOTS : legs ? SPENT_WAIT_LEGS
                                                                : SPENT_WAIT_LANES);
    pthread_mutex_lock(&s->mutex);
    if (busy && s->changes == changes) pthread_cond_timedwait(&s->changed, &s->mutex, &until);
    while (!busy && s->changes == changes) pthread_cond_wait(&s->changed, &s->mutex);
    pthread_mutex_unlock(&s->mutex);
    spend(was);
}

static uint64_t change(struct lanes_run *s, int by) {
    pthread_mutex_lock(&s->mutex);
    uint64_t changes = s->changes += (uint64_t)by;
    if (by) pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->mutex);
    return changes;
}

/* The lane; below 0: as machine_claim_leg. */
static int claim(struct lanes_run *s, const struct tree_thread *h, int *leg) {
    struct machine *m = s->m;
    const struct pipeline_claimer c = {.who = *h, .number = h->local, .all = m->n_threads};
    *leg = 0;
    if (s->k && m->pipeline.tracks) return machine_claim_leg(m, &c, leg);
    int lane = board_claim_lane(tree_board(&m->tree[s->k], 0), h->step, h->thread);
    return lane < 0 ? PIPELINE_OVER : lane;
}

/* Lanes are computed even after one has failed. */
static void claim_lanes(void *arg, int thread) {
    struct lanes_run *s = arg;
    struct tri_fault fault = {0};
    struct program_step step = s->step;
    struct tree_thread h = {s->number, thread, thread};
    if (thread >= s->m->n_threads) return;
    step.fault = &fault;
    spend(SPENT_COMPUTE);
    for (int lane = 0, leg; lane != PIPELINE_OVER;) {
        uint64_t changes = change(s, 0);
        bool busy = false;
        lane = claim(s, &h, &leg);
        fault.failed = false;
        if (lane >= 0 && !run_lane(s, &h, leg, lane, &step, &busy) && !busy)
            keep_fault(s, lane, &fault);
        if (lane >= 0 && !busy) change(s, 1);
        else if (lane != PIPELINE_OVER) wait_for_change(s, changes, busy);
    }
}

/* Runs a phase for all lanes, and binds the sums to the programs that read them. */
static bool run_lanes(struct machine *m, int k, const struct program_step *step) {
    struct lanes_run s = {.m = m, .k = k, .step = *step, .number = m->round, .fault = step->fault};
    pthread_mutex_init(&s.mutex, NULL);
    pthread_cond_init(&s.changed, NULL);
    tree_clear(&m->tree[k]);
    team_run(m->n_threads > 1 ? m->team : NULL, claim_lanes, &s);
    pthread_cond_destroy(&s.changed);
    pthread_mutex_destroy(&s.mutex);
    if (step->fault->failed) return false;
    machine_bind_tops(m, k);
    return true;
}

void machine_apply_update(const struct machine *m, int i) {
    const struct run_update *u = &m->update[i];
    bool go = true;
    if (u->condition >= 0)
        dev_copy_out(m->dev, &go, program_value(&m->step, u->condition), sizeof go);
    if (go)
        dev_copy(m->dev, u->target->memory, program_value(&m->step, u->value),
                 base_spec_bytes(&u->target->spec));
}

void machine_set_scalars(const struct machine *m) {
    for (int i = 0; i < m->n_scalars; i++)
        dev_copy_in(m->dev, m->scalar[i].memory, &m->scalar[i].value, sizeof(float));
}

void machine_find_outputs(struct machine *m) {
    for (int i = 0; i < m->n_outputs; i++)
        if (m->output[i].tensor)
            m->output[i].memory = program_value(&m->step, m->output[i].tensor->id);
}

bool machine_step(struct machine *m, uint64_t seed, int64_t number, struct tri_fault *fault) {
    struct program_step step = {.seed = seed, .step = number, .fault = fault};
    const struct compilation *c = &m->compilation;
    m->round++;
    machine_set_scalars(m);
    if (c->count[0] && !run_lanes(m, 0, &step)) return false;
    if (c->pre && !program_run(&m->pre, m->team, &step)) return false;
    if (c->lane[0] && !run_lanes(m, 1, &step)) return false;
    m->updating = true;
    if (c->lane[0]) spend(SPENT_UPDATE);
    if (!program_run(&m->step, m->team, &step)) {
        m->updating = fault->failed;
        if (!fault->failed) finite_explain(m, &m->step, 0, m->lanes > 1 ? -1 : 0, &step);
        return false;
    }
    machine_find_outputs(m);
    for (int i = 0; i < m->n_updates; i++) machine_apply_update(m, i);
    m->updating = false;
    return true;
}
