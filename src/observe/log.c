/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/log.h"

#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "observe/tail.h"

static tri_status reopen(struct log *l) {
    struct stat st;
    l->fd = base_open(l->path, O_RDWR | O_CREAT | O_APPEND, NULL);
    if (l->fd < 0) return base_fail(TRI_FAILED, "cannot write %s", tri_message());
    tri_status status = tail_mend(l->fd, NULL);
    l->written = status || fstat(l->fd, &st) ? 0 : st.st_size;
    return status ? base_fail(status, "cannot write %s: %s", l->path, tri_message()) : TRI_OK;
}

tri_status log_open(struct log *l, const char *path, int64_t budget) {
    *l = (struct log){.fd = -1, .budget = budget};
    if (!path) return TRI_OK;
    l->path = strdup(path);
    if (!l->path) return base_no_memory("a log");
    tri_status status = reopen(l);
    if (status) log_close(l);
    return status;
}

void log_close(struct log *l) {
    if (l->fd >= 0) close(l->fd);
    free(l->path);
    *l = (struct log){.fd = -1};
}

static void rotate(struct log *l) {
    struct text old = {0};
    text_add(&old, "%s.old", l->path);
    if (!old.failed && !rename(l->path, old.data)) {
        close(l->fd);
        reopen(l);
    }
    text_free(&old);
}

void log_time(int64_t time, char text[LOG_TIME]) {
    const time_t seconds = time / 1000000000;
    struct tm utc;
    char day[LOG_TIME - 8] = "?";
    if (gmtime_r(&seconds, &utc)) strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &utc);
    base_format(text, LOG_TIME, "%s.%03dZ", day, (int)(time / 1000000 % 1000));
}

static void add_time(struct text *t) {
    char text[LOG_TIME];
    log_time(base_realtime(), text);
    text_add(t, "{\"time\":\"%s\"", text);
}

void log_quote(struct text *t, const char *value) {
    json_t *j = json_stringn_nocheck(value, strlen(value));
    char *quoted = j ? json_dumps(j, JSON_ENCODE_ANY) : NULL;
    text_add(t, "%s", quoted ? quoted : "null");
    free(quoted);
    json_decref(j);
}

/* Adds one field; returns the position after it. */
static const char *add_field(struct text *t, const char *f, va_list *arg) {
    int name = (int)strcspn(f, "=");
    text_add(t, ",\"%.*s\":", name, f);
    f += name + 1;
    const char *end = f + strcspn(f, " ");
    if (end[-1] == 's')
        log_quote(t, va_arg(*arg, const char *));
    else if (end[-1] == 'g') {
        double x = va_arg(*arg, double);
        text_add(t, isfinite(x) ? "%.6g" : "null", x);
    } else if (end - f > 3)
        text_add(t, "%lld", va_arg(*arg, long long));
    else
        text_add(t, "%d", va_arg(*arg, int));
    return *end ? end + 1 : end;
}

/* If a line is written only in part, as on a full disk, that part is removed. */
static void put(struct log *l, const struct text *line) {
    if (l->budget && l->written && l->written + (int64_t)line->size > l->budget / 2) rotate(l);
    if (l->fd < 0) return;
    if (write(l->fd, line->data, line->size) == (ssize_t)line->size)
        l->written += (int64_t)line->size;
    else
        tail_mend(l->fd, NULL);
}

void log_event(struct log *l, enum log_level level, const char *event, const char *fields, ...) {
    static const char *const levels[] = {"info", "warning", "error"};
    if (l->fd < 0) return;
    struct text t = {0};
    va_list arg;
    va_start(arg, fields);
    add_time(&t);
    text_add(&t, ",\"level\":\"%s\",\"event\":\"%s\"", levels[level], event);
    for (const char *f = fields; *f;) f = add_field(&t, f, &arg);
    va_end(arg);
    text_add(&t, "}\n");
    if (!t.failed) put(l, &t);
    text_free(&t);
}
