/* SPDX-License-Identifier: Apache-2.0
 * The step's own program, run by the hands of several processes together. Its items are put into
 * sweeps: what is in one touches nothing that another of it writes, so a step is as many sweeps as the
 * update has reductions one behind the other (SGD and Adam few, clipping and LAMB more), and the scalars
 * and the decision to skip are settled before anything is changed. A sweep is cut into tasks, which
 * hands draw by one swap each.
 *
 * A task that writes where it does not read can be done again. One that works in place goes part by
 * part: the part's values are saved in its hand's undo record, the part is computed, the task's word
 * tells that it is done. A record counts only for the part that its task's word says is next: so a
 * death leaves nothing half done, wherever it strikes. */
#ifndef MACHINE_SWEEP_H
#define MACHINE_SWEEP_H

#include "crew/board.h"
#include "machine/program.h"

#define UNDO_RANGES 16

/* Followed by the values of the ranges, one behind the other. */
struct undo {
    _Atomic uint64_t of; /* step, task and part that it is of; see sweep.c */
    int n;
    struct {
        uint64_t at, bytes; /* from the store's begin */
    } range[UNDO_RANGES];
};

/* What is not an item of the program. */
enum { TASK_UPDATE = -1, TASK_COMMIT = -2, TASK_GUARD = -3 };

struct task {
    int item;       /* or TASK_… */
    int update;     /* of TASK_UPDATE: which */
    int64_t part;   /* the first, of both rounds' */
    int parts;
    bool in_place;
};

/* This process's own view of it. */
struct sweeps {
    const struct program *p;
    struct task *task;
    int n_tasks;
    int *end; /* by sweep: the task behind its last */
    int n;
    int guarded; /* tasks before this one leave the store as it is */
    int first; /* the number of its task 0 among those of all programs: words, and undo records' names */
    size_t undo_bytes; /* of one hand's record, with its values */
};

/* The machine's results that are not made in their target's place: value to target. */
struct sweep_copy {
    const void *value;
    void *target;
    size_t bytes;
    const void *condition; /* a bool; null: always */
};

/* The loss, which is looked at before anything writes to the store. */
struct sweep_guard {
    const tri_tensor *loss;
    const void *store;
    size_t bytes;
};

/* The program has been placed, and all is bound but what lies in the tree's slots, which is only read.
 * hands: of all processes, for the size of tasks. first: tasks of the programs before. With copies (not null,
 * there may be none) a commit comes last. guard: nullable; the program was made with PROGRAM_GATE. */
tri_status sweeps_make(const struct program *p, const struct sweep_copy *copy, int copies, int all_threads,
                       int first, const struct sweep_guard *guard, struct sweeps *out);
void sweeps_free(struct sweeps *s);

/* A hand's part in it. */
struct sweep_thread {
    uint32_t step;
    int thread, rank, ranks;
    int local; /* thread of this process */
    board_cell *word; /* of the tasks, from the program's first on */
    struct undo *undo;
    char *base; /* of the store in this process */
};

/* Claims a task of the sweep: the next of its own block, else another's last. -1: there is none.
 * *part: how many of its parts are done already. */
int sweep_draw(const struct sweeps *s, int sweep, const struct sweep_thread *h, int64_t *part);
/* Runs the program's parts of a task that it has claimed, from `part` on. False: an operator failed. */
bool sweep_run(const struct sweeps *s, int task, int64_t part, const struct sweep_thread *h,
               const struct program_step *step);
void sweep_done(int task, const struct sweep_thread *h);
/* Whether a task of it waits for somebody. */
bool sweep_waits(const struct sweeps *s, int sweep, const board_cell *word, uint32_t step);
/* Whether all tasks of the sweep are done; *from: up to where that was found before. */
bool sweep_complete(const struct sweeps *s, int sweep, const board_cell *word, uint32_t step, int *from);

/* Gives back what a dead hand had claimed of all programs' tasks, and undoes the part that it was at. */
void sweep_recover(board_cell *word, int n_tasks, int thread, struct undo *undo, char *base);

#endif
