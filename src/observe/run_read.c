/* SPDX-License-Identifier: Apache-2.0
 * Reads run.json, which may be damaged, or of another version. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/host.h"
#include "observe/json.h"
#include "observe/run_file.h"

/* Numbers that do not fit are not known. */
static int small(const json_t *object, const char *key) {
    const int64_t n = json_whole_of(object, key, -1);
    return n >= 0 && n < 1000000 ? (int)n : -1;
}

/* An array for all elements of a list, one more, so that it is never empty. */
#define MAKE(r, array, n) ((array) = arena_alloc(&(r)->arena, ((n) + 1) * sizeof *(array)))

static size_t read_texts(struct run_read *r, const char *key, const char ***to) {
    const json_t *all = json_object_get(r->root, key);
    size_t i, n = 0;
    const json_t *one;
    if (!MAKE(r, *to, json_array_size(all))) return 0;
    json_array_foreach(all, i, one)
        if (json_is_string(one)) (*to)[n++] = json_string_value(one);
    return n;
}

static void read_options(struct run_read *r) {
    json_t *all = json_object_get(r->root, "options"), *value;
    const char *key;
    if (!MAKE(r, r->option, 2 * json_object_size(all))) return;
    json_object_foreach(all, key, value) {
        if (!json_is_string(value)) continue;
        r->option[2 * r->n_options] = key;
        r->option[2 * r->n_options++ + 1] = json_string_value(value);
    }
}

static void read_entries(struct run_read *r) {
    const json_t *all = json_object_get(r->root, "entries"), *one;
    size_t i;
    if (!MAKE(r, r->entry, json_array_size(all))) return;
    json_array_foreach(all, i, one)
        if (json_is_object(one))
            r->entry[r->n_entries++] = (struct run_entry){
                .host = json_text_of(one, "host"), .pid = json_whole_of(one, "pid", -1),
                .process_start = json_whole_of(one, "process_start", -1),
                .first = json_whole_of(one, "first", -1), .last = json_whole_of(one, "last", -1),
                .begin = json_number_of(one, "begin", NAN),
                .end = json_number_of(one, "end", NAN), .exit = small(one, "exit")};
}

static void read_faults(struct run_read *r) {
    const json_t *all = json_object_get(r->root, "faults"), *one;
    size_t i;
    if (!MAKE(r, r->fault, json_array_size(all))) return;
    json_array_foreach(all, i, one)
        if (json_is_object(one))
            r->fault[r->n_faults++] = (struct run_fault){
                .kind = json_text_of(one, "kind"), .text = json_text_of(one, "text"),
                .time = json_number_of(one, "time", NAN),
                .cost = json_number_of(one, "cost", NAN), .worker = small(one, "worker"),
                .step = json_whole_of(one, "step", -1)};
}

/* Fields of the file that have the same name in run_read. */
#define FIELD(name) {#name, offsetof(struct run_read, name)}
static const struct {
    const char *key;
    size_t at;
} texts[] = {FIELD(version), FIELD(title), FIELD(plan), FIELD(grain), FIELD(placement),
             FIELD(device), FIELD(isa), FIELD(checkpoints)},
  wholes[] = {FIELD(cores), FIELD(workers), FIELD(threads), FIELD(steps), FIELD(lanes),
              FIELD(batch), FIELD(parameters), FIELD(memory), FIELD(deaths), FIELD(stalls),
              FIELD(takeovers)};

static void read_all(struct run_read *r) {
    for (size_t i = 0; i < COUNT(texts); i++)
        *(const char **)((char *)r + texts[i].at) = json_text_of(r->root, texts[i].key);
    for (size_t i = 0; i < COUNT(wholes); i++)
        *(int64_t *)((char *)r + wholes[i].at) = json_whole_of(r->root, wholes[i].key, -1);
    r->predicted_step = json_number_of(r->root, "predicted_step", NAN);
    r->n_command = read_texts(r, "command", &r->command);
    r->n_hosts = read_texts(r, "hosts", &r->host);
    read_options(r);
    read_entries(r);
    read_faults(r);
}

tri_status run_file_parse(const char *name, const char *data, size_t bytes, struct run_read *r) {
    json_error_t why;
    *r = (struct run_read){.root = json_loadb(data, bytes, 0, &why)};
    const int64_t format = r->root ? json_whole_of(r->root, "format", -1) : -1;
    tri_status status = TRI_OK;
    if (!json_is_object(r->root) || format < 1)
        status = base_fail(TRI_FAILED, "%s is no run.json, or damaged", name);
    else if (format > RUN_FORMAT)
        status = base_fail(TRI_FAILED, "%s has format %lld, of a later version of Trireme; this "
                           "one reads up to format %d", name, (long long)format, RUN_FORMAT);
    if (!status) read_all(r);
    if (!status && r->arena.failed) status = base_no_memory(name);
    if (status) run_file_free(r);
    return status;
}

tri_status run_file_read(const char *path, struct run_read *r) {
    char *data;
    size_t bytes;
    *r = (struct run_read){.root = NULL};
    tri_status status = base_read_file(path, &data, &bytes);
    if (status) return status;
    status = run_file_parse(path, data, bytes, r);
    free(data);
    return status;
}

enum run_state run_file_state(const struct run_entry *e) {
    char own[64] = "";
    if (!isnan(e->end))
        return e->exit == TRI_OK ? RUN_FINISHED : e->exit == TRI_STOPPED ? RUN_STOPPED : RUN_FAILED;
    if (gethostname(own, sizeof own - 1) || strcmp(own, e->host) || e->process_start < 0)
        return RUN_GOES_ON_OR_KILLED;
    return host_process((int)e->pid) == e->process_start ? RUN_GOES_ON : RUN_KILLED;
}

const char *run_state_name(enum run_state s) {
    static const char *const names[RUN_STATES] = {
        "goes on", "was killed", "goes on, or was killed", "finished", "stopped", "failed"};
    return names[s];
}

void run_file_free(struct run_read *r) {
    json_decref(r->root);
    arena_free(&r->arena);
    *r = (struct run_read){.root = NULL};
}
