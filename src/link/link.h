/* SPDX-License-Identifier: Apache-2.0
 * A link joins hosts 0 to n - 1 of a run. It moves messages, each a header and a payload, in order
 * between two hosts. A row of functions says how: `link_tcp` over sockets, `link_ucx` over UCX.
 * Tests have a row in one process (tests/link/world.h).
 *
 *   1. One thread uses a link. It waits until link_fd is readable, then calls link_next until that
 *      has nothing. No function blocks, and none is called from another thread.
 *   2. A payload that is sent is borrowed until LINK_SENT returns its token, or LINK_ENDED or
 *      link_end ends the session. Sent means that the memory is free again, not that it arrived.
 *   3. `where` says where the payload of a header belongs. It is asked only for headers that are
 *      authentic and short enough. Before LINK_ARRIVED the memory has any content; if the session
 *      ends, the message never arrived. `where` may drop a message, as of an old epoch.
 *   4. A session between two hosts begins when both have called link_peer for an epoch, and ends
 *      once. Nothing connects again by itself: a broken session is a change of epoch.
 *   5. A peer that is stopped or slow is not an end: whoever has leases calls link_end. A network
 *      that carries nothing is, after `silence`, where the row can tell that (tcp).
 *   6. A stranger without the key can cause one LINK_REFUSED a minute, and nothing else. */
#ifndef LINK_LINK_H
#define LINK_LINK_H

#include "base/base.h"

#define LINK_KEY 32 /* bytes */
#define LINK_ADDRESS 64
#define LINK_WHY 200

enum link_kind { LINK_SUM, LINK_VALUE, LINK_EDGE, LINK_USER, LINK_KINDS };

/* What a message is. The link itself reads run, kind and length. */
struct link_header {
    uint64_t run;
    uint32_t epoch, step;
    uint32_t kind;   /* enum link_kind */
    uint32_t item;   /* of sums: the bucket */
    uint32_t node;   /* of sums: in the tree of lanes */
    uint32_t part;
    uint32_t format; /* of the numbers */
    uint64_t offset; /* of the payload in what it is a part of */
    uint64_t length; /* of the payload, in bytes */
};

enum link_what {
    LINK_NOTHING, /* until link_fd is readable */
    LINK_JOINED,  /* the session with `host` has begun */
    LINK_ARRIVED, /* `header` from `host`; the payload is at `at` */
    LINK_SENT,    /* `token`: its payload may change */
    LINK_ENDED,   /* the session with `host`, for the reason `why`; nothing of it follows */
    LINK_REFUSED, /* connections of strangers; `why` is a line for the log */
};

struct link_event {
    enum link_what what;
    int host;
    struct link_header header;
    void *at, *token;
    char why[LINK_WHY];
};

/* Null: the message is dropped. Else memory for header->length bytes; anything if that is 0.
 * LINK_LATER: nothing more is taken from this peer until link_resume, which asks again. */
#define LINK_LATER ((void *)-1)
typedef void *link_where(void *user, int host, const struct link_header *header);

struct link_options {
    int self, hosts;
    uint64_t run;
    const uint8_t *key;  /* LINK_KEY bytes, borrowed; null: messages are not authenticated */
    uint64_t most;       /* bytes of a payload; longer messages end the session */
    link_where *where;
    void *user;
    const char *address; /* numeric, to listen at; null: any */
    int port[2];         /* the first and the last to try; 0: any */
    int64_t patience;    /* nanoseconds for a greeting; 0: 5 s */
    int64_t silence;     /* nanoseconds without an answer of the peer's kernel, from 2 s; 0: any */
};

struct link;
struct link_row {
    tri_status (*open)(const struct link_options *o, struct link **l);
    void (*close)(struct link *l);
    tri_status (*peer)(struct link *l, int host, uint32_t epoch, const char *address);
    tri_status (*send)(struct link *l, int host, const struct link_header *h, const void *payload,
                       void *token);
    void (*end)(struct link *l, int host);
    void (*resume)(struct link *l, int host);
    tri_status (*work)(struct link *l); /* without waiting; adds events */
};
extern const struct link_row link_tcp, link_ucx;
/* The rows that join machines, as option --link has them. TRI_USAGE, with what is missing, if there
 * is no such row here. */
enum { LINK_TCP, LINK_UCX };
tri_status link_row_find(int which, const struct link_row **row);

tri_status link_open(const struct link_row *row, const struct link_options *o, struct link **l);
void link_close(struct link *l); /* nullable; to its peers this is like a death */
/* Where others reach this host; "" where the row has no addresses. */
const char *link_address(const struct link *l);
int link_fd(const struct link *l);
/* Begins a session, if the peer does so for the same epoch; none with it may be there. An attempt
 * for an earlier epoch may be refused, which ends it; one for a later waits. address: the peer's;
 * the host of the higher number connects, so the other may have null. LINK_JOINED or LINK_ENDED
 * follows. */
tri_status link_peer(struct link *l, int host, uint32_t epoch, const char *address);
/* Queues a message to a peer that has joined. header->run and length are set here. If the session
 * is at its end, of which LINK_ENDED tells, the message is dropped. */
tri_status link_send(struct link *l, int host, const struct link_header *header,
                     const void *payload, uint64_t length, void *token);
/* Ends the session at once: no event follows, and what was queued is not sent. */
void link_end(struct link *l, int host);
/* After LINK_LATER; else it does nothing. */
void link_resume(struct link *l, int host);
/* LINK_NOTHING if there is nothing. Fails only if this host lacks memory or descriptors. */
tri_status link_next(struct link *l, struct link_event *event);

#endif
