/* SPDX-License-Identifier: Apache-2.0
 * The processes that a launcher starts on one host: the first becomes the agent, on the cores of
 * all; the others wait for it and end with its exit code. They meet at a socket in the kernel's
 * memory, which leaves no file. */
#ifndef LAUNCH_SIBLINGS_H
#define LAUNCH_SIBLINGS_H

#include "launch/given.h"

/* Returns what the first one's siblings_end says. A failure has been reported. */
int siblings_wait(const struct given *g);

/* In the first one. */
struct siblings {
    int listener, n;
    uint64_t command; /* of this process's words */
    bool differs;     /* those of another one */
    int fd[1024];
};
/* Waits for the others, takes their cores, too, and says if some do not come. */
tri_status siblings_gather(const struct given *g, struct siblings *s);
void siblings_end(struct siblings *s, int code);

#endif
