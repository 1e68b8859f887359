/* SPDX-License-Identifier: Apache-2.0
 * A worker's part in the programs that run once per step, before and after the lanes: their tasks,
 * sweep by sweep. */
#include <math.h>
#include <string.h>

#include "run/executables.h"
#include "run/worker_inside.h"

static void commit(struct worker *c) {
    const struct machine *m = c->run->machine;
    struct crew_course *r = &c->head->course;
    int k = c->step % 2;
    double *value = worker_region(c, REGION_RESULTS, k), loss = NAN;
    const double until = c->head->asked.until_loss;
    atomic_store(&r->values[k].step, 0);
    for (int i = 0; i < m->n_outputs; i++) {
        if (m->output[i].spec.shape.rank) continue;
        value[i] = machine_scalar_now(m, &m->output[i]);
        if (!strcmp(m->output[i].name, "loss")) loss = value[i];
    }
    r->values[k].loss = loss;
    if (until > 0 && !atomic_load(&r->reached) && loss <= until) {
        atomic_store(&r->reached_at, base_now());
        atomic_store(&r->reached, c->step);
    }
    r->values[k].skips = finite_skips(m, r->values[1 - k].skips);
    r->values[k].rate = r->rate;
    atomic_store(&r->values[k].step, c->step);
}

/* Runs before all tasks that write to the store. Returns only if these may run, or the step is
 * over. */
static void guard(struct worker_stage *s, int thread) {
    struct worker *c = s->c;
    struct machine *m = c->run->machine;
    if (finite_step(m)) return;
    finite_explain(m, &m->step, thread, m->lanes > 1 ? -1 : 0, &s->step);
    do {
        worker_fail_step(c, s->step.fault->text);
    } while (!worker_over(c));
}

static void run_task(struct worker_stage *s, int task, struct claim *held, const struct tasks *view,
                     int thread) {
    struct worker *c = s->c;
    const struct sweeps *all = &c->current->sweeps[s->k];
    const struct task *t = &all->task[task];
    spend(SPENT_UPDATE);
    if (t->item >= 0) {
        worker_note(&c->context[thread], CREW_AT_UPDATE, -1,
                    c->current->first_name[4 + s->k] + t->item);
        sweep_run(all, task, held, view, thread, &s->step);
    } else if (t->item == TASK_UPDATE) {
        machine_apply_update(c->run->machine, t->update);
        dev_wait(c->run->dev);
    } else if (t->item == TASK_GUARD) {
        guard(s, thread);
    } else {
        commit(c);
    }
    tasks_done(view, task, held);
}

/* Of a task, by number in a run. */
static int item_at(const struct worker_stage *s, int task) {
    const struct sweeps *all = &s->c->current->sweeps[s->k];
    const int item = all->task[task].item;
    return item < 0 ? -1 : all->p->g->first_item - 1 + item;
}

static bool sweep_changed(void *arg) {
    struct worker_stage *s = arg;
    const struct worker *c = s->c;
    const struct sweeps *all = &c->current->sweeps[s->k];
    claim_word *word = worker_region(c, REGION_TASKS, all->first);
    uint32_t step = (uint32_t)c->step;
    int begin = sweep_begin(all, s->sweep), end = all->end[s->sweep];
    return worker_over(c) || tasks_complete(word, begin, end, step, &s->from) ||
           (!worker_defers(s) && tasks_wait(word, begin, end, step));
}

static void run_sweep(struct worker_stage *s, const struct tasks *view, int thread) {
    struct worker *c = s->c;
    struct thread_context *me = &c->context[thread];
    const struct sweeps *all = &c->current->sweeps[s->k];
    int begin = sweep_begin(all, s->sweep), end = all->end[s->sweep];
    s->from = 0;
    while (!worker_over(c)) {
        struct claim held;
        int task = worker_defers(s) ? -1 : tasks_claim(view, begin, end, &held);
        if (task >= 0) {
            run_task(s, task, &held, view, thread);
            if (tasks_complete(view->word, begin, end, view->step, &s->from)) crew_notify(c->head);
            continue;
        }
        if (tasks_complete(view->word, begin, end, view->step, &s->from)) return;
        worker_note_wait(me, CREW_FOR_TASKS, all->first + begin);
        if (spend_is_recorded())
            spend_whom(claim_read(&view->word[s->from]).owner, item_at(s, s->from));
        crew_wait_until(c->head, sweep_changed, s, worker_defers(s) ? s->defers : INT64_MAX,
                      &me->shared->heartbeat);
    }
}

bool worker_is_between(const struct worker *c) {
    uint64_t opened = atomic_load(&c->head->course.opened);
    if (opened == atomic_load(&c->head->course.committed)) return true; /* or no step is open yet */
    const struct machine *m = executables_at(c->run, (int64_t)opened);
    const struct sweeps *update = &c->executable[m - c->run->executable].sweeps[1];
    return tasks_untouched(worker_region(c, REGION_TASKS, update->first), update->guarded,
                           update->n_tasks, (uint32_t)opened);
}

void worker_run_sweeps(void *arg, int thread) {
    struct worker_stage s = *(struct worker_stage *)arg;
    struct worker *c = s.c;
    struct tri_fault fault = {0};
    const struct sweeps *all = &c->current->sweeps[s.k];
    const struct tasks view = {.step = (uint32_t)c->step,
                               .thread = c->context[thread].number,
                               .rank = worker_rank(c) * c->threads + thread,
                               .ranks = worker_size(c) * c->threads,
                               .word = worker_region(c, REGION_TASKS, all->first),
                               .first = all->first,
                               .undo = worker_region(c, REGION_UNDO, c->context[thread].number),
                               .base = c->base};
    s.step.fault = &fault;
    s.context = &c->context[thread];
    for (s.sweep = 0; s.sweep < all->n && !worker_over(c); s.sweep++) run_sweep(&s, &view, thread);
    worker_rest(&c->context[thread]);
}
