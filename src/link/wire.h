/* SPDX-License-Identifier: Apache-2.0
 * What a session between two hosts looks like in bytes, whatever carries them. Numbers are little
 * endian. The host that connects sends a hello; the other answers with its own and a proof; the
 * first sends its proof. When the other wants the session, too, it sends an empty message of the
 * kind WIRE_BEGINS; then both send messages.
 *
 *  hello    0   8  "TRILINK\n"
 *           8   4  version, 1
 *          12   4  the sender's number; 4 the receiver's; 4 whether messages are authenticated
 *          24   8  run
 *          32   4  epoch of the session; 4 zero
 *          40  24  random bytes
 *  proof       16  a tag of both hellos
 *  header   0   4  version, 1; 4 kind
 *           8   8  run; 4 epoch; 4 step; 4 item; 4 node; 4 part; 4 format
 *          40   8  offset; 8 length of the payload
 *          56  16  a tag
 *  payload in pieces of WIRE_PIECE bytes, the last one shorter, each with a tag of 16 bytes
 *
 * A tag is that of chacha20poly1305_ietf with what it covers as associated data. Each session has a
 * key for each direction, which follows from the run's key and both hellos; the nonce counts the
 * tags. So bytes that are changed, left out, repeated or sent the other way end the session, and
 * bytes of another session never begin one. Without a key there are no tags.
 *
 * A header has a tag of its own: its length is believed, and memory asked for, only after that. */
#ifndef LINK_WIRE_H
#define LINK_WIRE_H

#include <sys/uio.h>

#include "link/link.h"

#define WIRE_HELLO 64
#define WIRE_TAG 16
#define WIRE_HEADER 56
#define WIRE_PIECE (128 << 10)

/* The kind of the link's own: the first message of the host that was connected to. */
enum { WIRE_BEGINS = LINK_KINDS, WIRE_KINDS };

/* What a host says of itself and accepts. */
struct wire_side {
    int self, hosts;
    uint64_t run, most;
    const uint8_t *key; /* nullable */
};

enum wire_stage {
    WIRE_HELLO_IN,  /* of the host that connects */
    WIRE_ANSWER_IN, /* the other's hello and proof */
    WIRE_PROOF_IN,
    WIRE_HEADER_IN,
    WIRE_PIECE_IN,
};

/* What wire_got has come to. */
enum wire_event {
    WIRE_MORE,
    WIRE_ANSWER, /* wire->greeting is to be sent */
    WIRE_JOINED, /* the same, if n_greeting; the peer is who it says */
    WIRE_BEGUN,  /* a header: wire->at must be set before more is read */
    WIRE_WHOLE,  /* a message */
};

struct wire {
    const struct wire_side *side;
    int host; /* the peer's number; -1: not known */
    uint32_t epoch; /* of the session: what the host says that connects */
    bool connects;
    enum wire_stage stage;
    uint8_t hello[2][WIRE_HELLO]; /* of the host that connects, of the other */
    uint8_t greeting[WIRE_HELLO + WIRE_TAG];
    size_t n_greeting;
    struct wire_keys *keys; /* null: no tags */
    uint8_t in[WIRE_HELLO + WIRE_TAG];
    size_t have; /* bytes of what is wanted that are there */
    struct link_header header;
    char *at;      /* of the payload; null: it goes to `spare`, piece by piece */
    char *spare;   /* WIRE_PIECE bytes */
    uint64_t done; /* bytes of the payload */
};

/* host: to connect to; -1: another connects. The greeting may have bytes to send. spare: where
 * pieces go that are dropped. */
tri_status wire_begin(struct wire *w, const struct wire_side *side, int host, uint32_t epoch,
                      char *spare);
void wire_free(struct wire *w);
/* Where the next bytes belong: one or two ranges. Returns how many. */
int wire_want(struct wire *w, struct iovec to[2]);
/* n more bytes of these are there. Fails with the reason for which the session must end. */
tri_status wire_got(struct wire *w, size_t n, enum wire_event *event);
/* Whether the peer has sent a part of a message. */
bool wire_is_inside(const struct wire *w);

/* Writes a header and its tag; returns the bytes. */
size_t wire_put_header(struct wire *w, const struct link_header *h,
                       uint8_t to[WIRE_HEADER + WIRE_TAG]);
/* The tag of the next piece; returns the bytes. */
size_t wire_put_tag(struct wire *w, const void *piece, size_t n, uint8_t to[WIRE_TAG]);

#endif
