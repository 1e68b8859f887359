/* SPDX-License-Identifier: Apache-2.0
 * The agent's view of the store behind its head, and how what the dead have left is given back. */
#ifndef LAUNCH_RECOVER_H
#define LAUNCH_RECOVER_H

#include "crew/board.h"
#include "crew/head.h"
#include "machine/sweep.h"
#include "observe/log.h"

struct recovery {
    struct crew_head *head;
    int fd;
    char *base; /* null: there is no store yet */
    size_t bytes;
    struct lane_tree tree[CREW_MOST_SHAPES][2];
    struct board board[CREW_MOST_SHAPES][2]; /* by the shape of a step; they share their words */
};

/* Maps the store, once it has been founded. */
tri_status recovery_map(struct recovery *r);
void recovery_unmap(struct recovery *r);
/* All that the hands of a worker hold, which is dead for certain. */
void recovery_of(struct recovery *r, int place);
/* What a worker had begun to read, once its process is gone: its threads that read ahead are no hands, whose
 * deaths are seen sooner. */
void recovery_of_samples(struct recovery *r, int place);
/* The operator's name that an item of the store's table has. */
const char *recovery_name(const struct recovery *r, int item);
/* What the words of the boards and of the update's tasks say, for whoever looks for a mistake. */
void recovery_log(const struct recovery *r, struct log *log);
int64_t recovery_slowest(const struct recovery *r, int item);

#endif
