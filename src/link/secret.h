/* SPDX-License-Identifier: Apache-2.0
 * What a control connection looks like in bytes. Numbers are little endian. Whoever connects sends
 * a hello; the other answers with its own and a proof; the first sends its proof. Then both send
 * messages.
 *
 *  hello    0   8  "TRICTRL\n"
 *           8   4  version, 1; 4 zero
 *          16  32  random bytes
 *  proof    0  24  the header of a secretstream (XChaCha20 and Poly1305)
 *          24  17  its first message, which is empty
 *  message  0  25  a message of the secretstream: 8 bytes of length; the last one, which ends the
 *                  stream, has the tag "final" and length 0
 *          25 n+17 another one: the bytes, if there are any
 *
 * Each direction has a stream with a key of its own, which follows from the run's key and both
 * hellos. So nobody without the run's key can make a proof, and neither the bytes of another
 * connection nor those of the other direction are one. Bytes that are changed, left out or repeated
 * end the connection. A length has been authenticated before memory is asked for. */
#ifndef LINK_SECRET_H
#define LINK_SECRET_H

#include "link/link.h"

#define SECRET_HELLO 48
#define SECRET_PROOF 41
#define SECRET_LENGTH 25
#define SECRET_MORE 17 /* bytes of a sealed message beyond its own */

enum secret_event {
    SECRET_NOTHING,
    SECRET_ANSWER, /* `greeting` is to be sent */
    SECRET_JOINED, /* the same, if n_greeting; the peer has the key */
    SECRET_WHOLE,  /* a message: see secret_take */
    SECRET_OVER,   /* the peer sends nothing any more */
};

struct secret {
    const uint8_t *key; /* LINK_KEY bytes, borrowed */
    uint64_t most;      /* bytes of a message */
    bool connects;
    int stage;
    uint8_t hello[2][SECRET_HELLO]; /* of the side that connects, of the other */
    uint8_t greeting[SECRET_HELLO + SECRET_PROOF];
    size_t n_greeting;
    struct secret_keys *keys;
    uint8_t in[SECRET_HELLO + SECRET_PROOF];
    size_t have;   /* bytes of what is wanted that are there */
    uint8_t *body; /* of a message that comes */
    size_t n;      /* its bytes */
};

/* The greeting has bytes to send if this side connects. */
tri_status secret_begin(struct secret *s, const uint8_t *key, uint64_t most, bool connects);
void secret_free(struct secret *s);
/* Where the next bytes belong, and how many. */
size_t secret_want(struct secret *s, uint8_t **to);
/* n more of these are there. Fails with the reason for which the connection must end. */
tri_status secret_got(struct secret *s, size_t n, enum secret_event *event);
/* The message that is whole, of s->n bytes: *memory is the caller's to free. */
const uint8_t *secret_take(struct secret *s, void **memory);
/* Whether the peer has sent a part of a message. */
bool secret_is_inside(const struct secret *s);

/* How many bytes a message becomes; which secret_put writes. bytes null: the end of the stream. */
size_t secret_size(size_t n);
void secret_put(struct secret *s, const void *bytes, size_t n, uint8_t *to);
/* Its begin alone. */
void secret_put_length(struct secret *s, uint64_t n, bool last, uint8_t *to);

#endif
