/* SPDX-License-Identifier: Apache-2.0
 * --on-event: runs a command of the user's when something happens to a run. Only the end of the
 * run waits for it, for a limited time. Its output goes to stderr. If it fails, a message is
 * printed and the run continues. Its environment describes the event:
 *
 *     TRIREME_EVENT    stall         a worker makes no progress, or all wait for each other
 *                      death         a worker has died
 *                      save-failure  a checkpoint could not be written
 *                      host-lost     a host of the run takes no part any more
 *                      host-joined   it takes part again
 *                      end           the run has ended
 *     TRIREME_OUT      the run's directory, absolute
 *     TRIREME_STEP     steps done
 *     TRIREME_WORKER   the worker, if the event concerns one
 *     TRIREME_HOST     the host, if the event concerns one
 *     TRIREME_CODE     the exit code, for `end` only
 *     TRIREME_MESSAGE  the message that was printed, one line
 *
 * Of several hosts, the one that tells runs it for host-lost, host-joined and end. */
#ifndef OBSERVE_EVENTS_H
#define OBSERVE_EVENTS_H

#include "base/base.h"

struct event {
    const char *name, *message;
    int worker; /* -1: none */
    int64_t step;
    int code; /* -1: none */
    const char *host; /* null: none */
};

struct events; /* null if there is no command; the functions below then do nothing */

/* A null command makes *e null. out: the run's directory; log: its log file. Both may be null. */
tri_status events_open(const char *command, const char *out, const char *log, struct events **e);
/* Starts the command, unless too many are running. Failures are reported. */
void events_start(struct events *e, const struct event *what);
/* Waits for the running commands, for a limited time, then the same for the event `end`, if not
 * null. */
void events_close(struct events *e, const struct event *end);

#endif
