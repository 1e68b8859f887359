/* SPDX-License-Identifier: Apache-2.0
 * What `trireme top` shows: a page of lines that are cut to the window's width, made of the latest looks
 * at a run. */
#ifndef CLI_TOP_VIEW_H
#define CLI_TOP_VIEW_H

#include "launch/look.h"

#define TOP_LOOKS 32 /* kept: what is told of the last seconds follows from them */

/* The loss over the last minutes, evenly dense enough for a line of bars. */
struct top_loss {
    struct {
        double time, loss; /* seconds of the monotonic clock */
    } point[4096];
    int n;
};
void top_loss_add(struct top_loss *l, double time, double loss);
/* Begins with the last rows of the run's metrics.jsonl, if there are any: of steps up to `step`. */
void top_loss_read(struct top_loss *l, const char *directory, double now, uint64_t step);
/* Means over `width` equal parts of the time up to now; NaN where there are none. Returns the seconds
 * that they span; least and most are those of the means. 0: nothing to show. */
double top_loss_bars(const struct top_loss *l, double now, int width, double bar[], double *least,
                     double *most);

struct top {
    struct look look;
    struct look_view view[TOP_LOOKS]; /* a ring */
    int looks;                        /* that were taken; the latest is view[(looks - 1) % TOP_LOOKS] */
    struct top_loss loss;
};

struct top_page {
    int columns, rows; /* rows 0: as many as it takes */
    bool colours, unicode, terminal;
};

/* The whole page, ended by a newline; for a terminal one that is drawn over the page before. */
void top_draw(struct top *t, const struct top_page *page, struct text *out);

#endif
