/* SPDX-License-Identifier: Apache-2.0
 * What the evaluations of a run have come to so far: it goes on from there. */
#ifndef CHECKPOINT_JUDGED_H
#define CHECKPOINT_JUDGED_H

#include <stdint.h>

struct policy_state {
    int64_t step;      /* of the last evaluation that counts; 0: there was none */
    int64_t best_step; /* 0: none was better than nothing yet */
    int64_t no_better; /* evaluations in succession since then */
    double best;
};

#endif
