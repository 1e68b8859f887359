/* SPDX-License-Identifier: Apache-2.0
 * make bench-profile: what one span costs: reading the clock, putting the span into a ring, and
 * writing it to a file. All on one thread, so the times are those of a core. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "crew/drain.h"

#define ROUNDS 50
#define SPANS (RING_SPANS / 4)
#define TRIES 15 /* the fastest counts */

struct bench {
    struct ring *ring;
    struct drain *drain;
    int64_t put, drained; /* nanoseconds of the fastest try */
};

static void keep_least(int64_t *least, int64_t time) {
    if (!*least || time < *least) *least = time;
}

static void one_try(struct bench *b) {
    int64_t put = 0, drained = 0;
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t begin = base_now();
        int64_t last = begin;
        for (int i = 0; i < SPANS; i++) {
            const int64_t now = base_now();
            ring_put(b->ring, &(struct span){.begin = last, .end = now, .item = i, .lane = 1,
                                             .whom = SPAN_NOBODY, .kind = SPAN_OPERATOR});
            last = now;
        }
        put += last - begin;
        drain_once(b->drain);
        drained += base_now() - last;
    }
    keep_least(&b->put, put);
    keep_least(&b->drained, drained);
}

static int64_t clock_cost(void) {
    int64_t least = 0;
    for (int i = 0; i < TRIES; i++) {
        const int64_t begin = base_now();
        for (int k = 1; k < ROUNDS * SPANS; k++) base_now();
        keep_least(&least, base_now() - begin);
    }
    return least;
}

int main(void) {
    char directory[] = "/tmp/trireme-spans-XXXXXX", command[64];
    struct bench b = {.ring = aligned_alloc(64, ring_bytes(RING_SPANS))};
    const struct drain_from from = {.ring = b.ring, .capacity = RING_SPANS};
    if (!b.ring || !mkdtemp(directory)) return 1;
    ring_make(b.ring, RING_SPANS);
    for (int i = 0; i < TRIES; i++) {
        const struct drain_plan plan = {.directory = directory, .from = &from, .n = 1};
        if (drain_open(&plan, &b.drain)) return 1;
        one_try(&b);
        drain_stop(b.drain);
        drain_close(b.drain);
    }
    const double n = (double)ROUNDS * SPANS, clock = (double)clock_cost() / n,
                 put = (double)b.put / n, drained = (double)b.drained / n;
    printf("%.1f ns a span: %.1f to read the clock, %.1f to put it into a ring, %.1f to write it\n",
           put + drained, clock, put - clock, drained);
    snprintf(command, sizeof command, "rm -r %s", directory);
    return system(command) != 0;
}
