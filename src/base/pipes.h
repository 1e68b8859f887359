/* SPDX-License-Identifier: Apache-2.0
 * Pipes whose reader is gone. While they are held, a write to such a pipe fails with EPIPE and does
 * not kill the process. A handler does this, not SIG_IGN, which child commands would inherit. A
 * SIGPIPE handler of the program's own stays, and pipes_closed is then always false. */
#ifndef BASE_PIPES_H
#define BASE_PIPES_H

#include <stdbool.h>

/* Calls nest. The last release restores SIGPIPE and drops what is still buffered for a stdout whose
 * reader is gone, since flushing it at exit would kill the process. */
void pipes_hold(void);
void pipes_release(void);
/* Whether a write failed since the hold and stdout or stderr has no reader. */
bool pipes_closed(void);

#endif
