/* SPDX-License-Identifier: Apache-2.0 */
#include "base/line.h"

#include <time.h>

void line_add(struct line *l, const char *s) {
    while (*s && l->n < sizeof l->text - 2) l->text[l->n++] = *s++;
}

void line_number(struct line *l, uint64_t value, unsigned base, int digits) {
    char text[24], *p = text + sizeof text;
    *--p = 0;
    for (; value || digits > 0; value /= base, digits--) *--p = "0123456789abcdef"[value % base];
    line_add(l, p);
}

void line_signed(struct line *l, int64_t value) {
    if (value < 0) line_add(l, "-");
    line_number(l, value < 0 ? -(uint64_t)value : (uint64_t)value, 10, 1);
}

void line_name(struct line *l, const char *s, int most) {
    for (int i = 0; i < most && s[i]; i++) {
        char one[2] = {(unsigned char)s[i] < 0x20 || (unsigned char)s[i] > 0x7e ? '?' : s[i], 0};
        if (*one == '"' || *one == '\\') line_add(l, "\\");
        line_add(l, one);
    }
}

/* Gregorian date of a day since 1970; years are counted from March. */
static void add_date(struct line *l, int64_t days) {
    int64_t z = days + 719468, era = z / 146097, d = z % 146097;
    int64_t year = (d - d / 1460 + d / 36524 - d / 146096) / 365;
    int64_t day = d - (365 * year + year / 4 - year / 100), m = (5 * day + 2) / 153;
    int64_t month = m < 10 ? m + 3 : m - 9;
    line_number(l, (uint64_t)(year + 400 * era + (month <= 2)), 10, 4);
    line_add(l, "-");
    line_number(l, (uint64_t)month, 10, 2);
    line_add(l, "-");
    line_number(l, (uint64_t)(day - (153 * m + 2) / 5 + 1), 10, 2);
}

void line_time(struct line *l) {
    struct timespec now = {0};
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t second = (uint64_t)now.tv_sec % 86400;
    add_date(l, now.tv_sec / 86400);
    line_add(l, "T");
    line_number(l, second / 3600, 10, 2);
    line_add(l, ":");
    line_number(l, second / 60 % 60, 10, 2);
    line_add(l, ":");
    line_number(l, second % 60, 10, 2);
    line_add(l, ".");
    line_number(l, (uint64_t)now.tv_nsec / 1000000, 10, 3);
    line_add(l, "Z");
}

void line_field(struct line *l, const char *name, int64_t value) {
    line_add(l, ",\"");
    line_add(l, name);
    line_add(l, "\":");
    line_signed(l, value);
}

void line_text(struct line *l, const char *name, const char *value, int most) {
    line_add(l, ",\"");
    line_add(l, name);
    line_add(l, "\":\"");
    line_name(l, value, most);
    line_add(l, "\"");
}
