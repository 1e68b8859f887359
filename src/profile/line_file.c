/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/line_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FIRST_ROOM 16384

tri_status line_file_open(struct line_file *f, const char *path, int64_t at) {
    const int fd = base_open(path, O_RDONLY, NULL);
    if (fd < 0) return base_last();
    *f = (struct line_file){.is_open = true, .at = at, .fd = fd};
    lseek(fd, at, SEEK_SET);
    return TRI_OK;
}

void line_file_close(struct line_file *f) {
    if (!f->is_open) return;
    close(f->fd);
    free(f->data);
    *f = (struct line_file){.at = f->at};
}

/* Reads more; false: there is none, or no memory. */
static bool fill(struct line_file *f) {
    f->end -= f->begin;
    f->searched -= f->begin;
    if (f->begin) memmove(f->data, f->data + f->begin, f->end);
    f->begin = 0;
    if (f->end >= LINE_MOST) {
        f->dropped += (int64_t)(f->end - LINE_KEPT);
        f->end = f->searched = LINE_KEPT;
    }
    if (f->end + 1 >= f->room) { /* a zero byte follows the data */
        const size_t room = f->room ? 2 * f->room : FIRST_ROOM;
        char *data = realloc(f->data, room);
        if (!data) return false;
        f->data = data;
        f->room = room;
    }
    ssize_t n;
    do n = read(f->fd, f->data + f->end, f->room - 1 - f->end);
    while (n < 0 && errno == EINTR);
    if (n > 0) f->end += (size_t)n;
    return n > 0;
}

static ssize_t take(struct line_file *f, char **line, size_t n, size_t newline) {
    *line = f->data + f->begin;
    (*line)[n] = 0;
    f->at += (int64_t)(n + newline) + f->dropped;
    f->dropped = 0;
    f->begin += n + newline;
    f->searched = f->begin;
    return (ssize_t)n;
}

ssize_t line_file_next(struct line_file *f, char **line) {
    do {
        char *end = f->end > f->searched ? memchr(f->data + f->searched, '\n', f->end - f->searched)
                                         : NULL;
        if (end) return take(f, line, (size_t)(end - f->data) - f->begin, 1);
        f->searched = f->end;
    } while (fill(f));
    return -1;
}

ssize_t line_file_rest(struct line_file *f, char **line) {
    return f->end > f->begin ? take(f, line, f->end - f->begin, 0) : -1;
}
