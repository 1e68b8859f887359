/* SPDX-License-Identifier: Apache-2.0
 * A result of a run over its steps, and what of it fits into so many columns. Its size does not
 * grow with the run: points that follow one another become one, and their lines are read again if
 * more of them is to be seen. */
#ifndef PROFILE_CURVE_H
#define PROFILE_CURVE_H

#include <sys/types.h>

#include "profile/lines.h"

#define CURVE_POINTS 4096 /* of a curve, at most */

enum curve_axis { CURVE_STEPS, CURVE_TIME, CURVE_AXES };

/* Values in successive lines, or in those of a column. */
struct curve_point {
    double x[CURVE_AXES]; /* of the first: its step, and the seconds of the whole run */
    double least, most, mean;
    int64_t n;  /* how many; 0: an empty column */
    int64_t at; /* where the first one's line begins, in its file */
    int file;
};

struct curve {
    struct curve_point *point; /* [n] */
    size_t n, capacity;
    int64_t each;                            /* how many values a point has; the last one may have
                                              * fewer */
    double begin[CURVE_AXES], end[CURVE_AXES]; /* least and most x of all values */
    double last;                             /* value */
};

/* What has been read of a run. Starts as zeroes. */
struct curves {
    struct curve training, evaluations;
    struct lines lines; /* the fields are those of all lines */
    int64_t back;       /* how often the seconds went back, as when the run went on */

    struct curve_file {
        char *path;
        ino_t inode;
        int64_t size, at; /* at: where the next line begins */
        struct curve_clock {
            double shown, before; /* seconds, of this entry and of those before */
        } clock;
    } *file; /* [n], in the order in which they are read */
    size_t n, capacity;
    size_t guess; /* the field */
};

/* Reads what has been added to metrics.jsonl of the run since the last call with the same
 * arguments; a file that was replaced is read anew. Values that are no numbers are left out. */
tri_status curves_read(struct curves *c, const char *directory, const char *key);
void curves_free(struct curves *c);

/* Columns of equal width, from x = from to x = to. */
struct curve_view {
    enum curve_axis axis;
    double from, to;
    int n;
    struct curve_point *column; /* [n] */
};
void curve_columns(const struct curve *c, const struct curve_view *v);
/* The same of a curve of *c. If it has too few points there, their lines are read again. */
void curves_part(const struct curves *c, const struct curve *of, const char *key,
                 const struct curve_view *v);

/* A round distance between marks on an axis, of which there are at most `most`. */
double curve_marks(double from, double to, int most);

#endif
