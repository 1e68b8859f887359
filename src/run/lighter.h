/* SPDX-License-Identifier: Apache-2.0
 * With which options a run would need less memory. */
#ifndef RUN_LIGHTER_H
#define RUN_LIGHTER_H

#include "run/run.h"

#define LIGHTER_MOST 16

struct lighter {
    char words[48]; /* "--lanes 1" */
    size_t needs;   /* bytes of the run with them instead of its own */
    bool other_bits;
};

/* Those that help, and of these first what changes no bit. Of a number, such as that of lanes, the
 * nearest is taken with which the run fits the limit, or else the one that needs least. Returns how
 * many there are; an option that the run does not allow is left out. */
int lighter_options(tri_run *own, size_t limit, struct lighter out[LIGHTER_MOST]);

#endif
