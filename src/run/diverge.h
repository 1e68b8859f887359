/* SPDX-License-Identifier: Apache-2.0
 * What a run does about a loss, gradients or parameters that are not finite (--on-nan). */
#ifndef RUN_DIVERGE_H
#define RUN_DIVERGE_H

#include "run/run.h"

/* Whether the run may go on after step `done`: a failure, with "stop", if updates are skipped without
 * end or a checkpoint would have had a parameter that is not finite. */
tri_status diverge_check(const tri_run *run, int64_t done, int skips);
/* With "warn", the line when it begins. */
void diverge_warn(tri_run *run);

#endif
