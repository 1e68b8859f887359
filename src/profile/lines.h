/* SPDX-License-Identifier: Apache-2.0
 * Reads metrics.jsonl (observe/metrics.h), also of runs that still write it or were killed, and of
 * earlier versions. A line is scanned in place, a million of them in a third of a second. */
#ifndef PROFILE_LINES_H
#define PROFILE_LINES_H

#include "profile/line_file.h"

/* The first fields; the results follow, in the order in which they first appear. */
enum lines_field {
    LINES_STEP,
    LINES_STEPS,
    LINES_EPOCH,
    LINES_SAMPLES,
    LINES_LR,
    LINES_SECONDS,
    LINES_FIXED,
};

enum { LINES_TRAINED = 1, LINES_EVALUATED = 2 };

/* Starts as zeroes. Several files can be read one after the other; their fields add up. */
struct lines {
    size_t n;
    char **name;         /* [n] */
    double *value;       /* [n] in the current line; NaN: it has none, or null */
    unsigned char *seen; /* [n] the kinds of lines that have had it */
    bool evaluation;     /* the current line has the results of one */
    int64_t damaged;     /* lines that are left out, of all files */

    size_t names, values, kinds; /* capacities */
    struct line_file file;
    char *line;       /* the current one */
    int guess[2][64]; /* the fields of the preceding line, in its order */
};

tri_status lines_open(struct lines *l, const char *path);
/* The same from a line on that begins there. */
tri_status lines_open_at(struct lines *l, const char *path, int64_t at);
/* The next line that has a step; false at the end, where the file is closed. A last line without a
 * newline is still being written. */
bool lines_next(struct lines *l);
/* Reads one line, which a zero byte ends; false if it is damaged. */
bool lines_scan(struct lines *l, const char *line);
void lines_free(struct lines *l);
/* Where a field of that name is; n: there is none yet. guess: where it was in an earlier line. */
size_t lines_find(const struct lines *l, const char *name, size_t guess);

/* Whether what failed last is a run.json or a series of a later version. */
bool run_is_later(void);

#endif
