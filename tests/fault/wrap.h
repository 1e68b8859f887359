/* SPDX-License-Identifier: Apache-2.0
 * Makes calls that can fail do so, one at a time. With the linker's --wrap the library's calls of
 * the functions in wrap.c go through here; those of other libraries do not. */
#ifndef FAULT_WRAP_H
#define FAULT_WRAP_H

#include <stdbool.h>

/* Counts calls from now on; the k-th fails (0: none). Reads and writes are sometimes cut short, as
 * the system may do. */
void wrap_arm(long k);
/* Ends that and returns the number of calls. */
long wrap_disarm(void);
/* Whether the k-th call since wrap_arm(0) was the first with its stack. Ask for every k from 1
 * on. */
bool wrap_is_first(long k);
/* The function whose call failed since the last wrap_arm; null: none. */
const char *wrap_failed(void);

/* The number of objects acquired while armed and not released: allocations, files, oneDNN's
 * objects. */
struct wrap_held {
    long memory, files, objects;
};
/* The number of allocations since wrap_arm, freed or not. */
long wrap_taken(void);
struct wrap_held wrap_held(void);

#endif
