/* SPDX-License-Identifier: Apache-2.0
 * make bench-profile: what one span costs a core: reading the clock, putting the span into a ring,
 * and writing it to a file. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "crew/drain.h"

#define ROUNDS 501 /* the median of each cost counts */
#define SPANS 2048 /* of a round, as a small network makes them between two drainings */

enum cost { CLOCK, PUT, WRITE, COSTS };

/* Nanoseconds of this thread, without those in which others had its core. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void one_round(struct ring *ring, struct drain *drain, double cost[COSTS]) {
    int64_t last = 0;
    double at[COSTS + 1] = {now()};
    for (int i = 0; i < SPANS; i++) last = base_now();
    at[1] = now();
    for (int i = 0; i < SPANS; i++) {
        const int64_t begin = last;
        last = base_now();
        ring_put(ring, &(struct span){.begin = begin, .end = last, .item = i, .lane = 1,
                                      .whom = SPAN_NOBODY, .kind = SPAN_OPERATOR});
    }
    at[2] = now();
    drain_once(drain);
    at[3] = now();
    for (int i = 0; i < COSTS; i++) cost[i] = (at[i + 1] - at[i]) / SPANS;
    cost[PUT] -= cost[CLOCK];
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void) {
    static double round[ROUNDS][COSTS], cost[COSTS][ROUNDS];
    char directory[] = "/tmp/trireme-spans-XXXXXX", command[64];
    struct ring *ring = aligned_alloc(64, ring_bytes(RING_SPANS));
    struct drain *drain;
    const struct drain_from from = {.ring = ring, .capacity = RING_SPANS};
    const struct drain_plan plan = {.directory = directory, .from = &from, .n = 1};
    if (!ring || !mkdtemp(directory)) return 1;
    ring_make(ring, RING_SPANS);
    if (drain_open(&plan, &drain)) return 1;
    for (int i = 0; i < ROUNDS; i++) one_round(ring, drain, round[i]);
    drain_stop(drain);
    drain_close(drain);
    for (int k = 0; k < COSTS; k++) {
        for (int i = 0; i < ROUNDS; i++) cost[k][i] = round[i][k];
        qsort(cost[k], ROUNDS, sizeof cost[k][0], by_size);
    }
    const int half = ROUNDS / 2;
    printf("%.1f ns a span: %.1f to read the clock, %.1f to put it into a ring, %.1f to write it\n",
           cost[CLOCK][half] + cost[PUT][half] + cost[WRITE][half], cost[CLOCK][half],
           cost[PUT][half], cost[WRITE][half]);
    snprintf(command, sizeof command, "rm -r %s", directory);
    return system(command) != 0;
}
