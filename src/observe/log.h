/* SPDX-License-Identifier: Apache-2.0
 * A log for programs and people: a JSON object a line,
 *
 *     {"time":"2026-01-31T12:00:00.123Z","level":"warning","event":"death","worker":1,"step":17}
 *
 * in the order time, level, event, fields. Lines are written immediately. The file stays below a
 * budget: when half of that is used, it is renamed to FILE.old, which it replaces, and a new one
 * begins. If a process was killed while writing a line, the next one to open the file removes it.
 *
 * agent.log is the agent's; worker-K.log that of the worker at place K (src/run/worker_log.h);
 * run.log that of a run of one process; outputs.jsonl says when workers have printed. */
#ifndef OBSERVE_LOG_H
#define OBSERVE_LOG_H

#include "base/base.h"

#define LOG_BUDGET (16 << 20) /* bytes, FILE.old included */

struct log {
    int fd; /* -1: none */
    char *path;
    int64_t written, budget;
};

enum log_level { LOG_INFO, LOG_WARNING, LOG_ERROR };

/* The time of a line, from nanoseconds since 1970. */
#define LOG_TIME 32
void log_time(int64_t time, char text[LOG_TIME]);

/* Opens the file for appending. If path is null, nothing is written. */
tri_status log_open(struct log *l, const char *path, int64_t budget);
void log_close(struct log *l);

/* Adds the text as a JSON string. */
void log_quote(struct text *t, const char *value);
/* fields: "worker=%d step=%lld text=%s": a name, "=", and one conversion each, separated by single
 * spaces: d, lld, llu, g, or s, which is quoted. */
void log_event(struct log *l, enum log_level level, const char *event, const char *fields, ...)
    TRI_PRINTF(4, 5);

#endif
