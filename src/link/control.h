/* SPDX-License-Identifier: Apache-2.0
 * Control connections, between the coordinator and the agents: messages of bytes in order, over
 * TCP, authenticated and encrypted (link/secret.h). A `struct control` listens, or does not, and
 * has any number of connections up to CONTROL_CONNECTIONS; each has a number, which is not soon
 * used again.
 *
 *   1. One thread uses it. It waits until control_fd is readable, then calls control_next until
 *      that has nothing. Only control_connect may block, for as long as the resolver takes over a
 *      name.
 *   2. A connection has JOINED once, when each side knows that the other has the key, and ENDED
 *      once; but no ENDED after control_end.
 *   3. A peer that is silent or stopped is not an end: whoever has leases calls control_end. But a
 *      connection ends if more than CONTROL_QUEUED bytes wait for the peer.
 *   4. A stranger without the key can cause one REFUSED a minute, and nothing else. */
#ifndef LINK_CONTROL_H
#define LINK_CONTROL_H

#include "link/link.h"

#define CONTROL_MOST (8u << 20)   /* bytes of a message */
#define CONTROL_QUEUED (8u << 20) /* bytes that the kernel has not taken yet */
#define CONTROL_CONNECTIONS 1024

struct control_options {
    const uint8_t *key; /* LINK_KEY bytes, copied */
    bool listens;
    const char *address; /* numeric, to listen at; null: any IPv4 address; "::": any */
    int port[2];         /* the first and the last to try; 0: any */
    int64_t patience;    /* nanoseconds to connect, and for a greeting; 0: 5 s */
};

enum control_what {
    CONTROL_NOTHING, /* until control_fd is readable */
    CONTROL_JOINED,  /* with the peer at `address`, which is numeric, without a port */
    CONTROL_ARRIVED, /* a message: `bytes`, until the next call of control_next */
    CONTROL_ENDED,   /* for the reason `why`; nothing of it follows */
    CONTROL_REFUSED, /* connections of strangers; `why` is a line for the log */
};

struct control_event {
    enum control_what what;
    int conn;
    bool left; /* ENDED: in order, see control_finish */
    const uint8_t *bytes; /* at a multiple of 16; null if n is 0 */
    size_t n;
    void *memory; /* of the bytes; control_next frees it */
    char address[LINK_ADDRESS];
    char why[LINK_WHY];
};

struct control;
tri_status control_open(const struct control_options *o, struct control **c);
void control_close(struct control *c); /* nullable; to its peers this is like a death */
/* At which it listens; 0 if it does not. */
int control_port(const struct control *c);
int control_fd(const struct control *c);

/* Begins to connect to "host:4000", "10.0.0.1:4000" or "[fe80::1]:4000"; of a name's addresses, one
 * after the other. JOINED or ENDED follows. Fails if there is no such name or the table is full. */
tri_status control_connect(struct control *c, const char *address, int *conn);
/* Queues a copy, and sends what the kernel takes. If the connection is at its end, of which ENDED
 * tells, the message is dropped. */
tri_status control_send(struct control *c, int conn, const void *bytes, size_t n);
/* Sends nothing more after what is queued, and says so; the peer does the same then. What the peer
 * sends meanwhile is dropped. ENDED follows: at most 1 s later, and with `left` when both have got
 * all. The peer has ENDED with `left`, too. */
void control_finish(struct control *c, int conn);
/* Ends it at once: no event of it follows, and what is queued is not sent. */
void control_end(struct control *c, int conn);
/* TRI_FAILED only if this process lacks memory or descriptors. */
tri_status control_next(struct control *c, struct control_event *event);

/* This side's numeric address, without a port: how this host reaches the peer. "?" if it has none
 * any more. */
void control_own_address(const struct control *c, int conn, char to[LINK_ADDRESS]);
/* Whether a numeric address means the host itself: it must not be told to other hosts. */
bool control_is_loopback(const char *address);

#endif
