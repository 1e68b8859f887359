/* SPDX-License-Identifier: Apache-2.0 */
#include "link/outgoing.h"

#include <stdlib.h>
#include <string.h>

tri_status outgoing_add(struct outgoing *o, const struct link_header *h, const void *payload,
                        void *token) {
    if (o->first == o->n) o->first = o->n = 0;
    if (o->first > 64 && o->first > o->n / 2) { /* a queue that is never empty */
        o->n -= o->first;
        memmove(o->queue, o->queue + o->first, o->n * sizeof *o->queue);
        o->first = 0;
    }
    if (!ARRAY_GROW(o->queue, o->n, o->capacity)) return base_no_memory("messages to send");
    o->queue[o->n++] = (struct sending){.header = *h, .payload = payload, .token = token};
    return TRI_OK;
}

static void add_range(struct outgoing *o, const void *at, size_t n) {
    if (n) o->range[o->ranges++] = (struct iovec){(void *)(uintptr_t)at, n};
}

void outgoing_add_bytes(struct outgoing *o, const void *data, size_t n) {
    uint8_t *to = o->small[o->n_small++];
    CHECK(n <= sizeof o->small[0] && o->n_small == 1);
    memcpy(to, data, n);
    add_range(o, to, n);
}

/* A header, or a piece. Returns its bytes. */
static size_t add_frame(struct outgoing *o, struct wire *w, struct sending *s) {
    uint8_t *small = o->small[o->n_small++];
    size_t n;
    if (!s->begun) {
        n = wire_put_header(w, &s->header, small);
        add_range(o, small, n);
        s->begun = true;
    } else {
        const char *piece = s->payload + s->done;
        uint64_t left = s->header.length - s->done;
        n = left < WIRE_PIECE ? (size_t)left : WIRE_PIECE;
        add_range(o, piece, n);
        add_range(o, small, wire_put_tag(w, piece, n, small));
        s->done += n;
    }
    if (s->done < s->header.length) return n;
    if (s->header.kind < LINK_KINDS) o->token[o->tokens++] = s->token;
    o->first++;
    return n;
}

bool outgoing_fill(struct outgoing *o, struct wire *w) {
    if (o->from < o->ranges) return true;
    o->from = o->ranges = o->n_small = o->tokens = 0;
    for (size_t bytes = 0; o->first < o->n && o->n_small < OUTGOING_FRAMES &&
                           bytes < OUTGOING_BYTES;)
        bytes += add_frame(o, w, &o->queue[o->first]);
    return o->ranges;
}

bool outgoing_sent(struct outgoing *o, size_t n) {
    for (; o->from < o->ranges; o->from++) {
        struct iovec *r = &o->range[o->from];
        if (n < r->iov_len) {
            r->iov_base = (char *)r->iov_base + n;
            r->iov_len -= n;
            return false;
        }
        n -= r->iov_len;
    }
    return true;
}

void outgoing_free(struct outgoing *o) { free(o->queue); }
