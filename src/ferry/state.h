/* SPDX-License-Identifier: Apache-2.0
 * The state that a step leaves, in pieces, for a host that joins: values, and what a teller must
 * know of the step. */
#ifndef FERRY_STATE_H
#define FERRY_STATE_H

#include "crew/view.h"

#define STATE_PIECE (UINT64_C(4) << 20) /* bytes of a piece, but the last of each part */

/* False: there are not so many pieces. */
bool state_piece(const struct view *v, uint64_t step, uint32_t piece, char **at, uint64_t *bytes);

#endif
