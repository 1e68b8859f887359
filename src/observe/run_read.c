/* SPDX-License-Identifier: Apache-2.0
 * Reads run.json, which may be damaged, or of another version. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "observe/run_file.h"

static const char *text(const json_t *object, const char *key) {
    const char *s = json_string_value(json_object_get(object, key));
    return s ? s : "";
}

static int64_t whole(const json_t *object, const char *key) {
    const json_t *j = json_object_get(object, key);
    return json_is_integer(j) ? json_integer_value(j) : -1;
}

/* Numbers that do not fit are not known. */
static int small(const json_t *object, const char *key) {
    const int64_t n = whole(object, key);
    return n >= 0 && n < 1000000 ? (int)n : -1;
}

static double real(const json_t *object, const char *key) {
    const json_t *j = json_object_get(object, key);
    return json_is_number(j) ? json_number_value(j) : NAN;
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
                .host = text(one, "host"), .pid = whole(one, "pid"),
                .process_start = whole(one, "process_start"), .first = whole(one, "first"),
                .last = whole(one, "last"), .begin = real(one, "begin"), .end = real(one, "end"),
                .exit = small(one, "exit")};
}

static void read_faults(struct run_read *r) {
    const json_t *all = json_object_get(r->root, "faults"), *one;
    size_t i;
    if (!MAKE(r, r->fault, json_array_size(all))) return;
    json_array_foreach(all, i, one)
        if (json_is_object(one))
            r->fault[r->n_faults++] = (struct run_fault){
                .kind = text(one, "kind"), .text = text(one, "text"), .time = real(one, "time"),
                .cost = real(one, "cost"), .worker = small(one, "worker"),
                .step = whole(one, "step")};
}

static void read_all(struct run_read *r) {
    const json_t *j = r->root;
    r->version = text(j, "version"), r->title = text(j, "title"), r->plan = text(j, "plan");
    r->grain = text(j, "grain"), r->placement = text(j, "placement");
    r->device = text(j, "device"), r->isa = text(j, "isa");
    r->checkpoints = text(j, "checkpoints");
    r->cores = whole(j, "cores"), r->workers = whole(j, "workers");
    r->threads = whole(j, "threads"), r->steps = whole(j, "steps"), r->lanes = whole(j, "lanes");
    r->batch = whole(j, "batch"), r->parameters = whole(j, "parameters");
    r->memory = whole(j, "memory");
    r->predicted_step = real(j, "predicted_step");
    r->deaths = whole(j, "deaths"), r->stalls = whole(j, "stalls");
    r->takeovers = whole(j, "takeovers");
    r->n_command = read_texts(r, "command", &r->command);
    r->n_hosts = read_texts(r, "hosts", &r->host);
    read_options(r);
    read_entries(r);
    read_faults(r);
}

tri_status run_file_parse(const char *name, const char *data, size_t bytes, struct run_read *r) {
    json_error_t why;
    *r = (struct run_read){.root = json_loadb(data, bytes, 0, &why)};
    const int64_t format = r->root ? whole(r->root, "format") : -1;
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

void run_file_free(struct run_read *r) {
    json_decref(r->root);
    arena_free(&r->arena);
    *r = (struct run_read){.root = NULL};
}
