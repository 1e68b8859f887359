/* SPDX-License-Identifier: Apache-2.0
 * Tables of text in columns, as commands print them. */
#ifndef BASE_COLUMNS_H
#define BASE_COLUMNS_H

#include "base/base.h"

#define COLUMNS_MOST 100
#define COLUMNS_WIDTH 100 /* characters of a row, if a column may be cut */

/* Adds the rows of `cells` to `out`, each column as wide as its widest cell, with two blanks
 * between columns. In `cells`, a tab ends a cell and a newline a row. sides: for each column 'l' or
 * 'r', the side on which its cells stand, or 'c', on the left and cut if rows are too wide; blanks
 * before them begin each row. Frees `cells`. */
void columns_add(struct text *out, const char *sides, struct text *cells);
/* Adds a user's text to a cell, with blanks for tabs and newlines. */
void columns_cell(struct text *cells, const char *text);
/* Adds the words of one line, from `column` on; those beyond `last` go on in further lines, at
 * `margin`. Returns where the line ends: at a newline or `end`. */
const char *columns_wrap(struct text *out, const char *at, const char *end, int last, int column,
                         int margin);
/* Adds lines of words; what is wider than COLUMNS_WIDTH goes on in the next line. Frees `lines`. */
void columns_fill(struct text *out, struct text *lines);

#endif
