/* SPDX-License-Identifier: Apache-2.0 */
#include "run/follow.h"

#include "run/checkpointer.h"
#include "run/diverge.h"
#include "run/policy.h"

void follow_step(tri_run *run, void (*record)(tri_run *run)) {
    diverge_warn(run);
    record(run);
    policy_step(run->policy, run);
    checkpointer_step(run->checkpointer, run);
    policy_publish(run->policy, run);
}
