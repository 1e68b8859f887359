/* SPDX-License-Identifier: Apache-2.0
 * The port on which the page is served. */
#ifndef PAGE_PORT_H
#define PAGE_PORT_H

#include "base/base.h"

/* A socket that listens; host null: on this machine alone. If the port is taken, the message says
 * by which process, as far as that can be seen, and which one is free. */
tri_status port_open(const char *host, int port, int *fd);

#endif
