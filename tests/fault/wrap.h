/* SPDX-License-Identifier: Apache-2.0
 * Calls that can fail, made to fail one at a time. The linker's --wrap sends the library's calls of
 * the functions of wrap.c through here; those of other libraries are let alone. */
#ifndef FAULT_WRAP_H
#define FAULT_WRAP_H

#include <stdbool.h>

/* Counts calls from now on; the k-th fails (0: none). Reads and writes are cut short now and then,
 * as the system may. */
void wrap_arm(long k);
/* Ends that and gives the number of calls. */
long wrap_disarm(void);
/* The function whose call failed since the last wrap_arm; null: none did. */
const char *wrap_failed(void);

/* What has been taken and not been given back while armed: allocations, files, oneDNN's objects. */
struct wrap_held {
    long memory, files, objects;
};
/* Blocks of memory that were taken since wrap_arm, given back or not. */
long wrap_taken(void);
struct wrap_held wrap_held(void);

#endif
