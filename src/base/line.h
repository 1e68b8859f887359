/* SPDX-License-Identifier: Apache-2.0
 * A line of text put together without allocation or stdio, as signal handlers need it. */
#ifndef BASE_LINE_H
#define BASE_LINE_H

#include "base/base.h"

struct line {
    char text[1024];
    size_t n;
};

/* What does not fit is left out. */
void line_add(struct line *l, const char *s);
void line_number(struct line *l, uint64_t value, unsigned base, int digits); /* at least so many */
void line_signed(struct line *l, int64_t value);
/* At most `most` bytes of a user's text: quotes escaped, bytes outside of ASCII replaced. */
void line_name(struct line *l, const char *s, int most);
/* The time in UTC, as 2026-11-23T03:04:05.678Z. */
void line_time(struct line *l);
/* ,"name":value and ,"name":"text" of a JSON object. */
void line_field(struct line *l, const char *name, int64_t value);
void line_text(struct line *l, const char *name, const char *value, int most);

#endif
