/* SPDX-License-Identifier: Apache-2.0
 * DIR/run.json says what ran, how often it was started, and what that cost. It is replaced as a
 * whole, readable by its owner alone, and has one writer: the agent, or a run of one process.
 *
 *     {"format":1,"version":"0.1.0","title":"lenet5","command":["trireme","train",...],
 *      "cores":8,"workers":2,"threads":1,"hosts":["h0","h1"],
 *      what the network's process knows (run_file_about): "options":{"--batch":"64"},
 *      "plan":"...","grain":"9a...","placement":"07...","device":"cpu (...)","isa":"avx2",
 *      "checkpoints":"/home/me/ck","steps":1000,"lanes":8,"batch":64,"parameters":44426,
 *      "memory":132000000,"predicted_step":null,
 *      "entries":[{"host":"h0","pid":71,"process_start":8123,"begin":1700000000.1,"end":null,
 *                  "first":1,"last":400,"exit":null}],
 *      "totals":[{"worker":0,"compute":12.5,"lanes":0.3}],
 *      "deaths":1,"stalls":0,"takeovers":0,
 *      "faults":[{"kind":"death","time":1700000001.2,"worker":1,"step":17,"cost":0.4,
 *                 "text":"..."}]}
 *
 * An entry describes a start, and has no end if it was killed. Points in time are seconds since
 * 1970; process_start is that of /proc/PID/stat. Totals are seconds since the first entry, by what
 * they were spent on. Faults are the last RUN_FAULTS deaths, stalls and takeovers, with the seconds
 * until the rank computed again, or, of a stall, without progress. Costs may overlap: that of a
 * takeover is that of the death before it. What is not known is null or missing. Of an entry that
 * was killed, steps and totals may be ten seconds old. */
#ifndef OBSERVE_RUN_FILE_H
#define OBSERVE_RUN_FILE_H

#include "base/base.h"

#define RUN_FORMAT 1
#define RUN_FAULTS 1000

/* ---- writing ---- */

struct run_file; /* null: nothing is written, and the functions below do nothing */

struct run_start {
    const char *title;
    char *const *command; /* a null ends it */
    const char *host;     /* null: this machine's name */
    int hosts;
    const char *const *host_name; /* [hosts]; 0: one */
    int workers, threads, cores;
};

/* Begins an entry and writes the file. goes_on: what the file has is of the same run, so its
 * entries, totals and faults go before. A null path makes *f null. */
tri_status run_file_begin(const char *path, const struct run_start *start, bool goes_on,
                          struct run_file **f);
/* The same with another file, which is then removed. What cannot be read is left where it is. */
void run_file_continue(struct run_file *f, const char *earlier);
/* Adds the fields of an object, a text that run_file_about has made. */
void run_file_describe(struct run_file *f, const char *text);
/* The first step of this entry, and the last one done. */
void run_file_steps(struct run_file *f, int64_t first, int64_t last);
/* This entry's seconds of a worker. Those of the earlier entries are added. */
void run_file_total(struct run_file *f, int worker, const char *what, double seconds);
/* kind: "death", "stall" or "takeover". cost: NaN: not known yet. Returns its number. */
int64_t run_file_fault(struct run_file *f, const char *kind, int worker, int64_t step,
                       const char *text, double cost);
void run_file_cost(struct run_file *f, int64_t fault, double cost);
/* Whether the file should be written at this time of base_seconds: a second after it was if there
 * are faults since, else ten. */
bool run_file_is_due(const struct run_file *f, double at);
void run_file_write(struct run_file *f);
/* The entry ends with this exit code. Writes and frees. */
void run_file_end(struct run_file *f, int code);

/* What the network's process knows. */
struct run_about {
    int n_options;
    const char *const *option; /* [2 * n_options]: name, value, ... */
    const char *plan, *grain, *placement; /* hashes; nullable */
    const char *device, *isa; /* isa: nullable */
    const char *checkpoints;  /* their directory's path, without links; nullable */
    int64_t steps, lanes, batch, parameters;
    int64_t memory; /* bytes that are planned, of all processes of the host with their programs */
};
void run_file_about(const struct run_about *about, struct text *out);

/* ---- reading ---- */

struct run_entry {
    const char *host;
    int64_t pid, process_start, first, last; /* -1: not known */
    double begin, end;                       /* NaN: not known */
    int exit;                                /* -1: it has none */
};

struct run_fault {
    const char *kind, *text;
    double time, cost; /* cost: NaN: not known */
    int worker;        /* -1: none */
    int64_t step;
};

/* Numbers are -1, and texts "", if the file has none. */
struct run_read {
    const char *version, *title, *plan, *grain, *placement, *device, *isa;
    const char *checkpoints;
    int64_t cores, workers, threads, steps, lanes, batch, parameters, memory;
    double predicted_step; /* seconds; NaN: none */
    int64_t deaths, stalls, takeovers;
    const char **command, **host;
    const char **option; /* name, value, ... */
    struct run_entry *entry;
    struct run_fault *fault;
    size_t n_command, n_hosts, n_options, n_entries, n_faults;
    struct json_t *root; /* owns the texts; has the totals */
    struct arena arena;
};

enum run_state {
    RUN_GOES_ON,
    RUN_KILLED,
    RUN_GOES_ON_OR_KILLED, /* on another machine, or nobody knows */
    RUN_FINISHED,
    RUN_STOPPED,
    RUN_FAILED,
    RUN_STATES
};
enum run_state run_file_state(const struct run_entry *last);
const char *run_state_name(enum run_state s); /* "goes on" */

/* Fails if the file is no run.json, or one of a later format. Fields that are missing or of another
 * type are as if they were not known. */
tri_status run_file_read(const char *path, struct run_read *r);
tri_status run_file_parse(const char *name, const char *text, size_t bytes, struct run_read *r);
void run_file_free(struct run_read *r);

#endif
