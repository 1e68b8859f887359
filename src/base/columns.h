/* SPDX-License-Identifier: Apache-2.0
 * Tables of text in columns, as commands print them. */
#ifndef BASE_COLUMNS_H
#define BASE_COLUMNS_H

#include "base/base.h"

#define COLUMNS_MOST 16

/* Adds the rows of `cells` to `out`, each column as wide as its widest cell, with two blanks
 * between columns. In `cells`, a tab ends a cell and a newline a row. sides: for each column 'l' or
 * 'r', the side on which its cells stand; blanks before them begin each row. Frees `cells`. */
void columns_add(struct text *out, const char *sides, struct text *cells);

#endif
