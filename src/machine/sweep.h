/* SPDX-License-Identifier: Apache-2.0
 * The step's own program, cut into tasks that the threads of several processes run together
 * (crew/tasks.h). The program's items are put into sweeps: what is in one sweep touches nothing
 * that another item of it writes. So a step takes as many sweeps as its update has reductions
 * that depend on one another (SGD and Adam few, clipping and LAMB more), and the scalars and the
 * decision to skip are settled before anything changes. */
#ifndef MACHINE_SWEEP_H
#define MACHINE_SWEEP_H

#include "crew/tasks.h"
#include "machine/program.h"

/* Tasks that are not items of the program. */
enum { TASK_UPDATE = -1, TASK_COMMIT = -2, TASK_GUARD = -3 };

struct task {
    int item;     /* or TASK_… */
    int update;   /* of TASK_UPDATE: which */
    int64_t part; /* the first, counted over both rounds */
    int parts;
    bool in_place;
};

struct sweeps {
    const struct program *p;
    struct task *task;
    int n_tasks;
    int *end; /* by sweep: the index after its last task */
    int n;
    int guarded; /* tasks before this one leave the store as it is */
    int first; /* the index of its task 0 among those of all programs */
    size_t undo_bytes; /* of one thread's undo record, with its values */
};

/* A result that is not computed in its target's memory. */
struct sweep_copy {
    const void *value;
    void *target;
    size_t bytes;
    const void *condition; /* a bool; null: always */
};

/* The loss, which is checked before anything writes to the store. */
struct sweep_guard {
    const tri_tensor *loss;
    const void *store;
    size_t bytes;
};

/* The program has been placed, and all is bound but the contents of the tree's slots, which it
 * only reads. all_threads: of all processes, for the size of tasks. first: how many tasks the
 * programs before have. With copies (not null, but there may be none) a commit comes last.
 * guard: nullable; the program was made with PROGRAM_GATE. */
tri_status sweeps_make(const struct program *p, const struct sweep_copy *copy, int copies,
                       int all_threads, int first, const struct sweep_guard *guard,
                       struct sweeps *out);
void sweeps_free(struct sweeps *s);

/* The index of a sweep's first task. */
static inline int sweep_begin(const struct sweeps *s, int sweep) {
    return sweep ? s->end[sweep - 1] : 0;
}

/* Runs the parts that are left of a claimed task, on a thread of this process. False: an
 * operator failed, or the thread was declared dead. */
bool sweep_run(const struct sweeps *s, int task, struct claim *held, const struct tasks *t,
               int thread, const struct program_step *step);

#endif
