/* SPDX-License-Identifier: Apache-2.0
 * Writes text that is derived from a profile: into memory, or to a file that replaces the earlier
 * one as a whole. It has a buffer and its own ways to write numbers, as there may be millions. */
#ifndef PROFILE_OUT_H
#define PROFILE_OUT_H

#include "base/base.h"

struct out {
    int fd, error; /* error: errno of the first failure */
    struct text *to; /* in place of a file; null: there is a file */
    char path[4096], part[PART_PATH];
    size_t n;
    char data[1 << 16];
};

tri_status out_open(struct out *o, const char *folder, const char *name);
void out_open_text(struct out *o, struct text *to);
void out_bytes(struct out *o, const void *data, size_t bytes);
void out_text(struct out *o, const char *text);
/* Several texts. */
#define OUT(o, ...) out_texts(o, (const char *const[]){__VA_ARGS__, NULL})
void out_texts(struct out *o, const char *const text[]);
void out_integer(struct out *o, int64_t value);
/* Nanoseconds as microseconds, exactly. */
void out_micros(struct out *o, int64_t ns);
/* A string of JSON, with its quotes. */
void out_json(struct out *o, const char *text, size_t bytes);
/* A comma, and a cell of CSV; control characters become blanks. */
void out_cell(struct out *o, const char *text);
void out_format(struct out *o, const char *fmt, ...) TRI_PRINTF(2, 3);
/* All is in the text; the file is there only if all has been written. Returns `status`, or its own
 * failure. */
tri_status out_close(struct out *o, tri_status status);

#endif
