/* SPDX-License-Identifier: Apache-2.0
 * The page of `trireme top`: lines cut to the width of the window, made from the latest views of a
 * run. */
#ifndef CLI_TOP_VIEW_H
#define CLI_TOP_VIEW_H

#include "launch/look.h"

#define TOP_LOOKS 32 /* views kept, from which rates of the last seconds are computed */

/* The loss over the last minutes, dense enough for a line of bars. */
struct top_loss {
    struct {
        double time, loss; /* seconds of the monotonic clock */
    } point[4096];
    int n;
};
void top_loss_add(struct top_loss *l, double time, double loss);
/* Adds the last lines of the run's metrics.jsonl, if it has one, for steps up to `step`. */
void top_loss_read(struct top_loss *l, const char *directory, double now, uint64_t step);
/* Means over `width` equal parts of the time up to now, NaN before the first loss, and the least
 * and the greatest of them. Returns the seconds that they span; 0: nothing to show. */
double top_loss_bars(const struct top_loss *l, double now, int width, double bar[], double *least,
                     double *most);

struct top {
    struct look look;
    struct look_view view[TOP_LOOKS]; /* a ring */
    int looks; /* views taken so far; the latest is view[(looks - 1) % TOP_LOOKS] */
    struct top_loss loss;
};

struct top_page {
    int columns, rows; /* rows 0: no limit */
    bool colours, unicode, terminal;
};

/* Adds the whole page; for a terminal, with the codes that draw it over the page before. */
void top_draw(struct top *t, const struct top_page *page, struct text *out);

#endif
