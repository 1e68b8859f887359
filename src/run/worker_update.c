/* SPDX-License-Identifier: Apache-2.0
 * A worker's part in what is done once a step, before the lanes and behind them: tasks, sweep by sweep. */
#include <string.h>

#include "run/worker_inside.h"
#include "crew/layout.h"
#include "run/executables.h"

static void commit(struct crew *c) {
    const struct machine *m = c->run->machine;
    struct crew_head *h = c->head;
    int k = c->step % 2, n = 0;
    atomic_store(&h->values[k].step, 0);
    for (int i = 0; i < m->n_outputs && n < h->n_values; i++)
        if (!m->output[i].spec.shape.rank)
            h->values[k].value[n++] = machine_scalar_now(m, &m->output[i]);
    if (h->until_loss > 0 && !atomic_load(&h->reached) &&
        machine_scalar_now(m, machine_output(m, "loss")) <= h->until_loss) {
        atomic_store(&h->reached_at, crew_now());
        atomic_store(&h->reached, c->step);
    }
    h->values[k].skips = finite_skips_in_row(m, h->values[1 - k].skips);
    h->values[k].rate = h->rate;
    atomic_store(&h->values[k].step, c->step);
}

/* Nothing is written to the store before this returns. */
static void guard(struct crew_stage *s, int thread) {
    struct crew *c = s->c;
    struct machine *m = c->run->machine;
    if (finite_step(m)) return;
    finite_explain(m, &m->step, thread, m->lanes > 1 ? -1 : 0, &s->step);
    do {
        crew_fail_step(c, s->step.fault->text);
    } while (!crew_over(c));
}

static void run_task(struct crew_stage *s, int task, int64_t part, const struct sweep_hand *h) {
    struct crew *c = s->c;
    const struct sweeps *all = &c->now->sweeps[s->k];
    const struct task *t = &all->task[task];
    if (t->item >= 0) {
        crew_note(&c->oar[h->thread], CREW_AT_UPDATE, -1, c->now->first_name[4 + s->k] + t->item);
        sweep_run(all, task, part, h, &s->step);
    } else if (t->item == TASK_UPDATE) {
        const struct sweep_copy *copy = &c->now->copy[t->update];
        if (!copy->condition || *(const bool *)copy->condition)
            memcpy(copy->target, copy->value, copy->bytes);
    } else if (t->item == TASK_GUARD) {
        guard(s, h->thread);
    } else {
        commit(c);
    }
    sweep_done(task, h);
}

static bool sweep_changed(void *arg) {
    struct crew_stage *s = arg;
    const struct crew *c = s->c;
    const struct sweeps *all = &c->now->sweeps[s->k];
    const board_cell *word = c->task + all->first;
    uint32_t step = (uint32_t)c->step;
    return crew_over(c) || sweep_complete(all, s->sweep, word, step, &s->from) ||
           (!crew_leaves(s) && sweep_waits(all, s->sweep, word, step));
}

static void row_sweep(struct crew_stage *s, const struct sweep_hand *h) {
    struct crew *c = s->c;
    struct crew_oar *o = &c->oar[h->thread];
    const struct sweeps *all = &c->now->sweeps[s->k];
    s->from = 0;
    while (!crew_over(c)) {
        int64_t part, began = crew_now();
        int task = crew_leaves(s) ? -1 : sweep_draw(all, s->sweep, h, &part);
        if (task >= 0) {
            run_task(s, task, part, h);
            if (sweep_complete(all, s->sweep, h->word, h->step, &s->from)) /* the last one rings */
                crew_notify(c->head);
            crew_spend(&o->hand->reduce, began);
            continue;
        }
        if (sweep_complete(all, s->sweep, h->word, h->step, &s->from)) return;
        crew_note(o, CREW_AT_WAIT, -1, -1);
        crew_until_or(c->head, sweep_changed, s, crew_leaves(s) ? s->leaves : INT64_MAX, &o->hand->turns);
        crew_spend(&o->hand->wait, o->began);
    }
}

bool crew_is_between(const struct crew *c) {
    uint64_t opened = atomic_load(&c->head->opened);
    if (opened == atomic_load(&c->head->committed)) return true; /* there may have been no step yet */
    const struct sweeps *update = &c->part[shapes_at(c->run, (int64_t)opened) - c->run->shape].sweeps[1];
    for (int i = update->guarded; i < update->n_tasks; i++) {
        struct board_word w = board_unpack(atomic_load(&c->task[update->first + i]));
        if (w.step == (uint32_t)opened && (w.state != BOARD_FREE || w.argument)) return false;
    }
    return true;
}

void crew_row_sweeps(void *arg, int thread) {
    struct crew_stage s = *(struct crew_stage *)arg;
    struct crew *c = s.c;
    struct tri_fault fault = {0};
    struct sweep_hand h = {
        .step = (uint32_t)c->step, .hand = c->oar[thread].number, .thread = thread,
        .rank = crew_rank(c) * c->threads + thread, .ranks = crew_size(c) * c->threads,
        .word = c->task + c->now->sweeps[s.k].first, .undo = crew_undo(c->head, c->base, c->oar[thread].number),
        .base = c->base};
    s.step.fault = &fault;
    s.oar = &c->oar[thread];
    for (s.sweep = 0; s.sweep < c->now->sweeps[s.k].n && !crew_over(c); s.sweep++) row_sweep(&s, &h);
    crew_rest(&c->oar[thread]);
}
