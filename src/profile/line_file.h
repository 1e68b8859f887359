/* SPDX-License-Identifier: Apache-2.0
 * The lines of a file that may still grow. */
#ifndef PROFILE_LINE_FILE_H
#define PROFILE_LINE_FILE_H

#include <sys/types.h>

#include "base/base.h"

#define LINE_MOST (1 << 20) /* bytes of a line that is kept whole */
#define LINE_KEPT (LINE_MOST / 2) /* of a longer one, at least */

/* Starts as zeroes. */
struct line_file {
    bool is_open;
    int64_t at; /* where the next line begins; it stays after the file is closed */

    int fd;
    char *data;
    size_t begin, end, searched, room; /* in the data; up to `searched` it has no newline */
    int64_t dropped;                   /* bytes of a line that is too long */
};

/* at: where the first line begins that is read. */
tri_status line_file_open(struct line_file *f, const char *path, int64_t at);
/* The bytes of the next line, which a zero byte ends in place of its newline; -1: there is no whole
 * line yet. The text stays until the next call. */
ssize_t line_file_next(struct line_file *f, char **line);
/* What follows the last newline, as a line; -1: nothing. */
ssize_t line_file_rest(struct line_file *f, char **line);
void line_file_close(struct line_file *f);

#endif
