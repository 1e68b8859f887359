/* SPDX-License-Identifier: Apache-2.0
 * The files of an earlier run in the directory of a run. They get a number, all the same, before
 * anything is written: metrics.jsonl becomes metrics.1.jsonl, worker-0.log worker-0.1.log, profile/
 * profile.1/. A run that continues the earlier one, which is known later, gives them their names
 * back. */
#ifndef OBSERVE_EARLIER_H
#define OBSERVE_EARLIER_H

#include <stdio.h>

#include "base/base.h"

/* Gives the files the number after the largest that any has. *number: 0: there were none. Refuses,
 * and renames nothing, while another run writes there. agent: agent.json is not looked at, as the
 * caller has locked it. */
tri_status earlier_move(const char *directory, bool agent, int *number);
/* Says so, if there are results among them. */
void earlier_tell(const char *directory, int number, FILE *to);
/* Undoes that for the run that is continued: the one with the largest number, of those with the
 * same directory of checkpoints. Others are of other runs, or of attempts that failed at the start.
 * number: as earlier_move has returned it. *found: there is one. If a file has been begun
 * meanwhile, the earlier one goes before it, as NAME.old. If another process has done it, nothing
 * is left to do. */
tri_status earlier_restore(const char *directory, int number, const char *checkpoints,
                           bool *found);

/* Locks the directory, so that the hosts of a run that share it come one after the other. -1 with a
 * message. Closing the descriptor unlocks it. */
int earlier_lock(const char *directory);

#endif
