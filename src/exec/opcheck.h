/* SPDX-License-Identifier: Apache-2.0
 * What tri_op_check does, with an account of it. */
#ifndef EXEC_OPCHECK_H
#define EXEC_OPCHECK_H

#include "base/base.h"

struct opcheck_report {
    int examples;
    int derivatives[2]; /* examples whose first, second derivatives were compared */
    int splits;         /* factors along which an example was split */
};

tri_status opcheck_run(const tri_op *op, const char *device, struct opcheck_report *report);

#endif
