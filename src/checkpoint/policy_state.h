/* SPDX-License-Identifier: Apache-2.0
 * The evaluation policy's state, which a resumed run continues from. */
#ifndef CHECKPOINT_JUDGED_H
#define CHECKPOINT_JUDGED_H

#include <stdint.h>

struct policy_state {
    int64_t step;      /* of the last evaluation that counts; 0: none */
    int64_t best_step; /* 0: no evaluation was an improvement yet */
    int64_t no_better; /* consecutive evaluations since then */
    double best;
};

#endif
