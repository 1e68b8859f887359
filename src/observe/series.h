/* SPDX-License-Identifier: Apache-2.0
 * DIR/workers.series: how the workers of a run have spent their time. A page with the names of the
 * columns, then frames of equal size, in the order of time: a series_frame, then a record per
 * worker. Numbers are little-endian. A frame describes the time since the frame before it.
 *
 * The file has a limited size. When it is full, neighbouring frames are merged, and from then on
 * frames cover twice as much time, so that all times of a run are equally well known. A file that
 * ends in the middle of a frame, or has damaged ones, is read without these. */
#ifndef OBSERVE_SERIES_H
#define OBSERVE_SERIES_H

#include "base/base.h"

#define SERIES_MAGIC 0x5345495245534952 /* "RISERIES" */
#define SERIES_VERSION 1
#define SERIES_PAGE 4096
#define SERIES_FRAMES 16384    /* at most, */
#define SERIES_BYTES 69000000  /* and as many as fit here */
#define SERIES_PERIOD 50000000 /* nanoseconds between two frames, until the file is full */
#define SERIES_COLUMNS 64
#define SERIES_NAME 24
#define SERIES_PLACES 4096
#define SERIES_ONE 65535 /* the whole, as a share */

/* What a number is, and how those of two frames become one. */
enum series_kind {
    SERIES_SHARE, /* a part of the frame's time, 16 bits; its mean, weighted by time */
    SERIES_SUM,   /* a count, 32 bits; the sum */
    SERIES_MOST,  /* a size, 32 bits; the larger one */
    SERIES_KINDS
};

/* The first page. Each line of the text is a column: its name, its kind ("share", "sum", "most"),
 * and where it begins in a record. A program reads the columns that it knows by name, and takes one
 * that is not there for 0. */
struct series_page {
    uint64_t magic;
    uint32_t version;
    uint32_t check;         /* base_check of the page with 0 here */
    int64_t began;          /* nanoseconds since 1970 */
    int64_t period;         /* nanoseconds from frame to frame, at least */
    uint32_t frame, record; /* bytes; those of a frame are rounded up to a multiple of 8 */
    uint32_t places, capacity;
    char columns[SERIES_PAGE - 48];
};

struct series_frame {
    int64_t step;    /* the last step done */
    int64_t time;    /* its end, in nanoseconds since page.began */
    int64_t covers;  /* nanoseconds; less than since the frame before if the run began again */
    int64_t slowest; /* nanoseconds that the slowest of its steps took; 0: not known */
    int64_t slowest_step;
    uint32_t steps; /* done in it */
    /* Shares, of the host. Control groups count periods; the times are parts of all cores' time. */
    uint16_t throttled_periods, throttled, stolen;
    uint16_t unused;
    uint32_t check; /* base_check of the frame with 0 here */
};

_Static_assert(sizeof(struct series_page) == SERIES_PAGE && sizeof(struct series_frame) == 56,
               "these are written to files");

struct series_column {
    char name[SERIES_NAME]; /* without blanks */
    enum series_kind kind;
    int at;
};

struct series_layout {
    int64_t began, period;
    int places, n;
    struct series_column column[SERIES_COLUMNS];
    size_t record, frame;
    int64_t capacity;
};

/* 0 to 1 as a share. */
uint16_t series_share(double part);

/* ---- writing ---- */

struct series_writer {
    int fd; /* -1: none */
    char *path;
    struct series_layout layout;
    int places;     /* that the caller writes; the rest is of an earlier run */
    int64_t frames; /* in the file */
    int64_t offset; /* what to add to base_now for the time of a frame */
    char *frame;
};

/* Replaces the file if there is one. began: of the run, by base_now. Of the columns name and kind
 * are read; at most SERIES_COLUMNS. After a failure, here and below, the writer is closed. */
tri_status series_create(struct series_writer *w, const char *path, int64_t began, int places,
                         const struct series_column *column, int n);
/* Goes on with the file of the same run, without what is damaged at its end. If it has other places
 * or columns, it is written anew. A file that is not there is made. */
tri_status series_continue(struct series_writer *w, const char *path, int64_t began, int places,
                           const struct series_column *column, int n);
/* Adds a frame that ends now (base_now): of *f all but time and check are read. value:
 * [places][n]; shares are 0 to 1. A full file is halved, which takes 0.2 s for 69 MB. */
tri_status series_add(struct series_writer *w, int64_t now, const struct series_frame *f,
                      const double *value);
void series_writer_close(struct series_writer *w);

/* ---- reading ---- */

struct series {
    int fd;
    struct series_layout layout;
    int64_t n;       /* frames that are whole */
    int64_t damaged; /* others */
    struct series_index {
        int64_t step, time;
        uint32_t steps, at; /* at: the frame's number in the file */
    } *index; /* [n] */
    /* Of the frame that series_read has read: */
    struct series_frame frame;
    char *bytes;
};

tri_status series_open(struct series *s, const char *path);
void series_close(struct series *s);
/* -1: there is none. */
int series_column(const struct series *s, const char *name);
/* Reads frame i, 0 to n - 1, into s->frame; false: it is not there any more. */
bool series_read(struct series *s, int64_t i);
/* Of that frame; column -1: 0. */
double series_value(const struct series *s, int place, int column);
/* The latest frame in which this step was done; -1: none. */
int64_t series_find_step(const struct series *s, int64_t step);
/* The first frame that ends at this time, in nanoseconds since the begin, or later; n: none. */
int64_t series_find_time(const struct series *s, int64_t time);

#endif
