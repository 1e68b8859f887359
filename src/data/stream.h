/* SPDX-License-Identifier: Apache-2.0
 * Bytes that come one after the other: from a command, a named pipe, or standard input. None may come for long: whoever
 * reads asks meanwhile whether anybody still waits for them (see data_unwanted). */
#ifndef DATA_STREAM_H
#define DATA_STREAM_H

#include <sys/types.h>

#include "data/data.h"

struct stream {
    const char *name; /* for messages; not owned */
    const tri_data *data; /* who waits; null: somebody does, as long as it takes. Not owned */
    int fd;           /* -1: it is not open */
    pid_t command;    /* 0: there is none */
    int life;         /* as long as it is open, so long the command may live */
    char *room;       /* bytes that have been read and not taken: [at, n) */
    size_t at, n;
};

/* from: "pipe:COMMAND", "-", or the path of a named pipe. What was open is closed. */
tri_status stream_open(struct stream *s, const char *from);
#define STREAM_COMMAND "pipe:"
/* Up to n bytes, fewer at the end alone; -1 with a message. */
int64_t stream_take(struct stream *s, void *to, size_t n);
/* At its end: whether the command has done its work. */
tri_status stream_end(struct stream *s);
/* The command, if it still runs, goes too, with all that it has started. */
void stream_close(struct stream *s);

#endif
