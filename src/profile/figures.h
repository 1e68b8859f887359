/* SPDX-License-Identifier: Apache-2.0
 * What `trireme report` knows of a run: read once from run.json, workers.series, metrics.jsonl and
 * logs, of all hosts. Whatever is missing is 0, "" or NaN; so it is for runs of earlier versions,
 * that go on, or were killed. Texts that are printed are as of text_add_escaped. */
#ifndef PROFILE_FIGURES_H
#define PROFILE_FIGURES_H

#include "crew/group.h"
#include "crew/spend.h"
#include "observe/run_file.h"
#include "profile/read.h"

#define FIGURES_TENTHS 10

/* Shares of a worker's time are of that between the first step and the last. The recent part is
 * the last third of the run's time. */
struct figures_worker {
    const char *name; /* "worker 1", "h0's worker 1" */
    int host, place;
    double spent[SPENTS], whole[SPENTS]; /* shares of the recent part, and of all */
    double no_core; /* share of the recent part, without what a quota caused */
    double lane;    /* seconds of one thread that a lane takes, recently; 0: it did none */
    double lanes, lost; /* of the run */
    double memory;  /* bytes, at most */
    int64_t slow_since; /* the step since which its lanes take longer than a slow worker's may; 0:
                         * they don't */
    int64_t no_core_since; /* the same of no_core */
};

/* A place for a worker, as logs and run.json tell of it; of all that had one. */
struct figures_member {
    int host, place;
    int rank;           /* the latest; -1: a spare, or it has left */
    const char *state;  /* "starts", "works", "spare", "died", "left"; once the run is over, "died",
                         * "ended" or "was killed" */
    int restarts;       /* after deaths among the last RUN_FAULTS faults */
    bool seated;        /* it has seats of a mesh */
    struct crew_seats seats;
    char stages[GROUP_STAGES]; /* of a pipeline; "": none */
    double ranked, since;      /* when rank and state were logged */
};

struct figures_host {
    const char *name, *folder; /* name: "" if there is only one */
    struct run_read run;       /* empty without run.json */
    double cores, workers;
    double throttled_periods;  /* share of periods in which it was, recently */
    double throttled, stolen;  /* shares of all cores' time, recently */
    double limit, store;       /* bytes; limit: of memory; 0: not known */
};

/* What a log says. */
struct figures_event {
    double time; /* seconds since 1970 */
    int host, worker; /* worker: -1: none */
    int pid;          /* of the process that it is about; 0: none */
    const char *name, *text;
    double cost;
};

/* A time of the run, in order. */
struct figures_frame {
    double end, covers; /* seconds; end: since 1970, if run.json says when the run began */
    double took;        /* by a step; 0: none ended */
    double steps, slowest;
    int64_t step;
    float before, beside[SPENTS]; /* shares: before the first step; the most of all workers */
};

enum figures_loss {
    LOSS_STARTS,
    LOSS_DEATHS,
    LOSS_STALLS,
    LOSS_REPEATED,
    LOSS_SAVES,
    LOSS_EVALUATIONS,
    LOSS_CALLBACKS,
    LOSS_PAUSES,
    LOSS_SLOW,
    LOSSES
};

struct figures {
    const char *directory;
    const struct profile *profile; /* with its study; null: none */
    const struct run_read *run;    /* the first host's */
    bool has_run, has_series, old; /* old: its version recorded no causes of waits */
    struct figures_worker *worker;
    size_t n; /* workers */
    struct figures_member *member;
    size_t n_members, room_members; /* by host and place */
    struct figures_host *host;
    size_t n_hosts; /* at least 1 */
    double threads; /* of a worker, at least 1 */
    bool divided;   /* lanes are in pieces, as for stages or seats */
    double spent[SPENTS], whole[SPENTS]; /* means of workers */
    struct figures_event *event; /* warnings, and what else rules read, by host */
    size_t n_events, room_events;
    struct figures_frame *frame; /* of the first host */
    size_t n_frames, room_frames;
    int64_t last;     /* the last step done */
    int64_t recent;   /* the first step of the recent part; 0: not known */
    double step;      /* seconds, median of the recent part; 0: not known */
    double tenth[FIGURES_TENTHS]; /* the same of each tenth of the run's time; 0: too few */
    int best;         /* the tenth in which steps take shortest */
    int64_t slower_since; /* the step since which they take longer than in that, as drift */
    double slower_time;   /* and when, seconds since 1970 */
    double wall, useful, lost[LOSSES]; /* seconds of all entries; what is not useful, by cause */
    double first_start;
    /* Of metrics.jsonl: lines, those whose loss is no number, and the first of these; the share of
     * updates that were skipped, or NaN. */
    int64_t lines, bad, first_bad, damaged_lines, damaged_frames;
    int64_t bad_runs, bad_series; /* files that cannot be read */
    double skipped;
    struct arena arena;
};

/* Fails if the directory has no files of a run, or some of a later version. Free it in any case. */
tri_status figures_read(const char *directory, struct figures *f);
void figures_free(struct figures *f);

/* The value of an option of the run, as "lanes", also of the agent; null: not given. */
const char *figures_option(const struct figures *f, const char *name);
struct figures_interval {
    double begin, end;
};
/* The time that is in any of them. Sorts them. */
double figures_union(struct figures_interval *all, size_t n);
/* Seconds of a step in which a host sends, and how many bytes; 0: it does not. */
double figures_sends(const struct profile *p, int host, double *bytes);
/* The share of a group of kinds. */
double figures_group(const double spent[SPENTS], enum spent_group group);

/* ---- for figures*.c ---- */

/* What is summed up to FIGURES_PARTS parts of a host's frames, each of so many of them. */
#define FIGURES_PARTS 200

struct figures_place {
    double spent[SPENTS], no_core; /* seconds of the mean thread */
    double lanes, lost, memory;
};

struct figures_parts {
    struct figures *f;
    int host, places;
    size_t frames, taken; /* frames: how many there will be */
    struct figures_place *sum; /* [FIGURES_PARTS][places] */
    struct {
        int64_t step; /* the first that ended in it */
        double covers, throttled_periods, throttled, stolen; /* times seconds */
    } part[FIGURES_PARTS];
};

/* To be freed: sum. */
tri_status figures_begin(struct figures *f, int host, int places, size_t frames,
                         struct figures_parts *p);
/* Takes a frame; share: [3], throttled_periods, throttled, stolen; place: [places], shares. */
tri_status figures_take(struct figures_parts *p, const struct figures_frame *frame,
                        const double share[3], const struct figures_place *place);
/* Makes the workers of the host. */
tri_status figures_end(struct figures_parts *p);

/* metrics.jsonl. Without a series it has the times of workers, as far as they are known. */
tri_status figures_lines(struct figures *f, const char *path, bool times);
tri_status figures_logs(struct figures *f, int host);
/* What an event of a log says of the worker at a place. */
tri_status figures_member_event(struct figures *f, int host, double time,
                                const struct json_t *event);
/* Once all of them have been read. */
tri_status figures_members(struct figures *f, int host);
/* From frames: steps, tenths, goodput. */
void figures_time(struct figures *f);

#endif
