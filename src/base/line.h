/* SPDX-License-Identifier: Apache-2.0
 * A line of text built without allocation or stdio, as signal handlers need it. */
#ifndef BASE_LINE_H
#define BASE_LINE_H

#include "base/base.h"

struct line {
    char text[1024];
    size_t n;
};

/* Drops what does not fit. */
void line_add(struct line *l, const char *s);
/* at least `digits` digits */
void line_number(struct line *l, uint64_t value, unsigned base, int digits);
void line_signed(struct line *l, int64_t value);
/* At most `most` bytes of a user's text: escapes quotes, replaces bytes that are not ASCII. */
void line_name(struct line *l, const char *s, int most);
/* The time in UTC, as 2026-11-23T03:04:05.678Z. */
void line_time(struct line *l);
/* Adds ,"name":value or ,"name":"text" of a JSON object. */
void line_field(struct line *l, const char *name, int64_t value);
void line_text(struct line *l, const char *name, const char *value, int most);

#endif
