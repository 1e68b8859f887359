/* SPDX-License-Identifier: Apache-2.0
 * Curves of several runs in one picture, in a terminal or as SVG. */
#ifndef CLI_PLOT_H
#define CLI_PLOT_H

#include "cli/top_view.h"
#include "profile/curve.h"

struct plot_curve {
    const char *run; /* its directory */
    size_t number;   /* of the run, which its colour follows from */
    bool evaluations;
    struct curve *curve;
};

struct plot {
    const char *key;
    enum curve_axis axis;
    bool log; /* both limits of y are logarithms, and so is the scale */
    struct plot_curve *curve;
    size_t n, capacity;
    double left, right, bottom, top; /* what is shown of x and y */
};

void plot_text(const struct plot *p, const struct top_page *page, struct text *out);
void plot_svg(const struct plot *p, struct text *out);

#endif
