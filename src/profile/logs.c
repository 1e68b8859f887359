/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/logs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "observe/files.h"
#include "observe/json.h"
#include "observe/log.h"
#include "profile/line_file.h"

/* Files of a run, by their names. Each may have a .old with earlier lines. */
static const struct kind {
    const char *name; /* for sscanf, up to a number if it has one */
    const char *from; /* who writes it, if it is no worker */
    bool ends;        /* its event `end` is that of the run, or of a host */
} kinds[] = {
    {"agent.log%n", "agent", true},
    {"run.log%n", "run", true}, /* of one process */
    {"worker-%d.log%n", "", false},
#define OUTPUTS (&kinds[3])
    {"outputs.jsonl%n", "", false}, /* when worker-K.out have grown */
#define OUTPUT (&kinds[4])
    {"worker-%d.out%n", "", false},
};

/* A file that is read to its end, line by line. */
struct stream {
    const struct kind *kind;
    bool old;          /* FILE.old, to which nothing is added */
    char *path, *from; /* from: "h0 worker 1" */
    char *folder;
    int place;         /* of the worker; -1: none */
    struct line_file file; /* closed: it is not there yet, or over */
    ino_t inode;
    char *line;
    json_t *json;     /* of the line; null: it is none */
    const char *time; /* in it; "" */
    char before[LOG_TIME]; /* of the line before */
    bool has;         /* a line that has not been taken */
    bool ended;       /* of an agent: it has, or others say that its host is lost */
    /* Of OUTPUT: bytes read, those of FILE.old, too; of these, where the part begins that notes are
     * about; the end of the last one. */
    int64_t at, base, noted;
};

struct logs {
    struct logs_filter filter;
    struct stream *stream;
    size_t n, capacity;
    bool begun; /* a line of step `since` has come */
    int64_t back;
    void (*take)(const struct logs_line *line, void *to);
    void *to;
};

/* ---- the files ---- */

static void open_stream(struct stream *s) {
    struct stat is;
    if (!line_file_open(&s->file, s->path, 0) && !fstat(s->file.fd, &is)) s->inode = is.st_ino;
}

/* Of a file's name. Null: it is none of ours. *place: of the worker; -1: none. */
static const struct kind *kind_of(const char *name, int *place, bool *old) {
    for (size_t i = 0; i < COUNT(kinds); i++) {
        int k = -1, n = 0;
        if (strstr(kinds[i].name, "%d"))
            sscanf(name, kinds[i].name, &k, &n);
        else
            sscanf(name, kinds[i].name, &n);
        *old = n && !strcmp(name + n, ".old");
        *place = k;
        if (n && (!name[n] || *old)) return &kinds[i];
    }
    return NULL;
}

/* host: "" or "h0". */
static tri_status add_stream(struct logs *m, const char *folder, const char *host,
                             const char *name) {
    struct text path = {0}, from = {0};
    struct stream s = {.folder = strdup(folder)};
    s.kind = kind_of(name, &s.place, &s.old);
    text_add(&path, "%s/%s", folder, name);
    text_add_escaped(&from, host);
    text_add(&from, "%s", *host ? " " : "");
    if (s.place < 0) text_add(&from, "%s", s.kind->from);
    else text_add(&from, "worker %d", s.place);
    s.path = path.data;
    s.from = from.data;
    if (path.failed || from.failed || !s.folder || !ARRAY_GROW(m->stream, m->n, m->capacity))
        return base_no_memory("the logs");
    m->stream[m->n++] = s;
    open_stream(&m->stream[m->n - 1]); /* what cannot be read is left out */
    return TRI_OK;
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strverscmp((*b)->d_name, (*a)->d_name); /* x.log.old before x.log, which is newer */
}

static int is_ours(const struct dirent *e) {
    int place;
    bool old;
    return kind_of(e->d_name, &place, &old) != NULL;
}

static tri_status add_files(struct logs *m, const struct run_folder *f) {
    struct dirent **entry;
    const int n = scandir(f->path, &entry, is_ours, by_name);
    tri_status status = TRI_OK;
    if (n < 0) return base_fail(TRI_FAILED, "%s: %s", f->path, strerror(errno));
    for (int i = 0; i < n; i++) {
        if (!status) status = add_stream(m, f->path, f->host, entry[i]->d_name);
        free(entry[i]);
    }
    free(entry);
    return status;
}

static tri_status add_all(struct logs *m, const char *directory) {
    struct run_folders f;
    if (access(directory, R_OK))
        return base_fail(TRI_FAILED, "%s: %s", directory, strerror(errno));
    tri_status status = run_folders(directory, &f);
    for (size_t i = 0; i < f.n && !status; i++) status = add_files(m, &f.of[i]);
    run_folders_free(&f);
    return status;
}

/* ---- lines ---- */

/* The length of a line, which ends with a zero; -1: there is no whole one. */
static ssize_t read_line(struct stream *s) {
    const ssize_t n = line_file_next(&s->file, &s->line);
    return n < 0 && s->old ? line_file_rest(&s->file, &s->line) : n; /* else it may be written */
}

/* What is no object is a line, too. */
static bool next_line(struct logs *m, struct stream *s) {
    if (s->has || !s->file.is_open || s->kind == OUTPUT) return s->has;
    if (read_line(s) < 0) return false;
    json_decref(s->json);
    s->json = json_loads(s->line, 0, NULL);
    s->time = json_text_of(s->json, "time");
    m->back += *s->time && strcmp(s->time, s->before) < 0;
    if (*s->time) base_format(s->before, sizeof s->before, "%s", s->time);
    return s->has = true;
}

/* A log that has become FILE.old: the rest of it has been read. */
static void follow_stream(struct stream *s) {
    struct stat is;
    if (s->old || stat(s->path, &is) || (s->file.is_open && is.st_ino == s->inode))
        return;
    line_file_close(&s->file);
    open_stream(s);
}

static struct stream *earliest(struct logs *m) {
    struct stream *first = NULL;
    for (size_t i = 0; i < m->n; i++) {
        struct stream *s = &m->stream[i];
        if (next_line(m, s) && (!first || strcmp(s->time, first->time) < 0)) first = s;
    }
    return first;
}

int logs_level(const char *name) {
    static const char *const levels[] = {"info", "warning", "error"};
    for (int i = 0; i < (int)COUNT(levels); i++)
        if (!strcmp(levels[i], name)) return i;
    return -1;
}

static bool passes(struct logs *m, const struct stream *s) {
    const struct logs_filter *o = &m->filter;
    const int64_t place = s->place >= 0 ? s->place : json_whole_of(s->json, "worker", -1);
    m->begun |= json_whole_of(s->json, "step", -1) >= o->since;
    if (o->since && !m->begun) return false;
    if (o->worker >= 0 && place != o->worker) return false;
    if (o->level && logs_level(json_text_of(s->json, "level")) < logs_level(o->level)) return false;
    return !o->event || !strcmp(json_text_of(s->json, "event"), o->event);
}

static void add_value(struct text *t, const json_t *v) {
    if (json_is_string(v)) {
        text_add_escaped(t, json_string_value(v));
        return;
    }
    char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII |
                                 JSON_REAL_PRECISION(6));
    text_add(t, "%s", text ? text : "?");
    free(text);
}

/* The other fields of an event. */
static void add_fields(struct text *t, const struct stream *s) {
    static const char *const beside[] = {"time", "level", "event"};
    const char *key;
    json_t *value;
    json_object_foreach(s->json, key, value) {
        bool shown = s->place < 0 || strcmp(key, "worker") != 0;
        for (size_t i = 0; i < COUNT(beside); i++) shown &= strcmp(key, beside[i]) != 0;
        if (!shown) continue;
        text_add(t, t->size ? "  " : "");
        text_add_escaped(t, key);
        text_add(t, "=");
        add_value(t, value);
    }
}

/* Gives the line away, if it has the text that is looked for. text: freed. */
static tri_status give(struct logs *m, struct logs_line line, struct text *text) {
    struct text escaped[3] = {{0}};
    const char **field[] = {&line.time, &line.level, &line.event};
    line.text = text->data ? text->data : "";
    bool failed = text->failed;
    for (int i = 0; i < 3; i++) {
        text_add_escaped(&escaped[i], *field[i]);
        *field[i] = escaped[i].data ? escaped[i].data : "";
        failed |= escaped[i].failed;
    }
    const char *grep = m->filter.grep;
    if (!failed && (!grep || strstr(line.text, grep) || strstr(line.event, grep) ||
                    strstr(line.from, grep)))
        m->take(&line, m->to);
    for (int i = 0; i < 3; i++) text_free(&escaped[i]);
    text_free(text);
    return failed ? base_no_memory("the logs") : TRI_OK;
}

static tri_status take(struct logs *m, const struct stream *s) {
    const bool event = json_is_object(s->json);
    struct text text = {0};
    if (event) add_fields(&text, s);
    else text_add_escaped(&text, s->line);
    return give(m, (struct logs_line){
                       .time = event ? s->time : "", .from = s->from,
                       .level = json_text_of(s->json, "level"),
                       .event = json_text_of(s->json, "event"),
                       .step = json_whole_of(s->json, "step", -1),
                       .worker = s->place >= 0 ? s->place : json_whole_of(s->json, "worker", -1)},
                &text);
}

/* ---- the end ---- */

/* A host that was killed says no more; the others do. */
static void note_end(struct logs *m, struct stream *s) {
    const char *event = json_text_of(s->json, "event"), *host = json_text_of(s->json, "host");
    const size_t n = strlen(host);
    const bool lost = !strcmp(event, "host-lost");
    if (s->kind->ends) s->ended = !strcmp(event, "end");
    for (size_t i = 0; n && (lost || !strcmp(event, "host-joined")) && i < m->n; i++)
        if (!strncmp(m->stream[i].from, host, n) && m->stream[i].from[n] == ' ')
            m->stream[i].ended = lost;
}

/* Of FILE.old nothing is known: what follows is in FILE. */
bool logs_ended(const struct logs *m) {
    bool all = true;
    for (size_t i = 0; i < m->n; i++) {
        const struct stream *s = &m->stream[i];
        all &= !s->kind->ends || s->old || s->ended;
    }
    return all;
}

/* ---- what workers have printed ---- */

/* n: bytes of the line that are there; taken: all of it. */
static tri_status take_output(struct logs *m, const struct stream *s, size_t n, int64_t taken,
                              const char *time) {
    struct text text = {0};
    text_add_escaped_bytes(&text, s->line, n);
    if (taken > (int64_t)n + 1) text_add(&text, "...");
    return give(m, (struct logs_line){.time = time, .from = s->from, .level = "",
                                      .event = "output", .step = -1, .worker = s->place}, &text);
}

/* The output of a worker. Null: there is none. */
static struct stream *output_of(struct logs *m, const char *folder, int64_t place, bool old) {
    for (size_t i = 0; i < m->n; i++) {
        struct stream *s = &m->stream[i];
        if (s->kind == OUTPUT && s->place == place && s->old == old && !strcmp(s->folder, folder))
            return s;
    }
    return NULL;
}

/* Lines up to this many bytes from the begin of what the worker has printed. */
static tri_status take_until(struct logs *m, struct stream *s, int64_t until, const char *time,
                              bool shown) {
    struct stream *before = output_of(m, s->folder, s->place, true);
    tri_status status = TRI_OK;
    while (!status && s->at < until) {
        struct stream *from = before && before->file.is_open ? before : s;
        const int64_t at = from->file.at;
        const ssize_t n = from->file.is_open ? read_line(from) : -1;
        if (n < 0 && from == s) break;
        if (n < 0) { /* it is read to its end */
            line_file_close(&before->file);
            continue;
        }
        s->at += from->file.at - at;
        if (shown) status = take_output(m, from, (size_t)n, from->file.at - at, time);
    }
    return status;
}

/* The lines that a note of outputs.jsonl is about. Those of a run that goes on with the files of
 * another begin anew. */
static tri_status take_noted(struct logs *m, const struct stream *note, bool shown) {
    const int64_t from = json_whole_of(note->json, "from", 0);
    struct stream *s = output_of(m, note->folder, json_whole_of(note->json, "worker", -1), false);
    if (!s) return TRI_OK;
    if (from < s->noted) s->base = s->at;
    s->noted = from + json_whole_of(note->json, "bytes", 0);
    return take_until(m, s, s->base + s->noted, note->time, shown);
}

/* What has no notes, as in versions before, or was written when the agent was killed. */
tri_status logs_rest(struct logs *m) {
    const struct logs_filter *o = &m->filter;
    tri_status status = TRI_OK;
    if (o->level && logs_level(o->level) > 0) return TRI_OK;
    if (o->event && strcmp(o->event, "output")) return TRI_OK;
    for (size_t i = 0; i < m->n && !status; i++) {
        struct stream *s = &m->stream[i];
        if (s->kind != OUTPUT || s->old || (o->worker >= 0 && s->place != o->worker)) continue;
        s->old = true; /* also what is no whole line */
        status = take_until(m, s, INT64_MAX, "", true);
        s->old = false;
    }
    return status;
}

tri_status logs_read(struct logs *m) {
    tri_status status = TRI_OK;
    for (struct stream *s; !status && (s = earliest(m));) {
        const bool shown = passes(m, s);
        if (s->kind == OUTPUTS) status = take_noted(m, s, shown);
        else if (shown) status = take(m, s);
        note_end(m, s);
        s->has = false;
    }
    return status;
}

int64_t logs_back(const struct logs *m) { return m->back; }

void logs_follow(struct logs *m) {
    for (size_t i = 0; i < m->n; i++) follow_stream(&m->stream[i]);
}

tri_status logs_open(struct logs **opened, const char *directory, const struct logs_filter *filter,
                     void (*take_line)(const struct logs_line *line, void *to), void *to) {
    struct logs *m = calloc(1, sizeof *m);
    *opened = m;
    if (!m) return base_no_memory("the logs");
    *m = (struct logs){.filter = *filter, .take = take_line, .to = to};
    tri_status status = add_all(m, directory);
    if (!status && !m->n)
        status = base_fail(TRI_USAGE, "%s has no log of a run (agent.log, or run.log)", directory);
    return status;
}

void logs_close(struct logs *m) {
    if (!m) return;
    for (size_t i = 0; i < m->n; i++) {
        struct stream *s = &m->stream[i];
        line_file_close(&s->file);
        json_decref(s->json);
        free(s->path);
        free(s->from);
        free(s->folder);
    }
    free(m->stream);
    free(m);
}
