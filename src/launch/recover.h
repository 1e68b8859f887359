/* SPDX-License-Identifier: Apache-2.0
 * The agent's view of the store, and how it frees what dead workers have claimed. */
#ifndef LAUNCH_RECOVER_H
#define LAUNCH_RECOVER_H

#include "crew/tasks.h"
#include "crew/view.h"
#include "observe/log.h"

struct recovery {
    struct view view;
    double *slowest; /* by item, see recovery_slowest */
};

/* Maps the store, once the reporter has laid it out. */
tri_status recovery_map(struct recovery *r);
void recovery_unmap(struct recovery *r);
/* Frees what the threads of a worker hold that is dead for certain. */
void recovery_of(struct recovery *r, int place);
/* Frees the samples that a worker was reading, once its process is gone. Its threads that read
 * ahead outlive the deaths of those that compute, which recovery_of follows. */
void recovery_of_samples(struct recovery *r, int place);
/* The operator's name of an item in the store's table. */
const char *recovery_name(const struct recovery *r, int item);
/* Logs the words of the boards and of the update's tasks, for debugging. */
void recovery_log(const struct recovery *r, struct log *log);
/* Of a board in this shape and phase, the leg whose lanes are claimed there; -1: none. */
int recovery_leg(const struct recovery *r, int shape, int phase, int bucket);
/* The longest time that this operator has been seen to take, in seconds; 0 if it has always been
 * shorter than the time between two looks at it. Null: it has none. */
double *recovery_slowest(const struct recovery *r, int item);

#endif
