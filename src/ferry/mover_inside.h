/* SPDX-License-Identifier: Apache-2.0
 * What a mover is. */
#ifndef FERRY_MOVER_INSIDE_H
#define FERRY_MOVER_INSIDE_H

#include "ferry/mover.h"
#include "ferry/pieces.h"

/* A transfer from or to this host. */
struct move {
    /* On its way: given to the link, or arriving. Here: it has arrived, and is not published. */
    enum { WAITS, ON_ITS_WAY, HERE, OVER } state;
    int slot;   /* that a payload is arriving in; -1: in one of pieces */
    int coded;  /* the buffer that is sent; -1: it is sent from the slot */
    size_t bytes; /* of the message */
    int64_t began; /* when it was given to the link, or announced; if it is watched */
    int unsent; /* the next one of the bucket; -1: none */
};

/* A bucket of a phase. */
struct way {
    struct wire_map map;
    struct wire_part whole; /* of a map that has no other */
    bool plain;
    int unsent;  /* the first transfer from this host that waits; -1: none */
    int expects; /* where its part of phase.expects begins */
    int here;    /* transfers that have arrived and are not published */
    struct pieces pieces; /* by paths other than the exchange */
};

/* Memory grows only. */
struct phase {
    struct mover_phase is;
    struct move *move; /* by transfer */
    struct way *way;   /* by bucket */
    int *expects;      /* [bucket][node][chunk]: the transfer to this host; -1: none */
    int has;           /* the first of [bucket][operand] that was not there at the last look */
    bool pieces;       /* some bucket takes a path other than the exchange */
    size_t moves, buckets, nodes;
};

/* What is sent coded, of which the same bytes go to several hosts; or arrives. */
struct coded {
    uint8_t *at;
    size_t bytes; /* that are sent */
    int users; /* transfers that the link has; or 1: a message is there, or arriving */
    int phase, bucket, node, chunk;
};

struct mover {
    int self, hosts, owner;
    struct link *link;
    uint32_t epoch;
    uint64_t step;
    bool fresh; /* the epoch has begun, and no step in it */
    bool late;  /* see mover_send_late */
    struct phase phase[2];
    int *lent;    /* by host: payloads that the link has */
    bool *joined; /* by host */
    int arriving; /* transfers to this host that have begun, and are not published */
    int wrong;    /* see mover_wrong */
    uint64_t seed;
    struct coded *coded; /* MOVER_CODED + hosts of them; the last by host: what arrives */
    size_t coded_bytes;  /* of each */
    struct mover_bytes bytes;
    void (*moved)(void *user, const struct mover_moved *is); /* null: nobody watches */
    void *user;
};

/* Publishes what has arrived, and roots of which all chunks are there, as far as it is their turn.
 * Returns whether there was any. */
bool mover_publish(struct mover *m, struct phase *p);
bool mover_can_publish(const struct mover *m, const struct phase *p);

#endif
