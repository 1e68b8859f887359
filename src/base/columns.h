/* SPDX-License-Identifier: Apache-2.0
 * Tables of text in columns, as commands print them. */
#ifndef BASE_COLUMNS_H
#define BASE_COLUMNS_H

#include "base/base.h"

#define COLUMNS_MOST 16

/* Adds to `out` the rows of `cells`, each column as wide as its widest cell, with two blanks between
 * columns. In `cells`, a tab ends a cell and a newline a row. sides: 'l' or 'r' for each column, the
 * side on which its cells stand; blanks before them begin each row. Frees `cells`. */
void columns_add(struct text *out, const char *sides, struct text *cells);

#endif
