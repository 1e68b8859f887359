/* SPDX-License-Identifier: Apache-2.0
 * trace.json: a profile as events of Chrome's tracing, for Perfetto and speedscope. A process is a
 * worker, a track a thread, on which lanes, scopes and operators nest; the steps have a track of
 * their own. Categories: step, lane, scope, operator, move, transfer, piece, write; what a thread
 * spends its time on (spent_rows), waits as "wait-samples". A slice of these ends where its lane
 * does, and goes on as another. "compute" is not drawn in lanes, which it would fill. Arrows lead
 * from the slice that ended last on the thread that a wait was for to the end of the wait, and from
 * the beginning of a transfer on the host that sends it to its end on the one that receives it,
 * unless that is earlier by more than the uncertainty of their clocks. */
#ifndef PROFILE_TRACE_H
#define PROFILE_TRACE_H

#include "profile/read.h"

tri_status trace_write(const struct profile *p, const char *folder);

#endif
