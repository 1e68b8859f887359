/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/items.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "observe/json.h"

#define LATEST (INT64_C(1) << 60)

/* Replaces bytes that are not UTF-8. */
static void mend(char *text, size_t bytes) {
    for (size_t i = 0, n; i < bytes; i += n ? n : 1) {
        n = text_character(text + i, bytes - i);
        if (!n) text[i] = '?';
    }
}

/* ---- values ---- */

static const char *text_of(struct profile *p, const json_t *j, const char *key) {
    return arena_escaped(&p->arena, json_text_of(j, key));
}

static double number_of(const json_t *j, const char *key) {
    const double number = json_number_of(j, key, 0);
    return number > 0 && number < 1e30 ? number : 0;
}

/* A number of a thing, as a stage; -1: none, or one that cannot be. */
static int64_t place_of(const json_t *j, const char *key) {
    const int64_t place = json_whole_of(j, key, -1);
    return place >= 0 && place <= INT_MAX ? place : -1;
}

/* "f32[8,3] f32[3,4]" */
static const char *list_of(struct profile *p, const json_t *j, const char *key) {
    struct text t = {0};
    size_t i;
    const json_t *value;
    json_array_foreach(json_object_get(j, key), i, value)
        text_add(&t, "%s%s", i ? " " : "",
                 json_string_value(value) ? json_string_value(value) : "?");
    const char *list = arena_escaped(&p->arena, t.data ? t.data : "");
    if (t.failed) p->arena.failed = true;
    text_free(&t);
    return list;
}

/* ---- items.jsonl ---- */

static void read_item(struct profile *p, const json_t *j, struct profile_item *item) {
    *item = (struct profile_item){
        .operator = text_of(p, j, "operator"), .unit = text_of(p, j, "unit"),
        .name = text_of(p, j, "name"), .scope = text_of(p, j, "scope"),
        .phase = text_of(p, j, "phase"), .in = list_of(p, j, "in"), .out = list_of(p, j, "out"),
        .move = json_is_string(json_object_get(j, "move")) ? text_of(p, j, "move") : NULL,
        .size = place_of(j, "size"), .stage = place_of(j, "stage"),
        .leg = place_of(j, "leg"), .seat = place_of(j, "seat"),
        .bucket = place_of(j, "bucket"), .live = json_whole_of(j, "live", -1),
        .flops = number_of(j, "flops"), .bytes = number_of(j, "bytes"),
        .moved = number_of(j, "moved"), .wire = number_of(j, "wire"),
        .backward = json_is_true(json_object_get(j, "backward"))};
    if (!(item->wire > 0)) item->wire = item->bytes;
    p->damaged += !*item->operator;
    if (!*item->operator) item->operator = "?";
    if (!*item->unit) item->unit = item->operator;
    if (!*item->name) item->name = item->unit;
}

static void read_rates(struct profile *p, struct profile_host *h, const json_t *j) {
    json_t *rates = json_object_get(j, "rate"), *value;
    const char *type;
    h->bandwidth = number_of(j, "bandwidth");
    free(h->rate);
    h->n_rates = 0;
    h->rate = calloc(json_object_size(rates) + 1, sizeof *h->rate);
    if (!h->rate) {
        p->arena.failed = true;
        return;
    }
    json_object_foreach(rates, type, value)
        h->rate[h->n_rates++] = (struct profile_rate){arena_escaped(&p->arena, type),
                                                      number_of(rates, type)};
}

const char *const profile_parts[PARTS] = {"parameters", "optimizer", "slots", "carried", "data"};

static tri_status read_first(struct profile *p, struct profile_host *h, const json_t *j,
                             const char *path) {
    const int64_t version = json_whole_of(j, "version", 0);
    const json_t *memory = json_object_get(j, "memory");
    if (version > PROFILE_VERSION)
        return base_fail(TRI_FAILED, "%s: its format is version %lld; this program reads version "
                                     "%d", path, (long long)version, PROFILE_VERSION);
    if (json_object_get(j, "rate")) read_rates(p, h, j);
    h->lanes = json_whole_of(j, "lanes", 0);
    h->tracks = json_whole_of(j, "tracks", 0);
    h->waiting = json_is_number(json_object_get(j, "waiting")) ? number_of(j, "waiting") : -1;
    for (int i = 0; i < PARTS; i++) h->part[i] = json_whole_of(memory, profile_parts[i], -1);
    return TRI_OK;
}

static tri_status read_line(struct profile *p, struct profile_host *h, const char *line,
                            size_t bytes, const char *path, size_t *capacity, bool first) {
    json_t *j = json_loadb(line, bytes, JSON_REJECT_DUPLICATES, NULL);
    tri_status status = TRI_OK;
    if (first && json_object_get(j, "version")) status = read_first(p, h, j, path);
    else if (ARRAY_GROW(h->item, h->n_items, *capacity)) read_item(p, j, &h->item[h->n_items++]);
    else status = base_no_memory("the items of the profile");
    json_decref(j);
    return status || !p->arena.failed ? status : base_no_memory("the items of the profile");
}

/* A last line without its end is cut. */
static tri_status read_items(struct profile *p, struct profile_host *h, const char *path) {
    char *data;
    size_t bytes, capacity = 0;
    if (access(path, F_OK)) return TRI_OK;
    tri_status status = base_read_file(path, &data, &bytes);
    if (status) return status;
    mend(data, bytes);
    const char *line = data, *end;
    for (; !status && (end = memchr(line, '\n', bytes - (size_t)(line - data))); line = end + 1)
        status = read_line(p, h, line, (size_t)(end - line), path, &capacity, line == data);
    p->cut += !status && line < data + bytes;
    free(data);
    return status;
}

/* ---- clocks.json, rates.json ---- */

/* A whole file; null: it is not there, or damaged. */
static json_t *read_object(struct profile *p, const char *folder, const char *name) {
    const char *path = arena_text(&p->arena, "%s/%s", folder, name);
    char *data;
    size_t bytes;
    if (!path || access(path, F_OK) || base_read_file(path, &data, &bytes)) return NULL;
    mend(data, bytes);
    json_t *j = json_loadb(data, bytes, 0, NULL);
    p->damaged += !json_is_object(j);
    free(data);
    return j;
}

static void read_clocks(struct profile *p, struct profile_host *h, const json_t *j) {
    const int64_t offset = json_whole_of(j, "offset_ns", LATEST),
                  uncertainty = json_whole_of(j, "uncertainty_ns", -1);
    if (offset > -LATEST && offset < LATEST && uncertainty >= 0 && uncertainty < LATEST) {
        h->offset = offset;
        h->uncertainty = uncertainty;
        h->clock = true;
        h->number = (int)json_whole_of(j, "number", h->number);
    } else {
        p->damaged++;
    }
}

tri_status items_read(struct profile *p, int host, const char *folder) {
    struct profile_host *h = &p->host[host];
    const char *items = arena_text(&p->arena, "%s/items.jsonl", folder);
    json_t *clocks = read_object(p, folder, "clocks.json"),
           *rates = read_object(p, folder, "rates.json");
    if (!rates && strcmp(folder, p->folder)) rates = read_object(p, p->folder, "rates.json");
    h->number = host;
    h->clock = !host; /* the others are compared with it */
    h->waiting = -1;
    for (int i = 0; i < PARTS; i++) h->part[i] = -1;
    if (json_is_object(clocks)) read_clocks(p, h, clocks);
    tri_status status = items ? read_items(p, h, items) : base_no_memory("the profile");
    if (!status && !h->n_rates && json_is_object(rates)) read_rates(p, h, rates);
    json_decref(clocks);
    json_decref(rates);
    return status || !p->arena.failed ? status : base_no_memory("the profile");
}
