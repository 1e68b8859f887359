/* SPDX-License-Identifier: Apache-2.0
 * A worker whose code is killed by SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT says first what it was at: a
 * line "crash" in worker-K.log, and the same line with a trace of its calls in worker-K.out. Then it dies
 * of the same signal. A signal that has a handler already, of the user's program or of a sanitizer, is
 * left to it. Handlers belong to the process, and so does the one worker that may be in it. */
#ifndef EXEC_CREW_CRASH_H
#define EXEC_CREW_CRASH_H

struct crew;
struct crew_oar;

void crew_crash_begin(struct crew *c);
void crew_crash_end(struct crew *c);
/* The calling thread is this hand: it gets a stack for the handler, as its own may be full. */
void crew_crash_thread(struct crew_oar *o);
void crew_crash_thread_end(struct crew_oar *o);

#endif
