/* SPDX-License-Identifier: Apache-2.0
 * From counters that grow to frames of DIR/workers.series: what has been added since the frame
 * before, as shares of time, and what the system says of threads that had no core. */
#ifndef OBSERVE_TIMES_H
#define OBSERVE_TIMES_H

#include "observe/series.h"

/* What a place has counted so far. */
struct times_place {
    const int64_t *time; /* [kinds], in nanoseconds, summed over its threads */
    uint64_t lanes, lost;
    uint64_t sent, received, sent_whole; /* of the host, in bytes; the first place has them */
    int64_t memory; /* bytes, at most */
};

/* Columns other than those of kinds of time, and their order: */
enum {
    TIMES_NO_CORE,
    TIMES_LANES,
    TIMES_LOST,
    TIMES_MEMORY,
    TIMES_SENT,
    TIMES_RECEIVED,
    TIMES_SENT_WHOLE,
    TIMES_COLUMNS
};
extern const struct series_column times_columns[TIMES_COLUMNS];

struct times {
    struct series_writer series;
    const char *root; /* of /proc and /sys: "" except in tests */
    int places, threads, kinds, n; /* threads of a place; n: columns */
    double *before, *value;        /* [places][n]: counts at the last frame; buffer */
    int64_t due, at, step;         /* time of the next frame and of the last; its step */
    struct times_thread {
        int fd, tid;
        int64_t waited;
    } *thread; /* [places][threads] */
    int64_t looked;  /* when the system was last asked */
    double *no_core; /* [places]: share of the time before that, with what a quota caused */
    double quota;    /* the part of it that a quota caused */
    struct {
        double throttled, stolen;
        int64_t periods, stops;
    } host; /* what the system had counted then */
    uint16_t throttled_periods, throttled, stolen; /* as in frames */
};

/* Opens DIR/workers.series. done: the steps that the run had done when it began; if it is not 0,
 * the file goes on. The counters have counted since `began` (base_now). kind: [kinds], the names of
 * columns, none of them one of ours. After a failure, here and below, nothing more is written, and
 * s->series.fd is -1. */
tri_status times_open(struct times *s, const char *directory, int64_t done, int64_t began,
                        int places, int threads, const char *const *kind, int kinds);
void times_close(struct times *s);

/* Whether a frame is due at this time. At most one is for a step, unless a step takes long. */
static inline bool times_due(const struct times *s, int64_t now, int64_t step) {
    return now >= s->due && (step != s->step || now - s->due >= 10000000000);
}

/* Writes a frame of the time up to now, `step` being the last step done. slowest, slowest_step: as
 * in the frame. place: [places]. */
tri_status times_add(struct times *s, int64_t now, int64_t step, int64_t slowest,
                       int64_t slowest_step, const struct times_place *place);

/* Whether it is time for a look at the system: once a second. Before times_look, tell the threads
 * of each place; tid 0: there is none. Or tell that the only place is this process. */
static inline bool times_look_due(const struct times *s, int64_t now) {
    return now - s->looked >= 1000000000;
}
void times_thread(struct times *s, int place, int thread, int pid, int tid);
void times_look(struct times *s, int64_t now);

#endif
