/* SPDX-License-Identifier: Apache-2.0
 * The files of the folder strategies/, as text. scripts/ready.py makes them part of the library. */
#ifndef PLAN_READY_H
#define PLAN_READY_H

struct strategy_ready {
    const char *name, *text;
};
extern const struct strategy_ready strategies_ready[]; /* ends with a null name */

#endif
