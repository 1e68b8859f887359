/* SPDX-License-Identifier: Apache-2.0
 * The tasks of a step's own program, which the threads of several processes run together. A word
 * for each task (crew/claim.h) says who runs it and how many of its parts are done.
 *
 * A task that writes where it does not read can simply be run again. One that works in place
 * goes part by part: it saves the part's values in its thread's undo record, computes the part,
 * and then counts it in the task's word. A record is valid only for the part that its task's
 * word says is next, so a death leaves nothing half done. */
#ifndef CREW_TASKS_H
#define CREW_TASKS_H

#include "crew/claim.h"

#define UNDO_RANGES 16
#define TASKS_MOST_PARTS 255 /* of a task that works in place */

/* Followed by the values of the ranges, in their order. */
struct undo {
    _Atomic uint64_t of; /* the step, task and part that it belongs to; see tasks.c */
    int n;
    struct {
        uint64_t at, bytes; /* at: from the begin of the store */
    } range[UNDO_RANGES];
};

/* A thread's view of the tasks of one program. */
struct tasks {
    uint32_t step;
    int thread, rank, ranks;
    claim_word *word;
    int first; /* the index of the program's task 0 among those of all programs */
    struct undo *undo; /* the thread's record */
    char *base; /* of the store in this process */
};

/* Claims one of the tasks from `begin` up to `end`: the next of the thread's own block, else
 * another's last. -1: none is free. held->value: how many of its parts are done. */
int tasks_claim(const struct tasks *t, int begin, int end, struct claim *held);
/* Before a part is computed in place: saves the values it will write, range by range. */
void tasks_save_begin(const struct tasks *t);
char *tasks_save(const struct tasks *t, const void *at, size_t bytes); /* where to copy them */
void tasks_save_end(const struct tasks *t, int task, const struct claim *held);
/* The part is computed. False: the thread was declared dead, and must not go on with the task. */
bool tasks_advance(const struct tasks *t, int task, struct claim *held);
void tasks_done(const struct tasks *t, int task, const struct claim *held);

/* Whether a task is free. */
bool tasks_wait(claim_word *word, int begin, int end, uint32_t step);
/* Whether all tasks are done. *from: how far that was found before. */
bool tasks_complete(claim_word *word, int begin, int end, uint32_t step, int *from);
/* Whether nobody has begun any of them. */
bool tasks_untouched(claim_word *word, int begin, int end, uint32_t step);

/* Frees what a dead thread had claimed of all programs' tasks, and undoes the part it was
 * computing. May be interrupted and run again. */
void tasks_recover(claim_word *word, int n_tasks, int thread, const struct undo *undo, char *base);

#endif
