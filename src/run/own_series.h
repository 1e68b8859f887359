/* SPDX-License-Identifier: Apache-2.0
 * DIR/workers.series of a run of one process, with one place. */
#ifndef RUN_OWN_SERIES_H
#define RUN_OWN_SERIES_H

#include "observe/times.h"
#include "run/own_time.h"

struct own_series {
    struct times times; /* open: its file is */
    const struct own_time *own;
    int64_t done, lanes; /* steps done before; lanes of a step */
    int64_t slowest, slowest_step; /* since the last frame, of steps that were timed */
    int64_t memory;
};

/* done: the steps that the run had done when it began. Without counts of time there is no file.
 * After a failure, here and below, nothing more is written. */
tri_status own_series_open(struct own_series *s, const char *directory, int64_t done,
                           const struct own_time *own, int64_t lanes);
/* A step has been timed, at `now` the last one done. Writes a frame if one is due. */
tri_status own_series_turn(struct own_series *s, int64_t now, int64_t step, int64_t took);
/* Writes the last frame. */
tri_status own_series_close(struct own_series *s, int64_t step);

#endif
