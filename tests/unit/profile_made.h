/* SPDX-License-Identifier: Apache-2.0
 * Profiles made from tables, written by the drainer; include it after scratch.h. */
#ifndef PROFILE_MADE_H
#define PROFILE_MADE_H

#include <sys/stat.h>

#include "base/base.h"
#include "crew/drain.h"

#define MADE_THREADS 4

/* A thread and one of its spans. */
struct made_span {
    int thread; /* of made_thread; -1: the table ends */
    struct span span;
};

struct made_thread {
    int place, thread;
    enum span_thread what;
};

#define MADE(thread_, kind_, begin_, end_, item_, step_, lane_, whom_, part_) \
    {thread_, {.begin = (begin_), .end = (end_), .kind = (kind_), .item = (item_), \
               .step = (step_), .lane = (lane_), .whom = (whom_), .part = (part_), .leg = -1}}

/* Makes directory/host/profile/10; host "": directory/profile/10. items: of items.jsonl; clocks: of
 * clocks.json; both nullable. Returns the folder, valid until the next call. */
static inline const char *made_profile(const char *host, const struct made_thread *thread, int n,
                                       const struct made_span *span, const char *items,
                                       const char *clocks) {
    static char path[4096];
    char out[256], file[4200];
    struct ring *ring[MADE_THREADS];
    struct drain_from from[MADE_THREADS];
    struct drain *drain;
    snprintf(out, sizeof out, "%s/%s", directory, host);
    assert_int_equal(drain_directory(out, 10, path), TRI_OK);
    for (int i = 0; i < n; i++) {
        ring[i] = aligned_alloc(64, ring_bytes(1024));
        assert_non_null(ring[i]);
        ring_make(ring[i], 1024);
        from[i] = (struct drain_from){.ring = ring[i], .capacity = 1024, .place = thread[i].place,
                                      .thread = thread[i].thread, .what = thread[i].what,
                                      .pid = 1000 + thread[i].place, .tid = 2000 + i};
    }
    const struct drain_plan plan = {.directory = path, .first = 10, .last = 11, .threads = 2,
                                    .from = from, .n = n};
    assert_int_equal(drain_open(&plan, &drain), TRI_OK);
    for (; span->thread >= 0; span++) ring_put(ring[span->thread], &span->span);
    drain_stop(drain);
    drain_close(drain);
    for (int i = 0; i < n; i++) free(ring[i]);
    for (int i = 0; i < 2; i++) {
        const char *text = i ? clocks : items;
        if (!text) continue;
        snprintf(file, sizeof file, "%s/%s", path, i ? "clocks.json" : "items.jsonl");
        FILE *f = fopen(file, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
        fclose(f);
    }
    return path;
}

/* Removes all profiles. */
static inline int remove_profiles(void **state) {
    (void)state;
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s/profile %s/hosts", directory, directory);
    return system(command);
}

#endif
