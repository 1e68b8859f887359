/* SPDX-License-Identifier: Apache-2.0 */
#include "base/columns.h"

#include <string.h>

/* Characters of UTF-8: bytes that begin with the bits 10 continue one. */
static int width_of(const char *cell, size_t bytes) {
    int n = 0;
    for (size_t i = 0; i < bytes; i++) n += (cell[i] & 0xc0) != 0x80;
    return n;
}

static void measure(const char *at, int width[COLUMNS_MOST]) {
    for (int c = 0; *at;) {
        size_t bytes = strcspn(at, "\t\n");
        int w = width_of(at, bytes);
        CHECK(c < COLUMNS_MOST);
        if (w > width[c]) width[c] = w;
        at += bytes;
        c = *at == '\t' ? c + 1 : 0;
        at += *at != 0;
    }
}

void columns_add(struct text *out, const char *sides, struct text *cells) {
    int width[COLUMNS_MOST] = {0}, column = 0, indent = (int)strspn(sides, " ");
    int gap = indent; /* blanks before the next cell; those at the end of a row are left out */
    out->failed |= cells->failed;
    const char *at = cells->failed || !cells->data ? "" : cells->data;
    measure(at, width);
    while (*at) {
        size_t bytes = strcspn(at, "\t\n");
        bool right = sides[indent + column] == 'r';
        int blanks = width[column] - width_of(at, bytes);
        if (right) gap += blanks;
        if (bytes) text_add(out, "%*s%.*s", gap, "", (int)bytes, at), gap = 0;
        gap += 2 + (right ? 0 : blanks);
        at += bytes;
        if (*at == '\t') column++;
        else text_add(out, "\n"), column = 0, gap = indent;
        at += *at != 0;
    }
    text_free(cells);
}
