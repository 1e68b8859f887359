/* SPDX-License-Identifier: Apache-2.0
 * Options that ask for what holds without them. They count as not given: a program that writes a
 * default into its code can still be run with options, or a plan, that leave it no effect. */
#ifndef PLAN_DEFAULTS_H
#define PLAN_DEFAULTS_H

#include "trireme.h"

#define DEFAULT_BUCKET (4 << 20)

void defaults_forget(tri_options *o);
/* Sets what `o` leaves open as in `before`, which it was copied to before defaults_forget. */
void defaults_restore(tri_options *o, const tri_options *before);

#endif
