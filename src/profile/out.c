/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/out.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

tri_status out_open(struct out *o, const char *folder, const char *name) {
    o->n = 0;
    o->error = 0;
    o->to = NULL;
    const int n = snprintf(o->path, sizeof o->path, "%s/%s", folder, name);
    if (n < 0 || (size_t)n >= sizeof o->path)
        return base_fail(TRI_USAGE, "%.80s...: the path is too long", folder);
    o->fd = part_open(o->path, 0666, o->part);
    return o->fd >= 0 ? TRI_OK : TRI_FAILED;
}

void out_open_text(struct out *o, struct text *to) {
    o->n = 0;
    o->error = 0;
    o->to = to;
    o->fd = -1;
}

static void flush(struct out *o) {
    if (o->to) text_add_bytes(o->to, o->data, o->n);
    else if (!o->error && !base_write_all(o->fd, o->data, o->n)) o->error = errno;
    o->n = 0;
}

void out_bytes(struct out *o, const void *data, size_t bytes) {
    const char *from = data;
    while (bytes > sizeof o->data - o->n) {
        const size_t n = sizeof o->data - o->n;
        memcpy(o->data + o->n, from, n);
        o->n += n;
        from += n;
        bytes -= n;
        flush(o);
    }
    memcpy(o->data + o->n, from, bytes);
    o->n += bytes;
}

void out_text(struct out *o, const char *text) { out_bytes(o, text, strlen(text)); }

void out_texts(struct out *o, const char *const text[]) {
    for (; *text; text++) out_text(o, *text);
}

/* Of digits up to `end`; returns where they begin. */
static char *digits(char *end, uint64_t value) {
    do *--end = (char)('0' + value % 10);
    while (value /= 10);
    return end;
}

static uint64_t size_of(int64_t value) { return value < 0 ? 0 - (uint64_t)value : (uint64_t)value; }

void out_integer(struct out *o, int64_t value) {
    char text[24], *end = text + sizeof text, *at = digits(end, size_of(value));
    if (value < 0) *--at = '-';
    out_bytes(o, at, (size_t)(end - at));
}

void out_micros(struct out *o, int64_t ns) {
    const uint64_t size = size_of(ns);
    char text[32], *end = text + sizeof text, *at = end - 4;
    uint64_t rest = size % 1000;
    *at = '.';
    for (char *p = end; --p > at; rest /= 10) *p = (char)('0' + rest % 10);
    at = digits(at, size / 1000);
    if (ns < 0) *--at = '-';
    out_bytes(o, at, (size_t)(end - at));
}

void out_format(struct out *o, const char *fmt, ...) {
    char text[512];
    va_list args;
    va_start(args, fmt);
    const int n = base_format_list(text, sizeof text, fmt, args);
    va_end(args);
    out_bytes(o, text, n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

tri_status out_close(struct out *o, tri_status status) {
    if (o->to) flush(o);
    if (o->fd < 0) return status;
    flush(o);
    if (close(o->fd) && !o->error) o->error = errno;
    o->fd = -1;
    if (!status && o->error) status = base_fail(TRI_FAILED, "%s: %s", o->path, strerror(o->error));
    return part_end(o->path, o->part, status);
}

void out_json(struct out *o, const char *text, size_t bytes) {
    static const char hex[] = "0123456789abcdef";
    size_t from = 0; /* what has not been written */
    out_text(o, "\"");
    for (size_t i = 0; i < bytes; i++) {
        const unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != 0x7f && c != '"' && c != '\\') continue;
        out_bytes(o, text + from, i - from);
        out_bytes(o, (char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6);
        from = i + 1;
    }
    out_bytes(o, text + from, bytes - from);
    out_text(o, "\"");
}

void out_cell(struct out *o, const char *text) {
    const char *quote = strpbrk(text, ",\"\n\r") ? "\"" : "";
    out_text(o, ",");
    out_text(o, quote);
    for (const char *s = text; *s; s++) {
        const unsigned char c = (unsigned char)*s;
        if (c == '"') out_text(o, "\"");
        out_bytes(o, c < 0x20 || c == 0x7f ? " " : s, 1);
    }
    out_text(o, quote);
}
