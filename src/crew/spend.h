/* SPDX-License-Identifier: Apache-2.0
 * What threads spend their time on. A thread is always at exactly one thing of the table below. It
 * reads the clock when it goes on to another, and adds the time that has passed to what ends. So
 * the times of a thread add up to its age, and none of them is a remainder: what nobody has named
 * is `unexplained`. */
#ifndef CREW_SPEND_H
#define CREW_SPEND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum spent_group {
    SPENT_NOTHING, /* unexplained */
    SPENT_APART,   /* not a part of any step */
    SPENT_COMPUTES,
    SPENT_SUMS,
    SPENT_READS,
    SPENT_BESIDE, /* between two steps */
    SPENT_WAITS,
    SPENT_GROUPS
};

/* Each row: its name in the program, in files and messages, its group, and what it is. Files name
 * what they contain, so a row may come or go; causes of waits are the last. */
#define EVERY_SPENT(X) \
    X(UNKNOWN, "unexplained", NOTHING, "what nothing has recorded") \
    X(START, "start", APART, "before the first step, or after the last") \
    X(COMPUTE, "compute", COMPUTES, "computes lanes; in a run of one process, all of a step") \
    X(AUDIT, "audit", COMPUTES, "computes lanes again, to compare them") \
    X(SUM, "sum", SUMS, "sums gradients of lanes") \
    X(UPDATE, "update", SUMS, "computes what is computed once per step, as the update") \
    X(READ, "read", READS, "reads samples") \
    X(OPEN, "open", BESIDE, "opens and ends steps") \
    X(RECORD, "record", BESIDE, "writes results") \
    X(CALLBACK, "callback", BESIDE, "is in the user's program") \
    X(EVALUATE, "evaluate", BESIDE, "evaluates") \
    X(SAVE, "save", BESIDE, "copies what a checkpoint contains") \
    X(WAIT_SAMPLES, "samples", WAITS, "waits for samples that another thread reads") \
    X(WAIT_LANES, "lanes", WAITS, "waits for lanes that others compute") \
    X(WAIT_SUMS, "sums", WAITS, "waits for sums that others compute") \
    X(WAIT_SLOTS, "slots", WAITS, "waits for memory for the results of a lane") \
    X(WAIT_LEGS, "legs", WAITS, "waits for legs of a pipeline that come before") \
    X(WAIT_SEATS, "seats", WAITS, "waits for other seats of a mesh") \
    X(WAIT_TASKS, "tasks", WAITS, "waits for parts of the update that others compute") \
    X(WAIT_OPENING, "opening", WAITS, "waits until the next step is opened") \
    X(WAIT_SAVE, "saves", WAITS, "waits until the checkpoint before is written") \
    X(WAIT_THREADS, "threads", WAITS, "waits for other threads of its worker") \
    X(WAIT_HOSTS, "hosts", WAITS, "waits for other hosts") \
    X(WAIT_PAUSE, "pause", WAITS, "waits until a paused run goes on")

struct ring;

enum spent {
#define SPENT(name, text, group, what) SPENT_##name,
    EVERY_SPENT(SPENT)
#undef SPENT
    SPENTS
};

extern const struct spent_row {
    const char *name;
    enum spent_group group;
    const char *what;
} spent_rows[SPENTS];

/* Of one thread, which alone writes it while it lives. Times are in nanoseconds; points in time are
 * of CLOCK_MONOTONIC. At any moment the times add up to since - born. */
struct spending {
    _Atomic int64_t born;  /* moved forward by the times in which no thread had this place */
    _Atomic int64_t since; /* when it began what it does now; 0: no thread is there */
    atomic_int on;         /* enum spent: what it does now */
    _Atomic int64_t time[SPENTS];
};

/* A thread's own part. Whoever makes it sets `to`, and the ring while nothing is recorded. */
struct spender {
    struct spending *to;
    int tid;            /* the kernel's number of the thread; 0: not known */
    struct ring *ring;  /* for spans (crew/ring.h); null: none */
    int64_t mark;       /* end of its last span, or of the last thing it was at */
    uint32_t step;      /* what its spans say of what it does: */
    int32_t item;
    int16_t lane;
    uint16_t whom;
    int8_t leg;
};

/* From now on the calling thread's time is counted there. Null: nowhere. */
void spend_into(struct spender *s, enum spent on);
/* What the calling thread's time is counted by, also while it is paused; null: nothing. */
struct spender *spend_owner(void);
/* The calling thread's time is not counted until it is resumed: then the time in between is added
 * as `time` says, and what is left of it to UNKNOWN. */
void spend_pause(void);
void spend_resume(struct spender *s, const int64_t time[SPENTS], int64_t now);
/* The calling thread goes on to something else. Returns what it was at. */
enum spent spend(enum spent on);
/* The same at this time of base_now. */
enum spent spend_at(enum spent on, int64_t now);
/* What the calling thread is at. */
enum spent spent_now(void);

/* Spans are recorded while this is set: by the thread that opens steps in this process, between
 * two of them. */
extern atomic_bool spend_records;
static inline bool spend_is_recorded(void) {
    return atomic_load_explicit(&spend_records, memory_order_relaxed);
}
/* So many threads of a process beside its team have rings: those that read ahead, and the last is
 * the one that writes checkpoints (span_thread_at). */
#define SPEND_BESIDE 9
/* A thread that belongs to no team, as one that reads ahead, begins to do something. *s and *to are
 * its own. ring: nullable. */
void spend_beside(struct spender *s, struct spending *to, struct ring *ring, uint32_t step,
                  int lane);
/* What the calling thread's next spans say. whom: the thread that a wait is for. */
void spend_lane(int lane, int leg);
void spend_whom(int whom, int item);
/* The calling thread, if it records; else null. */
struct spender *spend_recorder(void);
/* Puts a span of the calling thread into its ring, from its mark up to now, which is the next
 * mark. */
void spend_operator(int item, bool first);
/* A span around others. */
void spend_around(int kind, int64_t begin, int64_t end);

/* The thread is gone. Its time up to now is added to what it was at. */
void spending_end(struct spending *s, int64_t now);
/* Copies the times up to now, of the present activity, too. For any thread. Returns their sum. */
int64_t spending_read(const struct spending *s, int64_t now, int64_t time[SPENTS]);
/* Adds them to those in `sum`. */
void spending_add(const struct spending *s, int64_t now, int64_t sum[SPENTS]);
/* Of such times, those of a group. */
int64_t spent_of(const int64_t time[SPENTS], enum spent_group group);

#endif
