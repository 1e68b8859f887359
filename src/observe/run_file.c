/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/run_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host.h"
#include "observe/json.h"

#define SOON 1.0   /* seconds between two writes, after faults, */
#define USUAL 10.0 /* and otherwise */

struct run_file {
    char *path;
    json_t *root, *entry, *earlier; /* earlier: totals of the entries before, or null */
    double written; /* of base_seconds */
    int64_t faults; /* of this entry */
    bool urgent;
    bool told; /* that it cannot be written */
};

static double now(void) { return 1e-9 * (double)base_realtime(); }

static json_t *list(const json_t *object, const char *key) {
    json_t *a = json_object_get(object, key);
    return json_is_array(a) ? a : NULL;
}

/* ---- the file ---- */

static bool replace(const char *path, const char *data) {
    char part[PART_PATH];
    const int fd = part_open(path, 0600, part);
    if (fd < 0) return false;
    bool good = base_write_all(fd, data, strlen(data)) && base_write_all(fd, "\n", 1);
    good &= !close(fd);
    return !part_end(path, part, good ? TRI_OK : TRI_FAILED);
}

void run_file_write(struct run_file *f) {
    if (!f) return;
    char *data = json_dumps(f->root, JSON_COMPACT | JSON_REAL_PRECISION(16));
    f->written = base_seconds();
    f->urgent = false;
    errno = ENOMEM;
    if ((!data || !replace(f->path, data)) && !f->told) {
        fprintf(stderr, "trireme: cannot write %s: %s\n", f->path, strerror(errno));
        f->told = true;
    }
    free(data);
}

bool run_file_is_due(const struct run_file *f, double at) {
    return f && at - f->written >= (f->urgent ? SOON : USUAL);
}

/* ---- continuing another ---- */

static void add_count(json_t *to, const json_t *from, const char *key) {
    const int64_t sum = json_whole_of(to, key, 0) + json_whole_of(from, key, 0);
    json_object_set_new(to, key, json_integer(sum));
}

/* The earlier elements go first. */
static void add_before(json_t *to, const json_t *from, const char *key) {
    const json_t *before = list(from, key), *own = list(to, key);
    json_t *all = json_array();
    if (before) json_array_extend(all, (json_t *)(uintptr_t)before);
    if (own) json_array_extend(all, (json_t *)(uintptr_t)own);
    json_object_set_new(to, key, all);
}

/* Fields that this start does not know yet are those of the earlier one. */
static bool take(struct run_file *f, const char *earlier) {
    struct run_read r;
    if (run_file_read(earlier, &r)) return false;
    const json_t *from = r.root;
    static const char *const counts[] = {"deaths", "stalls", "takeovers"};
    for (size_t i = 0; i < COUNT(counts); i++) add_count(f->root, from, counts[i]);
    json_decref(f->earlier);
    f->earlier = json_deep_copy(list(from, "totals"));
    add_before(f->root, from, "entries");
    add_before(f->root, from, "faults");
    json_object_set(f->root, "totals", list(from, "totals"));
    json_object_update_missing(f->root, (json_t *)(uintptr_t)from);
    run_file_free(&r);
    return true;
}

void run_file_continue(struct run_file *f, const char *earlier) {
    if (!f || !take(f, earlier)) return;
    run_file_write(f);
    if (!f->told) unlink(earlier);
}

/* ---- beginning ---- */

static json_t *new_entry(const char *host) {
    char own[64] = "";
    if (!host && gethostname(own, sizeof own - 1)) *own = 0;
    const int64_t start = host_process(getpid());
    return json_pack("{s:o,s:i,s:o,s:f,s:n,s:n,s:n,s:n}", "host", json_text(host ? host : own),
                     "pid", (int)getpid(), "process_start",
                     start < 0 ? json_null() : json_integer(start), "begin", now(), "end", "first",
                     "last", "exit");
}

static json_t *new_root(const struct run_start *s, json_t *entry) {
    json_t *command = json_array(), *hosts = json_array();
    for (int i = 0; s->command && s->command[i]; i++)
        json_array_append_new(command, json_text(s->command[i]));
    for (int i = 0; i < s->hosts; i++) json_array_append_new(hosts, json_text(s->host_name[i]));
    return json_pack("{s:i,s:s,s:o,s:o,s:i,s:i,s:i,s:o,s:n,s:[O],s:[],s:i,s:i,s:i,s:[]}", "format",
                     RUN_FORMAT, "version", TRI_VERSION, "title", json_text(s->title), "command",
                     command, "cores", s->cores, "workers", s->workers, "threads", s->threads,
                     "hosts", hosts, "predicted_step", "entries", entry, "totals", "deaths", 0,
                     "stalls", 0, "takeovers", 0, "faults");
}

static void release(struct run_file *f) {
    json_decref(f->root);
    json_decref(f->entry);
    json_decref(f->earlier);
    free(f->path);
    free(f);
}

tri_status run_file_begin(const char *path, const struct run_start *start, bool goes_on,
                          struct run_file **out) {
    *out = NULL;
    if (!path) return TRI_OK;
    struct run_file *f = calloc(1, sizeof *f);
    if (!f) return base_no_memory(path);
    f->path = strdup(path);
    f->entry = new_entry(start->host);
    f->root = f->entry ? new_root(start, f->entry) : NULL;
    if (!f->path || !f->root) {
        release(f);
        return base_no_memory(path);
    }
    if (goes_on) take(f, path);
    run_file_write(f);
    *out = f;
    return TRI_OK;
}

/* ---- what changes ---- */

void run_file_describe(struct run_file *f, const char *about) {
    json_t *j = f ? json_loads(about, 0, NULL) : NULL;
    if (!j) return;
    json_object_update(f->root, j);
    json_decref(j);
    run_file_write(f);
}

void run_file_steps(struct run_file *f, int64_t first, int64_t last) {
    if (!f) return;
    json_object_set_new(f->entry, "first", json_integer(first));
    json_object_set_new(f->entry, "last", json_integer(last));
}

static json_t *of_worker(const json_t *totals, int worker) {
    size_t i;
    json_t *one;
    json_array_foreach(totals, i, one)
        if (json_whole_of(one, "worker", -1) == worker) return one;
    return NULL;
}

void run_file_total(struct run_file *f, int worker, const char *what, double seconds) {
    if (!f || !(seconds > 0)) return;
    json_t *totals = list(f->root, "totals"), *one = of_worker(totals, worker);
    const json_t *before = of_worker(f->earlier, worker);
    if (!one) {
        one = json_pack("{s:i}", "worker", worker);
        json_array_append_new(totals, one);
    }
    seconds += json_number_of(before, what, 0);
    json_object_set_new(one, what, json_finite(seconds));
}

int64_t run_file_fault(struct run_file *f, const char *kind, int worker, int64_t step,
                       const char *what, double cost) {
    if (!f) return 0;
    char key[32];
    json_t *faults = list(f->root, "faults");
    base_format(key, sizeof key, "%ss", kind);
    json_object_set_new(f->root, key, json_integer(json_whole_of(f->root, key, 0) + 1));
    json_array_append_new(faults, json_pack("{s:s,s:f,s:i,s:I,s:o,s:o}", "kind", kind, "time",
                                            now(), "worker", worker, "step", (json_int_t)step,
                                            "cost", json_finite(cost), "text", json_text(what)));
    while (json_array_size(faults) > RUN_FAULTS) json_array_remove(faults, 0);
    f->urgent = true;
    return f->faults++;
}

void run_file_cost(struct run_file *f, int64_t fault, double cost) {
    if (!f) return;
    json_t *faults = list(f->root, "faults");
    const int64_t back = f->faults - fault, n = (int64_t)json_array_size(faults);
    if (back > n) return;
    json_object_set_new(json_array_get(faults, (size_t)(n - back)), "cost", json_finite(cost));
    f->urgent = true;
}

void run_file_end(struct run_file *f, int code) {
    if (!f) return;
    json_object_set_new(f->entry, "end", json_finite(now()));
    json_object_set_new(f->entry, "exit", json_integer(code));
    run_file_write(f);
    release(f);
}

void run_file_about(const struct run_about *a, struct text *out) {
    json_t *options = json_object();
    for (int i = 0; i < a->n_options; i++)
        json_object_set_new(options, a->option[2 * i], json_text(a->option[2 * i + 1]));
    json_t *j = json_pack(
        "{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:I,s:I,s:I,s:I,s:I}", "options", options, "plan",
        json_text(a->plan), "grain", json_text(a->grain), "placement", json_text(a->placement),
        "device", json_text(a->device), "isa", json_text(a->isa), "checkpoints",
        json_text(a->checkpoints), "steps", (json_int_t)a->steps, "lanes", (json_int_t)a->lanes,
        "batch", (json_int_t)a->batch, "parameters", (json_int_t)a->parameters, "memory",
        (json_int_t)a->memory);
    char *said = j ? json_dumps(j, JSON_COMPACT) : NULL;
    text_add(out, "%s", said ? said : "{}");
    free(said);
    json_decref(j);
}
