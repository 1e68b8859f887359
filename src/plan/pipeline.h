/* SPDX-License-Identifier: Apache-2.0
 * Schedules of pipelines, as data. Stage s belongs to track s modulo the number of tracks. A
 * schedule lists for each track the legs of its stages, for all lanes, in the order in which they
 * are claimed. No bit depends on it. */
#ifndef PLAN_PIPELINE_H
#define PLAN_PIPELINE_H

#include "plan/legs.h"

enum pipeline_kind { PIPELINE_1F1B, PIPELINE_GPIPE, PIPELINE_INTERLEAVED, PIPELINE_ZERO_BUBBLE };

const char *pipeline_name(enum pipeline_kind p);

struct turn {
    int leg, lane;
};

struct pipeline_wish {
    enum pipeline_kind kind;
    int chunks;  /* stages per track; 0: 1, or of interleaved 2 */
    int lanes;
    int workers; /* that compute legs at the same time; 0: 1 */
};

struct pipeline {
    struct pipeline_wish wish;    /* that it was made for */
    int tracks, lanes, per_track; /* per_track: turns */
    int side_by_side;             /* lanes that a track computes at the same time, if it has so many
                                   * workers */
    struct turn *turn;            /* track by track */
};

/* Whether the stages have legs of weights under the schedule. */
bool pipeline_splits_weights(enum pipeline_kind p);
/* The number of tracks, or the reason why these stages and lanes cannot be scheduled so. */
tri_status pipeline_tracks(const struct pipeline_wish *w, int stages, int *tracks);
tri_status pipeline_make(const struct pipeline_wish *w, const struct legs *l, struct pipeline *out);
void pipeline_free(struct pipeline *s);

static inline const struct turn *pipeline_turn(const struct pipeline *s, int track, int i) {
    return &s->turn[track * s->per_track + i];
}

/* Whether claimer `number` of `all` (workers, replicas or threads) serves the track. */
bool pipeline_serves(const struct pipeline *s, int number, int all, int track);

/* The leg of the same lane that must be done before this one; -1: none. */
int pipeline_before(const struct legs *l, int leg);

/* When each leg runs if each costs what `cost` says and each track computes its turns in order, as
 * soon as possible. */
struct pipeline_times {
    double *begin, *end; /* by leg * lanes + lane */
    double makespan, busy; /* busy: the sum of all legs' costs */
};
/* TRI_USAGE: the turns wait for each other, or are not each leg of each lane once. */
tri_status pipeline_simulate(const struct pipeline *s, const struct legs *l, const double *cost,
                             struct pipeline_times *out);
void pipeline_times_free(struct pipeline_times *t);
/* The part of the tracks' time in which they wait. */
double pipeline_idle(const struct pipeline *s, const struct pipeline_times *t);
/* How many lanes' results of a leg are needed at the same time: from the begin of the leg to the
 * end of the last leg that reads them. */
int pipeline_kept(const struct pipeline *s, const struct pipeline_times *t, int leg,
                  const struct leg_set *readers);

#endif
