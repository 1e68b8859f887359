/* SPDX-License-Identifier: Apache-2.0
 * Spans: what each thread did, and when, while a profile is recorded. A thread writes them to a
 * ring of its own, in memory; the drainer (crew/drain.h) writes them to files,
 *
 *     DIR/profile/STEP/spans-PLACE-THREAD.bin
 *
 * each a header, then chunks: a span_chunk, then its spans, in the order in which they ended. A
 * file may end anywhere, as its writer may have been killed. Numbers are little-endian. */
#ifndef CREW_SPANS_H
#define CREW_SPANS_H

#include <stddef.h>
#include <stdint.h>

#include "crew/spend.h"

/* A span of what a thread spends its time on has the number of that; these nest in it or around
 * it: */
enum span_kind {
    SPAN_OPERATOR = 64, /* a kernel's call; in COMPUTE, AUDIT, SUM, UPDATE, EVALUATE */
    SPAN_LANE,          /* all of a lane or leg */
    SPAN_STEP,          /* from the opening of a step to its end; of the reporter */
    SPAN_PIECE,         /* a piece of a step's samples, read ahead */
    SPAN_WRITE,         /* a checkpoint is written */
    /* Of the ferry: `item` is that of the bucket, an item whose operator is "transfer"; `lane` is
     * the sum's node, `leg` the chunk of it (-1: it moves whole), `whom` the other host's number;
     * `part` is that of span_transfer_part. */
    SPAN_TRANSFER,
};

#define SPAN_NOBODY 0xffff

struct span {
    int64_t begin, end; /* nanoseconds, CLOCK_MONOTONIC */
    int32_t item;       /* of items.jsonl; -1: none */
    uint32_t step;
    int16_t lane;  /* -1: none */
    uint16_t whom; /* a wait: the thread that ended it, or that it waits for, as place * threads of
                    * a worker + thread; SPAN_NOBODY: not known */
    uint8_t kind;  /* enum spent, or span_kind */
    int8_t leg;    /* of the lane; -1: it is in one piece */
    uint16_t part; /* of an operator, the seat's member; else 0 */
};

/* Of a transfer, whether it is sent; the number of chunks; and of the most bytes that it can take,
 * the part that it did, in 255ths: less than 1 only if --wire packs. */
static inline uint16_t span_transfer_part(bool sent, int chunks, double part) {
    return (uint16_t)(sent | (chunks > 1 ? chunks : 0) << 1 | (255 - (int)(255 * part + 0.5)) << 8);
}
static inline bool span_is_sent(const struct span *s) { return s->part & 1; }
static inline int span_chunks(const struct span *s) {
    const int n = s->part >> 1 & 127;
    return n ? n : 1;
}
static inline double span_wire_part(const struct span *s) { return 1 - (s->part >> 8) / 255.0; }

enum span_thread { SPAN_COMPUTES, SPAN_READS, SPAN_WRITES, SPAN_FERRIES };

/* A process has a ring for each of the `threads` that compute, then SPEND_BESIDE others: what the
 * thread of one of them does. */
static inline enum span_thread span_thread_at(int ring, int threads) {
    return ring < threads ? SPAN_COMPUTES
           : ring + 1 < threads + SPEND_BESIDE ? SPAN_READS : SPAN_WRITES;
}

#define SPAN_MAGIC 0x534e415053495254 /* "TRISPANS" */
#define SPAN_VERSION 1

struct span_header {
    uint64_t magic;
    uint32_t version, bytes; /* bytes: of a span */
    int32_t pid, tid;
    uint16_t place, thread; /* as in the file's name */
    uint16_t what, threads; /* enum span_thread; threads of each worker */
    int64_t first, last;    /* steps */
    int64_t realtime;       /* what to add to a time for nanoseconds since 1970 */
    uint64_t unused;
};

struct span_chunk {
    uint32_t spans, check; /* check: span_check of the spans */
    uint64_t dropped;      /* spans lost up to here, as the ring was full or a write failed */
};
uint32_t span_check(const struct span *span, size_t n);

_Static_assert(sizeof(struct span) == 32 && sizeof(struct span_header) == 64 &&
                   sizeof(struct span_chunk) == 16, "these are written to files");

#endif
