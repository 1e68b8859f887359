/* SPDX-License-Identifier: Apache-2.0
 * What a session has yet to send, as ranges of memory for sendmsg. Tags are computed for as much as
 * is sent at once, just before it is sent, so that the processor reads the payload from memory
 * once. */
#ifndef LINK_OUTGOING_H
#define LINK_OUTGOING_H

#include "link/wire.h"

#define OUTGOING_FRAMES 16           /* of a window */
#define OUTGOING_BYTES (512u << 10) /* of which a window has at least as many, if there are */

struct outgoing {
    struct sending {
        struct link_header header;
        const char *payload;
        void *token;
        uint64_t done; /* bytes of the payload that are in the window, or sent */
        bool begun;    /* the header is */
    } *queue;          /* from `first` on: not in the window, or not all of it */
    size_t first, n, capacity;
    /* The window: what has its tags. */
    struct iovec range[3 * OUTGOING_FRAMES];
    int from, ranges;
    uint8_t small[2 * OUTGOING_FRAMES][WIRE_HELLO + WIRE_TAG];
    int n_small;
    void *token[OUTGOING_FRAMES]; /* of messages that end in the window */
    int tokens;
};

tri_status outgoing_add(struct outgoing *o, const struct link_header *h, const void *payload,
                        void *token);
/* Bytes that go before all else. The window must be empty. */
void outgoing_add_bytes(struct outgoing *o, const void *data, size_t n);
/* Fills the window if it is empty. False: there is nothing to send. */
bool outgoing_fill(struct outgoing *o, struct wire *w);
/* n bytes of the window are sent. True: all of it. */
bool outgoing_sent(struct outgoing *o, size_t n);
void outgoing_free(struct outgoing *o);

#endif
