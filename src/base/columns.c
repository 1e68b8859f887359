/* SPDX-License-Identifier: Apache-2.0 */
#include "base/columns.h"

#include <string.h>

#define COLUMNS_LEAST 8 /* characters of a column that is cut */

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

/* Narrows columns that may be cut, the widest first. */
static void fit(const char *sides, int indent, int width[COLUMNS_MOST]) {
    int all = indent - 2, *cut = width;
    for (int c = 0; c < COLUMNS_MOST && sides[indent + c]; c++) all += width[c] + 2;
    for (; all > COLUMNS_WIDTH && cut; all--) {
        cut = NULL;
        for (int c = 0; c < COLUMNS_MOST && sides[indent + c]; c++)
            if (sides[indent + c] == 'c' && width[c] > (cut ? *cut : COLUMNS_LEAST))
                cut = &width[c];
        if (cut) --*cut;
    }
}

void columns_add(struct text *out, const char *sides, struct text *cells) {
    int width[COLUMNS_MOST] = {0}, column = 0, indent = (int)strspn(sides, " ");
    int gap = indent; /* blanks before the next cell; those at the end of a row are left out */
    out->failed |= cells->failed;
    const char *at = cells->failed || !cells->data ? "" : cells->data;
    measure(at, width);
    fit(sides, indent, width);
    while (*at) {
        size_t bytes = strcspn(at, "\t\n");
        CHECK((size_t)(indent + column) < strlen(sides));
        bool right = sides[indent + column] == 'r';
        int blanks = width[column] - width_of(at, bytes);
        size_t shown = bytes;
        while (shown && width_of(at, shown) > width[column] - (blanks < 0 ? 3 : 0)) shown--;
        if (right) gap += blanks;
        if (bytes) text_add(out, "%*s%.*s%s", gap, "", (int)shown, at, blanks < 0 ? "..." : "");
        if (bytes) gap = 0;
        if (blanks < 0) blanks = 0;
        gap += 2 + (right ? 0 : blanks);
        at += bytes;
        if (*at == '\t') column++;
        else text_add(out, "\n"), column = 0, gap = indent;
        at += *at != 0;
    }
    text_free(cells);
}

void columns_cell(struct text *cells, const char *text) {
    for (; *text; text++) text_add(cells, "%c", strchr("\t\n", *text) ? ' ' : *text);
}

const char *columns_wrap(struct text *out, const char *at, const char *end, int last, int column,
                         int margin) {
    for (bool first = true; at < end && *at != '\n'; first = false) {
        size_t bytes = strcspn(at, " \n");
        if (at + bytes > end) bytes = (size_t)(end - at);
        const int n = width_of(at, bytes);
        const bool fits = first || column + 1 + n <= last;
        if (!fits) text_add(out, "\n%*s", margin, "");
        text_add(out, first || !fits ? "%.*s" : " %.*s", (int)bytes, at);
        column = fits ? column + n + !first : margin + n;
        at += bytes + (at[bytes] == ' ');
    }
    text_add(out, "\n");
    return at;
}

void columns_fill(struct text *out, struct text *lines) {
    const char *at = lines->data, *end = lines->failed || !at ? at : at + lines->size;
    for (; at < end; at++) at = columns_wrap(out, at, end, COLUMNS_WIDTH, 0, 2);
    out->failed |= lines->failed;
    text_free(lines);
}
