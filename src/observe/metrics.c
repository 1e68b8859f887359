/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "observe/files.h"
#include "observe/json.h"
#include "observe/tail.h"

#define ROW_INTERVAL 0.01
#define FLUSH_INTERVAL 1.0
#define DIGITS 9 /* enough to read back a float exactly */

/* A dying writer may hold the lock for a moment, so this is tried again with each line. */
static void lock(struct metrics *m) {
    if (!m->locked) m->locked = !flock(fileno(m->file), LOCK_EX | LOCK_NB);
}

/* The writer before may still be dying, or be a host that has just lost its lease. Its last line
 * must be there before more is written. */
static void wait_for_lock(struct metrics *m) {
    const double until = base_seconds() + OBSERVE_DIES;
    while (lock(m), !m->locked && base_seconds() < until)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    if (!m->locked)
        fprintf(stderr, "trireme: %s is still locked by the process that wrote it before; it goes "
                "on nevertheless\n", m->path);
}

void metrics_yield(struct metrics *m) {
    if (m->locked) flock(fileno(m->file), LOCK_UN);
    m->locked = false;
}

static tri_status name_file(struct metrics *m, const char *directory) {
    struct text path = {0};
    text_add(&path, "%s/metrics.jsonl", directory);
    m->path = path.data;
    return path.failed ? base_no_memory("the name of metrics.jsonl") : TRI_OK;
}

static tri_status open_stream(struct metrics *m, int flags, const char *mode) {
    int fd = base_open(m->path, flags | O_CREAT, NULL);
    if (fd < 0)
        return base_fail(TRI_FAILED, "cannot write %s; choose another directory with --out",
                         tri_message());
    m->file = fdopen(fd, mode);
    if (m->file) return TRI_OK;
    close(fd);
    return base_no_memory(m->path);
}

static tri_status open_file(struct metrics *m, char *directory) {
    tri_status status = name_file(m, directory);
    if (!status) status = files_make_directory(directory);
    if (!status) status = open_stream(m, O_WRONLY, "w");
    if (status) return status;
    lock(m);
    if (!m->locked && errno == EWOULDBLOCK)
        return base_fail(TRI_FAILED, "%s is being written by another run; choose another "
                         "directory with --out", m->path);
    return ftruncate(fileno(m->file), 0)
               ? base_fail(TRI_FAILED, "cannot write %s: %s", m->path, strerror(errno))
               : TRI_OK;
}

/* ---- continuing a file ---- */

static void read_last(struct metrics *m, const char *line) {
    json_t *object = line ? json_loads(line, 0, NULL) : NULL;
    m->through = json_whole_of(object, "step", 0);
    m->evaluated = json_object_get(object, "eval") ? m->through : m->through - 1;
    json_decref(object);
}

static tri_status reopen_file(struct metrics *m, char *directory) {
    char *last = NULL;
    tri_status status = name_file(m, directory);
    if (!status) status = files_make_directory(directory);
    if (!status) status = open_stream(m, O_RDWR | O_APPEND, "a+");
    if (status) return status;
    wait_for_lock(m);
    status = tail_mend(fileno(m->file), &last);
    read_last(m, last);
    free(last);
    return status;
}

/* ---- opening ---- */

static tri_status check_names(int n, const char *const *name) {
    static const char *const ours[] = {"step", "steps", "samples", "epoch", "lr", "seconds",
                                       "workers", "eval", "sent", "received", "sent_whole",
                                       "exposed"};
    for (int i = 0; i < n; i++)
        for (size_t k = 0; k < COUNT(ours); k++)
            if (!strcmp(name[i], ours[k]))
                return base_fail(TRI_USAGE, "a metric is named \"%s\", which is a field of "
                                 "metrics.jsonl: choose another name", name[i]);
    return TRI_OK;
}

static tri_status open_either(struct metrics *m, const char *directory, int n,
                              const char *const *name, bool continues) {
    *m = (struct metrics){0};
    if (!directory) return TRI_OK;
    if (check_names(n, name)) return TRI_USAGE;
    if (!*directory)
        return base_fail(TRI_USAGE, "the directory for metrics has an empty name (--out)");
    char *copy = strdup(directory);
    if (!copy) return base_no_memory(directory);
    tri_status status = continues ? reopen_file(m, copy) : open_file(m, copy);
    free(copy);
    if (!status) status = averages_open(&m->since, n);
    if (status) {
        if (m->file) fclose(m->file);
        free(m->path);
        *m = (struct metrics){0};
    }
    return status;
}

tri_status metrics_open(struct metrics *m, const char *directory, int n, const char *const *name) {
    return open_either(m, directory, n, name, false);
}

tri_status metrics_resume(struct metrics *m, const char *directory, int n,
                          const char *const *name) {
    return open_either(m, directory, n, name, true);
}

/* Records a failure and closes the file. */
static void fail(struct metrics *m, int64_t step, const char *why) {
    m->status = TRI_FAILED;
    snprintf(m->error, sizeof m->error, "%s lacks the steps from %lld on: %s", m->path,
             (long long)step, why);
    fclose(m->file);
    m->file = NULL;
}

/* What has been added since the line before. */
static int add_hosts(struct metrics *m, const struct observed_hosts *now, json_t *object) {
    const struct {
        const char *name;
        double added;
    } bytes[] = {{"sent", now->sent - m->before.sent},
                 {"received", now->received - m->before.received},
                 {"sent_whole", now->sent_whole - m->before.sent_whole}};
    int bad = 0;
    for (size_t i = 0; i < COUNT(bytes); i++)
        bad |= json_object_set_new(object, bytes[i].name,
                                   json_integer((json_int_t)bytes[i].added));
    bad |= json_object_set_new(object, "exposed", json_finite(now->exposed - m->before.exposed));
    m->before = *now;
    return bad;
}

static json_t *row(struct metrics *m, const struct observed *o) {
    json_t *object = json_object();
    int bad = json_object_set_new(object, "step", json_integer(o->step));
    if (o->step - m->through > 1)
        bad |= json_object_set_new(object, "steps", json_integer(o->step - m->through));
    bad |= json_object_set_new(object, "epoch", json_integer(o->epoch));
    bad |= json_object_set_new(object, "samples", json_integer(m->since.samples));
    for (int i = 0; i < o->n; i++)
        bad |= json_object_set_new(object, o->name[i], json_finite(averages_mean(&m->since, i)));
    bad |= json_object_set_new(object, "lr", json_finite(o->lr));
    bad |= json_object_set_new(object, "seconds", json_finite(o->now));
    if (o->hosts) bad |= add_hosts(m, o->hosts, object);
    if (!bad) return object;
    json_decref(object);
    return NULL;
}

static json_t *evaluation_row(const struct observed *o) {
    json_t *results = json_object();
    int bad = !results;
    for (int i = 0; i < o->n; i++)
        bad |= json_object_set_new(results, o->name[i], json_finite(o->value[i]));
    if (!bad)
        return json_pack("{s:I,s:I,s:o,s:f}", "step", (json_int_t)o->step, "epoch",
                         (json_int_t)o->epoch, "eval", results, "seconds", o->now);
    json_decref(results);
    return NULL;
}

/* Writes and frees the object. Returns null, or the reason for a failure. */
static const char *write_row(const struct metrics *m, json_t *object) {
    if (!object) return "out of memory, or a name that is not UTF-8";
    errno = 0;
    int bad = json_dumpf(object, m->file, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS));
    bad |= fputc('\n', m->file) == EOF;
    json_decref(object);
    return bad ? strerror(errno) : NULL;
}

/* Writes the line of the steps since the preceding one. */
static void put(struct metrics *m, bool flush) {
    const struct observed *o = &m->last;
    const char *why = write_row(m, row(m, o));
    m->written = o->now;
    m->through = o->step;
    lock(m);
    averages_clear(&m->since);
    if (!why && (flush || m->at_once || o->now - m->flushed >= FLUSH_INTERVAL)) {
        m->flushed = o->now;
        if (fflush(m->file)) why = strerror(errno);
    }
    if (why) fail(m, o->step, why);
}

void metrics_step(struct metrics *m, const struct observed *o) {
    if (!m->file || o->step <= m->through) return;
    averages_add(&m->since, o);
    m->last = *o;
    bool last = o->step == o->total, due = o->step == 1 || o->now - m->written >= ROW_INTERVAL;
    if (m->every) due = o->step % m->every == 0;
    if (last || due) put(m, last);
}

void metrics_evaluation(struct metrics *m, const struct observed *o) {
    if (!m->file || o->step <= m->evaluated) return;
    if (m->since.steps) put(m, true);
    if (!m->file) return;
    m->evaluated = o->step;
    errno = 0;
    const char *why = write_row(m, evaluation_row(o));
    if (!why && fflush(m->file)) why = strerror(errno);
    if (why) fail(m, o->step, why);
}

tri_status metrics_close(struct metrics *m) {
    if (m->file && m->since.steps) put(m, true);
    if (m->file && fclose(m->file)) {
        m->status = TRI_FAILED;
        snprintf(m->error, sizeof m->error, "%s lacks its last steps: %s", m->path,
                 strerror(errno));
    }
    tri_status status = m->status;
    if (status) base_fail(status, "%s", m->error);
    averages_close(&m->since);
    free(m->path);
    *m = (struct metrics){0};
    return status;
}
