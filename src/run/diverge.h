/* SPDX-License-Identifier: Apache-2.0
 * What a run does if the loss, gradients or parameters are not finite (--on-nan). */
#ifndef RUN_DIVERGE_H
#define RUN_DIVERGE_H

#include "run/run.h"

/* Fails after step `done`, with --on-nan stop, if too many consecutive updates were skipped, or a
 * checkpoint was not written because a parameter is not finite. */
tri_status diverge_check(const tri_run *run, int64_t done, int skips);
/* With --on-nan warn, prints a line when it begins. */
void diverge_warn(tri_run *run);
/* After the last step of a network with a loss, when no other step would meet a parameter that is
 * not finite: fails, or with --on-nan warn prints a line. */
tri_status diverge_end(const tri_run *run);

#endif
