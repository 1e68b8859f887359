/* SPDX-License-Identifier: Apache-2.0
 * Sessions between hosts, whatever carries their bytes: what the rows tcp and ucx have in common.
 * A row says how a stream of bytes is opened, read, written and closed. */
#ifndef LINK_SESSION_H
#define LINK_SESSION_H

#include "link/link_inside.h"
#include "link/outgoing.h"
#include "link/sockets.h"

enum session_state {
    SESSION_CONNECTING,
    SESSION_GREETING,
    SESSION_HELD, /* it has greeted; link_peer has not been called for its epoch yet */
    SESSION_ASKS, /* this host has greeted; the other has not called link_peer yet */
    SESSION_JOINED,
};

struct session {
    struct sock sock; /* fd -1: the stream is no socket */
    struct session *next;
    void *stream;    /* of ucx, */
    bool due;        /* which looks whether something can be done, */
    unsigned looked; /* in each pass once */
    enum session_state state;
    bool mine;       /* link_peer made it */
    bool waits;      /* a header has come whose payload has no place yet */
    struct wire wire;
    struct outgoing out;
};

struct sessions;
struct session_carrier {
    /* As readv and writev, for one that never blocks. */
    ssize_t (*read)(struct session *c, const struct iovec *to, int n);
    ssize_t (*write)(struct session *c, const struct iovec *from, int n);
    /* Begins a stream: session_new, and then session_connected or session_end. */
    tri_status (*connect)(struct sessions *s, int host, uint32_t epoch, const char *address);
    void (*close)(struct session *c);
    /* Whether the peer's kernel has answered within this many nanoseconds; null: not known. */
    bool (*answers)(const struct session *c, int64_t within);
    void (*watched)(struct sessions *s, struct session *c); /* sock.events have changed; nullable */
};

struct sessions { /* the begin of each row's own struct */
    struct link base;
    const struct session_carrier *carrier;
    struct wire_side side;
    int64_t patience, silence;
    struct sockets sockets;
    struct session *first;
    struct session **peer; /* by host; null */
    struct awaited {
        bool on;        /* link_peer was called, and the host has not joined */
        uint32_t epoch; /* the latest that it was called for */
    } *awaited;         /* by host */
    char *spare; /* for what is dropped */
};

/* s is all zero before. Whatever fails, sessions_close follows. */
tri_status sessions_open(struct sessions *s, const struct session_carrier *carrier,
                         const struct sockets_user *row, const struct link_options *o);
void sessions_close(struct sessions *s);
bool sessions_have_told(const void *sessions);

/* fd is closed if this fails. */
tri_status session_new(struct sessions *s, int fd, enum session_state state, int host,
                       uint32_t epoch, struct session **out);
/* The stream of a session that this host begins takes bytes. */
void session_connected(struct sessions *s, struct session *c);
/* Something is to be read or there is room, as in epoll's events. */
void session_ready(struct sessions *s, struct session *c, uint32_t events);
/* Ends it. why: null if its deadline has passed. */
void session_end(struct sessions *s, struct session *c, const char *why);
/* Its deadline has passed, which is the time to look whether the peer answers. */
void session_late(struct sessions *s, struct session *c);

/* A row's functions. */
tri_status session_peer(struct link *l, int host, uint32_t epoch, const char *address);
tri_status session_send(struct link *l, int host, const struct link_header *h, const void *payload,
                        void *token);
void session_drop(struct link *l, int host);
void session_resume(struct link *l, int host);

#endif
