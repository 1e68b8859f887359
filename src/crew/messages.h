/* SPDX-License-Identifier: Apache-2.0
 * What agents and runs of one process tell the user alike. */
#ifndef CREW_MESSAGES_H
#define CREW_MESSAGES_H

#define RUN_ENDS_SOON "the run ends after the current step (again: at once)"
#define RUN_IS_UNREAD \
    "the reader of stdout or stderr has gone; the run ends after the current step"
#define CREW_LESS_MEMORY \
    "a smaller --batch, --recompute or --amp O1 need less; `trireme memory -n N` prints the plan"

#endif
