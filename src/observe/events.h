/* SPDX-License-Identifier: Apache-2.0
 * --on-event: a command of the user's that is started when something happens to a run. Nothing waits for it but
 * the end of the run, and that not for long; what it says goes to stderr, and how it ends is told only if that is
 * a failure, which harms nothing. What happened stands in its environment:
 *
 *     TRIREME_EVENT    stall         a worker makes no progress, or all wait for each other
 *                      death         a worker has died
 *                      save-failure  a checkpoint could not be written
 *                      end           the run has ended
 *     TRIREME_OUT      the run's directory, absolute
 *     TRIREME_STEP     steps done
 *     TRIREME_WORKER   which it was, where it was one
 *     TRIREME_CODE     the exit code; of end alone
 *     TRIREME_MESSAGE  what was told of it, one line */
#ifndef OBSERVE_EVENTS_H
#define OBSERVE_EVENTS_H

#include "base/base.h"

struct event {
    const char *name, *message;
    int worker; /* -1: none */
    int64_t step;
    int code; /* -1: none */
};

struct events; /* null: there is no command, and nothing happens in what follows */

/* command null: *e too. out: the run's directory; log: its file for logs. Both may be null. */
tri_status events_open(const char *command, const char *out, const char *log, struct events **e);
/* Starts the command, unless too many of them run. What fails is told. */
void events_tell(struct events *e, const struct event *what);
/* Waits a while for those that run. Then tells the last of all, which is nullable, and waits a while for that. */
void events_close(struct events *e, const struct event *end);

#endif
