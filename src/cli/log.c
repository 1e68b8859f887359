/* SPDX-License-Identifier: Apache-2.0
 * trireme log: the logs of a run's agents and workers, as one, in the order of time. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "cli/cli.h"

struct own {
    int64_t worker, since; /* worker: by its place plus 1; 0: all */
    const char *level, *event, *grep;
    bool follow;
};

/* A file that is read to its end, line by line. */
struct stream {
    char *path, *from; /* from: "h0 worker 1" */
    int place;         /* of the worker; -1: the agent's */
    FILE *file;        /* null: it is not there yet, or over */
    ino_t inode;
    char *line;
    size_t room;
    json_t *json;     /* of the line; null: it is none */
    const char *time; /* in it; "" */
    bool has;         /* a line that has not been printed */
    bool ended;       /* of an agent: it has, or others say that its host is lost */
};

struct merge {
    struct own own;
    struct stream *stream;
    size_t n, capacity;
    bool begun; /* a line of step `since` has come */
};

/* ---- the files ---- */

static bool open_stream(struct stream *s) {
    struct stat is;
    s->file = fopen(s->path, "re");
    if (s->file && !fstat(fileno(s->file), &is)) s->inode = is.st_ino;
    return s->file;
}

/* host: "" or "h0". */
static tri_status add_stream(struct merge *m, const char *directory, const char *host,
                             const char *name) {
    struct text path = {0}, from = {0};
    const size_t length = strcspn(name, ".");
    const bool agent = *name == 'a';
    if (!ARRAY_GROW(m->stream, m->n, m->capacity)) return base_no_memory("the logs");
    text_add(&path, "%s/%s%s%s", directory, host, *host ? "/" : "", name);
    text_add(&from, "%s%s", host, *host ? " " : "");
    text_add(&from, agent ? "agent" : "worker %.*s", (int)length - 7, name + 7);
    if (path.failed || from.failed) return base_no_memory("the logs");
    struct stream *s = &m->stream[m->n++];
    *s = (struct stream){.path = path.data, .from = from.data,
                         .place = agent ? -1 : atoi(name + 7)};
    return open_stream(s) ? TRI_OK : base_fail(TRI_FAILED, "%s: %s", s->path, strerror(errno));
}

/* agent.log, worker-K.log, and the same with .old, of earlier lines. */
static bool is_log(const char *name) {
    int n = 0;
    if (sscanf(name, "agent.log%n", &n) < 0 || !n)
        if (sscanf(name, "worker-%*[0-9].log%n", &n) < 0 || !n) return false;
    return !name[n] || !strcmp(name + n, ".old");
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strverscmp((*b)->d_name, (*a)->d_name); /* x.log.old before x.log, which is newer */
}

static int is_shown(const struct dirent *e) { return *e->d_name != '.'; }

static tri_status add_files(struct merge *m, const char *directory, const char *host) {
    struct text path = {0};
    struct dirent **entry;
    text_add(&path, "%s%s%s", directory, *host ? "/" : "", host);
    if (path.failed) return base_no_memory("the logs");
    const int n = scandir(path.data, &entry, is_shown, by_name);
    tri_status status = TRI_OK;
    if (n < 0) status = base_fail(TRI_FAILED, "%s: %s", path.data, strerror(errno));
    for (int i = 0; i < n; i++) {
        const char *name = entry[i]->d_name;
        struct text inside = {0};
        text_add(&inside, "%s/%s/agent.log", path.data, name);
        if (!status && is_log(name)) status = add_stream(m, directory, host, name);
        else if (!status && !*host && !inside.failed) {
            FILE *f = fopen(inside.data, "re");
            if (f) fclose(f);
            if (f) status = add_files(m, directory, name);
        }
        text_free(&inside);
        free(entry[i]);
    }
    if (n >= 0) free(entry);
    text_free(&path);
    return status;
}

/* ---- lines ---- */

static const char *text_of(const json_t *j, const char *key) {
    const char *text = json_string_value(json_object_get(j, key));
    return text ? text : "";
}

/* What is no object is a line, too. */
static bool next_line(struct stream *s) {
    if (s->has || !s->file) return s->has;
    const long at = ftell(s->file);
    const ssize_t n = getline(&s->line, &s->room, s->file);
    if (n <= 0 || s->line[n - 1] != '\n') { /* it may be being written */
        clearerr(s->file);
        if (at >= 0) fseek(s->file, at, SEEK_SET);
        return false;
    }
    s->line[n - 1] = 0;
    json_decref(s->json);
    s->json = json_loads(s->line, 0, NULL);
    s->time = text_of(s->json, "time");
    return s->has = true;
}

/* A log that has become FILE.old: the rest of it has been read. */
static void follow_stream(struct stream *s) {
    struct stat is;
    if (stat(s->path, &is) || (s->file && is.st_ino == s->inode)) return;
    if (s->file) fclose(s->file);
    open_stream(s);
}

static struct stream *earliest(struct merge *m) {
    struct stream *first = NULL;
    for (size_t i = 0; i < m->n; i++) {
        struct stream *s = &m->stream[i];
        if (next_line(s) && (!first || strcmp(s->time, first->time) < 0)) first = s;
    }
    return first;
}

static int level_of(const char *name) {
    static const char *const levels[] = {"info", "warning", "error", NULL};
    return option_word(levels, name);
}

static bool passes(struct merge *m, const struct stream *s) {
    const struct own *o = &m->own;
    const json_t *step = json_object_get(s->json, "step");
    const json_t *worker = json_object_get(s->json, "worker");
    const int64_t place = s->place >= 0 ? s->place : json_is_integer(worker)
                                                         ? json_integer_value(worker) : -1;
    m->begun |= json_is_integer(step) && json_integer_value(step) >= o->since;
    if (o->since && !m->begun) return false;
    if (o->worker && place != o->worker - 1) return false;
    if (o->level && level_of(text_of(s->json, "level")) < level_of(o->level)) return false;
    if (o->event && strcmp(text_of(s->json, "event"), o->event)) return false;
    return !o->grep || strstr(s->line, o->grep);
}

/* Control characters, also those of two bytes, and bytes that are no UTF-8 reach no terminal. */
static void add_escaped(struct text *t, const char *text) {
    for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
        const bool c1 = *p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0;
        if (*p < ' ' || *p == 0x7f || c1) text_add(t, "\\x%02x", c1 ? *++p : *p);
        else text_add_bytes(t, p, 1);
    }
}

static void add_value(struct text *t, const json_t *v) {
    if (json_is_string(v)) {
        add_escaped(t, json_string_value(v));
        return;
    }
    char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
    text_add(t, "%s", text ? text : "?");
    free(text);
}

static void add_object(struct text *t, const struct stream *s) {
    static const char *const beside[] = {"time", "level", "event", NULL};
    const char *key, *level = text_of(s->json, "level");
    json_t *value;
    add_escaped(t, s->time);
    text_add(t, "  %s  ", s->from);
    if (strcmp(level, "info")) add_escaped(t, level), text_add(t, " ");
    add_escaped(t, text_of(s->json, "event"));
    json_object_foreach(s->json, key, value) {
        if (option_word(beside, key) >= 0 || (s->place >= 0 && !strcmp(key, "worker"))) continue;
        text_add(t, "  ");
        add_escaped(t, key);
        text_add(t, "=");
        add_value(t, value);
    }
}

static tri_status print(const struct stream *s) {
    struct text t = {0};
    if (json_is_object(s->json)) {
        add_object(&t, s);
    } else {
        text_add(&t, "%s  ", s->from);
        for (const char *p = s->line; *p; p++)
            if (isprint((unsigned char)*p)) text_add_bytes(&t, p, 1);
            else text_add(&t, "\\x%02x", (unsigned char)*p);
    }
    text_add(&t, "\n");
    return cli_print(&t);
}

/* ---- the command ---- */

/* Of FILE.old nothing is known: what follows is in FILE. */
static bool is_agent(const struct stream *s) {
    return s->place < 0 && strcmp(s->path + strlen(s->path) - 4, ".old");
}

/* A host that was killed says no more; the others do. */
static void note_end(struct merge *m, struct stream *s) {
    const char *event = text_of(s->json, "event"), *host = text_of(s->json, "host");
    const size_t n = strlen(host);
    const bool lost = !strcmp(event, "host-lost");
    if (s->place < 0) s->ended = !strcmp(event, "end");
    for (size_t i = 0; n && (lost || !strcmp(event, "host-joined")) && i < m->n; i++)
        if (!strncmp(m->stream[i].from, host, n) && m->stream[i].from[n] == ' ')
            m->stream[i].ended = lost;
}

static bool has_ended(const struct merge *m) {
    bool all = true;
    for (size_t i = 0; i < m->n; i++) all &= !is_agent(&m->stream[i]) || m->stream[i].ended;
    return all;
}

static tri_status print_all(struct merge *m) {
    tri_status status = TRI_OK;
    for (struct stream *s; !status && (s = earliest(m));) {
        if (passes(m, s)) status = print(s);
        note_end(m, s);
        s->has = false;
    }
    return status;
}

static tri_status follow(struct merge *m) {
    tri_status status = TRI_OK;
    while (!status && !has_ended(m)) {
        fflush(stdout);
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        status = print_all(m);
        for (size_t i = 0; i < m->n; i++) follow_stream(&m->stream[i]);
    }
    return status;
}

static void close_all(struct merge *m) {
    for (size_t i = 0; i < m->n; i++) {
        struct stream *s = &m->stream[i];
        if (s->file) fclose(s->file);
        json_decref(s->json);
        free(s->path);
        free(s->from);
        free(s->line);
    }
    free(m->stream);
}

static int run(const struct command *c, int argc, char **argv) {
    struct cli_arguments a;
    struct merge m = {.own.worker = 0};
    if (cli_read(c, argc, argv, &m.own, &a)) return cli_fail();
    tri_status status = TRI_OK;
    if (a.n_words > 1)
        status = base_fail(TRI_USAGE, "log: one word too many: '%s'; usage: trireme log %s",
                           a.words[1], c->arguments);
    else if (m.own.level && level_of(m.own.level) < 0)
        status = base_fail(TRI_USAGE, "--level is \"%s\"; it can be info, warning or error",
                           m.own.level);
    if (!status) status = add_files(&m, a.words[0], "");
    if (!status && !m.n)
        status = base_fail(TRI_USAGE, "%s has no log of a run with workers (agent.log)",
                           a.words[0]);
    if (!status) status = print_all(&m);
    if (!status && m.own.follow) status = follow(&m);
    close_all(&m);
    return status ? cli_fail() : TRI_OK;
}

static const char *place(void *at, const char *value) {
    const char *wrong = option_seed(at, value);
    if (!wrong) ++*(int64_t *)at;
    return wrong;
}

static const struct option_row rows[] = {
    {"--worker", "K", "only what concerns the worker at place K", place,
     offsetof(struct own, worker), USE_ALL, .group = GROUP_NONE},
    {"--level", "L", "only lines of this level or a higher one: info, warning, error", option_text,
     offsetof(struct own, level), USE_ALL, .group = GROUP_NONE},
    {"--event", "NAME", "only this event, as death or checkpoint", option_text,
     offsetof(struct own, event), USE_ALL, .group = GROUP_NONE},
    {"--grep", "TEXT", "only lines with this text", option_text, offsetof(struct own, grep),
     USE_ALL, .group = GROUP_NONE},
    {"--since", "STEP", "nothing before the first line about this step or a later one",
     option_count, offsetof(struct own, since), USE_ALL, .group = GROUP_NONE},
    {"--follow", NULL, "go on with new lines until the run ends", option_given,
     offsetof(struct own, follow), USE_ALL, .group = GROUP_NONE},
    {0},
};

const struct command command_log = {
    .name = "log",
    .arguments = "DIR [options]",
    .help = "print the logs of a run's agents and workers in the order of time",
    .takes_words = "DIR",
    .rows = rows,
    .run = run,
};
