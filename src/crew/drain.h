/* SPDX-License-Identifier: Apache-2.0
 * The drainer: takes spans from rings and writes them to files (crew/spans.h). Threads that put
 * spans in never wait for it. What cannot be written is lost, and counted. */
#ifndef CREW_DRAIN_H
#define CREW_DRAIN_H

#include "base/base.h"
#include "crew/ring.h"

/* One thread and its ring. */
struct drain_from {
    struct ring *ring;
    uint64_t capacity;      /* as the ring was made with: its own word may have been damaged */
    int place, thread;
    enum span_thread what;
    int pid, tid; /* may be set until the first span is put in */
};

struct drain_plan {
    const char *directory; /* exists; see drain_directory */
    int64_t first, last;   /* steps */
    int threads;           /* of each worker */
    int64_t most;          /* bytes of all files; 0: no limit */
    const struct drain_from *from; /* [n], used until drain_close */
    int n;
};

struct drain_seen {
    int64_t spans, lost, bytes; /* lost: as a ring was full, or they could not be written */
    bool full;                  /* the limit has been reached: all further spans are lost */
    const char *error;          /* the first failure; null: none. Valid until drain_close */
};

struct drain;

/* Makes DIR/profile/FIRST, or if it exists FIRST.1, ...; returns its path. */
tri_status drain_directory(const char *out, int64_t first, char path[4096]);

/* What is in the rings now is dropped: open it before anything is recorded. */
tri_status drain_open(const struct drain_plan *plan, struct drain **d);
/* Takes out and writes what is in the rings. For one thread at a time. */
void drain_once(struct drain *d);
/* Starts a thread that does so every 20 ms, until drain_stop. */
tri_status drain_start(struct drain *d);
/* Writes the rest, closes the files, and ends that thread, if there is one. `end` does not wait for
 * it, which a slow disk may keep; `has_ended` says whether `stop` would. */
void drain_end(struct drain *d);
bool drain_has_ended(const struct drain *d);
void drain_stop(struct drain *d);
/* For any thread. */
void drain_look(const struct drain *d, struct drain_seen *seen);
void drain_close(struct drain *d); /* nullable; after drain_stop */

#endif
