/* SPDX-License-Identifier: Apache-2.0
 * Starts an agent on each host of a run: directly on this machine, elsewhere by ssh or another
 * command. The agent connects to the coordinator, which tells it what to run. A probe is started in
 * the same way, before a run. */
#ifndef LAUNCH_STARTER_H
#define LAUNCH_STARTER_H

#include <sys/types.h>

#include "launch/agent.h"

#define STARTER_KEY 64 /* digits of a key */

struct starter {
    const struct launch *launch;
    const char *here; /* a name that means this machine, beside its own; nullable */
    char program[4096];          /* this one: it has the same path on all hosts */
    char key[STARTER_KEY + 1];   /* in hexadecimal digits; agents read it from their stdin */
};

tri_status starter_open(const struct launch *l, const uint8_t key[32], struct starter *s);
void starter_close(struct starter *s); /* forgets the key */
/* Starts the agent of a host; address: of the coordinator, as the host reaches it. */
tri_status starter_start(const struct starter *s, const char *host, const char *address,
                         pid_t *pid);
/* Starts `trireme probe` on a host. *to leads to its stdin; what it and ssh write on stdout and
 * stderr comes from *from. Both are to be closed, also if it fails, unless they are -1. */
tri_status starter_probe(const struct starter *s, const char *host, int *to, int *from, pid_t *pid);
/* The address of this machine by which the host reaches it: of `interface` (a name or an address;
 * nullable), or of the network that leads to the host. Numeric, never a loopback address. */
tri_status starter_address(const char *host, const char *interface, char text[64]);
/* The same for a host of the list, also if it is this machine. */
struct host_list;
tri_status starter_address_for(const struct host_list *list, int host, const char *interface,
                               char text[64]);

#endif
