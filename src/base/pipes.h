/* SPDX-License-Identifier: Apache-2.0
 * Pipes that nobody reads any more. While they are held, a write to one fails with EPIPE and does
 * not kill the process. A handler sees to that, not SIG_IGN, which the program's own commands would
 * inherit. If the program handles SIGPIPE itself, that stays, and pipes_closed is always false. */
#ifndef BASE_PIPES_H
#define BASE_PIPES_H

#include <stdbool.h>

/* They may be held several times. With the last release SIGPIPE is what it was before, and what
 * stdout still keeps for a reader that is gone is dropped, as writing it at exit would kill. */
void pipes_hold(void);
void pipes_release(void);
/* Whether a write has failed since they are held and nobody reads stdout, or stderr. */
bool pipes_closed(void);

#endif
