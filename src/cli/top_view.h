/* SPDX-License-Identifier: Apache-2.0
 * The page of `trireme top`: lines cut to the width of the window, made from the latest views of a
 * run. */
#ifndef CLI_TOP_VIEW_H
#define CLI_TOP_VIEW_H

#include "launch/look.h"
#include "observe/recent.h"

struct top {
    struct pace pace;
    struct recent loss;
};

struct top_page {
    int columns, rows; /* columns INT_MAX, rows 0: no limit */
    bool colours, unicode, terminal;
};

/* terminal: its lines are limited, too. A file has no colours, and as many columns as COLUMNS. */
struct top_page top_measure(bool terminal);
/* Adds the whole page; for a terminal, with the codes that draw it over the page before. */
void top_draw(struct top *t, const struct top_page *page, struct text *out);
/* Explains the columns. */
void top_describe(struct text *out);

#endif
