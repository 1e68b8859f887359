/* SPDX-License-Identifier: Apache-2.0
 * The logs of a run's agents and workers, and what workers have printed, as one, in the order of
 * time. */
#ifndef PROFILE_LOGS_H
#define PROFILE_LOGS_H

#include "base/base.h"

/* What is left out; 0 and null: nothing. */
struct logs_filter {
    int64_t worker; /* others than this place; -1: none */
    int64_t since;  /* what comes before the first line about this step or a later one */
    /* Lower levels, other events, lines in which neither `text` nor `event` nor `from` of struct
     * logs_line has this. */
    const char *level, *event, *grep;
};

/* Texts are as of text_add_escaped, and "" if there is none. */
struct logs_line {
    const char *time, *from; /* "2026-01-31T12:00:00.123Z", "h0 worker 1" */
    const char *level, *event; /* event: "output" of what a worker has printed */
    const char *text; /* fields, "step=3  pid=71"; what was printed; a line that is no event */
    int64_t step, worker; /* -1: none */
};

/* "info" is 0, "error" 2; -1: it is none. */
int logs_level(const char *name);

struct logs;
/* Close it in any case. */
tri_status logs_open(struct logs **l, const char *directory, const struct logs_filter *filter,
                     void (*take)(const struct logs_line *line, void *to), void *to);
/* Takes the lines that have come since the last call. */
tri_status logs_read(struct logs *l);
/* How many lines so far have an earlier time than the line before in their file: a clock was set
 * back. */
int64_t logs_back(const struct logs *l);
/* Before the next call: logs may have been replaced. */
void logs_follow(struct logs *l);
/* Whether the run, or all its hosts, have ended. */
bool logs_ended(const struct logs *l);
/* What no time is known of, and a last line without an end. */
tri_status logs_rest(struct logs *l);
void logs_close(struct logs *l);

#endif
