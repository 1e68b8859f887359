/* SPDX-License-Identifier: Apache-2.0
 * A stream of bytes from a command, a named pipe, or standard input. While none arrive, the reader
 * checks whether anybody still waits for them (see data_unwanted). */
#ifndef DATA_STREAM_H
#define DATA_STREAM_H

#include <sys/types.h>

#include "data/data.h"

struct stream {
    const char *name; /* for messages; not owned */
    const tri_data *data; /* for data_unwanted; null: never gives up. Not owned */
    int fd;           /* -1: not open */
    pid_t command;    /* 0: none */
    int life;         /* the command is killed when this is closed */
    char *buffer;       /* bytes that have been read but not taken: [at, n) */
    size_t at, n;
};

/* from: "pipe:COMMAND", "-", or the path of a named pipe. Closes the previous stream. */
tri_status stream_open(struct stream *s, const char *from);
#define STREAM_COMMAND "pipe:"
/* Up to n bytes, fewer only at the end; -1 with a message. */
int64_t stream_take(struct stream *s, void *to, size_t n);
/* At the end: whether the command succeeded. */
tri_status stream_end(struct stream *s);
/* Kills the command, if it still runs, with all processes that it has started. */
void stream_close(struct stream *s);

#endif
