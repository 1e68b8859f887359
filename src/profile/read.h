/* SPDX-License-Identifier: Apache-2.0
 * Reads a profile: DIR/profile/N, or with several hosts DIR/hosts/NAME/profile/N, of a run that
 * goes on, has ended, or was killed. Files that are cut or damaged give fewer spans; what is
 * missing is counted. All texts are as of text_add_escaped. Besides spans (crew/spans.h) there are
 *
 *     items.jsonl   what is computed. A first line with "version" is about all, as far as known:
 *                       {"version":1,"steps":[10,20],"lanes":8,"threads":2,"workers":2,
 *                        "tracks":2,"waiting":0.2,"memory":{"parameters":1000,"optimizer":2000,
 *                        "slots":500,"carried":0,"data":100}}
 *                   waiting: the share of the time of a pipeline's tracks in which they wait if
 *                   all legs take the same; memory: planned bytes of all processes, apart from
 *                   their arenas. Then a line per item, in the order of their numbers; only
 *                   operator and name must be there:
 *                       {"operator":"conv2d","unit":"conv2d+relu","name":"layer1.0.conv1.conv2d",
 *                        "scope":"layer1/0","phase":"lane","size":0,"stage":0,"leg":0,"seat":-1,
 *                        "move":null,"moved":0,"bucket":3,"backward":true,
 *                        "in":["f32[8,3,32,32]"],"out":["f32[8,16,32,32]"],"flops":1.2e9,
 *                        "bytes":4.1e6,"live":123456}
 *                   bytes: what the kernel touches; moved: what a move brings to others, of the
 *                   first of its items; live: bytes of an arena
 *     rates.json    {"rate":{"f32":1e11},"bandwidth":2e10} of one thread of the host: operations
 *                   per second, by type of an operator's first output, and bytes per second.
 *                   Without it, that in DIR/profile/N counts for all hosts
 *     clocks.json   of a host, {"host":"h1","number":1,"offset_ns":-120,"uncertainty_ns":900}:
 *                   its number in the run, what to add to its times, and by how much that may be
 *                   wrong */
#ifndef PROFILE_READ_H
#define PROFILE_READ_H

#include "base/base.h"
#include "crew/spans.h"

#define PROFILE_VERSION 1 /* of items.jsonl */
#define PROFILE_STEPS 1000000 /* of a profile with more, none is read */

/* Texts are "" and numbers -1 where they are not known, flops and bytes 0. size to bucket: at most
 * INT_MAX. */
struct profile_item {
    const char *operator, *unit, *name, *scope, *phase, *in, *out; /* in: "f32[8,3] f32[3,4]" */
    const char *move; /* why it moves something; null: it does not */
    int64_t size, stage, leg, seat, bucket, live;
    double flops, bytes, moved;
    double wire; /* of a transfer, bytes on the link, at most; `bytes` are those in memory */
    bool backward;
};

struct profile_rate {
    const char *type;
    double flops;
};

struct profile_step {
    int64_t begin, end, next; /* next: when the next one begins, or its own end */
    uint32_t step;
};

/* What memory is planned for, apart from arenas. */
enum profile_part { PART_PARAMETERS, PART_OPTIMIZER, PART_SLOTS, PART_CARRIED, PART_DATA, PARTS };
extern const char *const profile_parts[PARTS];

struct profile_host {
    const char *name; /* "" if there is only one */
    const char *path; /* of its files: DIR or DIR/hosts/NAME */
    int number;       /* as in span.whom of transfers */
    int threads;      /* of each worker */
    struct profile_item *item;
    int n_items;
    struct profile_step *step; /* in order of time */
    int n_steps;
    struct profile_rate *rate;
    int n_rates;
    double bandwidth; /* 0: not known */
    int64_t lanes, tracks; /* tracks: of a pipeline; 0: not known */
    double waiting;        /* of these tracks; negative: not known */
    int64_t part[PARTS];   /* bytes; -1: not known */
    bool clock;                  /* its clock has been compared (clocks.json) */
    int64_t offset, uncertainty; /* what has been added to its times, and may be wrong by */
    int64_t realtime;            /* of a span file's header */
};

struct profile_thread {
    int host, place, thread;
    enum span_thread what;
    int pid, tid;
    struct span *span; /* in the order of their ends */
    size_t n;
};

struct profile {
    struct arena arena;
    char *name;                    /* N */
    char *folder;                  /* of the first host; with several, DIR/profile/N */
    struct profile_host *host;     /* by name */
    struct profile_thread *thread; /* by host, place, thread */
    int n_hosts, n_threads;
    int64_t begin, end; /* of all spans */
    int64_t first, last; /* steps */
    size_t spans;
    /* What is missing: spans that were lost while recording, files that end early, spans and lines
     * that are damaged. */
    int64_t lost, cut, damaged;
    struct study *study; /* profile/study.h; null: it has not been made */
};

/* name: "10" or "10.1"; null: the one that begins last. Free it in any case. */
tri_status profile_read(const char *directory, const char *name, struct profile *p);
void profile_free(struct profile *p);

/* By number in host and worker; null: there is no such thread. */
const struct profile_thread *profile_thread_at(const struct profile *p, int host, int place,
                                               int thread);
/* The item of a span; null: none. */
const struct profile_item *profile_item_of(const struct profile *p, const struct profile_thread *t,
                                           const struct span *s);
bool profile_is_wait(const struct span *s);
/* How many of a thread's spans have ended until then. */
size_t profile_until(const struct profile_thread *t, int64_t end);
/* What ended last on a thread until then, but for waits; null: nothing since `begin`. */
const struct span *profile_last(const struct profile_thread *t, int64_t begin, int64_t end);
/* The thread that a wait of thread i says has ended it, and what ended there last until then; -1:
 * not known. */
int profile_ended_by(const struct profile *p, int i, const struct span *wait,
                     const struct span **last);

#endif
