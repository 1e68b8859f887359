/* SPDX-License-Identifier: Apache-2.0
 * A result of a run over its steps, and what of it fits into so many columns. */
#ifndef PROFILE_CURVE_H
#define PROFILE_CURVE_H

#include "profile/lines.h"

struct curve {
    bool evaluations;
    struct curve_point {
        double x, y;
    } *point; /* [n]; x: steps, or seconds of the whole run */
    size_t n, capacity;
};

/* Adds the points of the run's training and of its evaluations, as far as they are numbers. The
 * fields of *l are those of the runs before, too. */
tri_status curve_read(const char *directory, const char *key, bool by_time, struct lines *l,
                      struct curve *training, struct curve *evaluations);
void curve_free(struct curve *c);

/* The points of a column; n 0: there are none. */
struct curve_column {
    double least, most, mean;
    int64_t n;
};
/* Columns of equal width, from x = from to x = to. */
void curve_columns(const struct curve *c, double from, double to, int n,
                   struct curve_column column[]);

/* A round distance between marks on an axis, of which there are at most `most`. */
double curve_marks(double from, double to, int most);

#endif
