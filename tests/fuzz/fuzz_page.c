/* SPDX-License-Identifier: Apache-2.0
 * Any query to any route of the page, of a run that was recorded; then again, with bytes added to
 * one of its files, and with them in its place. A byte of 255 ends the query. Answers are JSON, a
 * table, or a sentence. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "page/kept.h"
#include "page/routes.h"
#include "page/runs.h"
#include "page/slices.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

const struct page_file page_files[] = {{0}};

static const char *const paths[] = {"/api/runs",   "/api/run",   "/api/report",  "/api/curve",
                                    "/api/row",    "/api/heat",  "/api/log",     "/api/slices",
                                    "/api/waits",  "/api/table", "/api/against", "/api/events",
                                    "/api"};
static const char *const files[] = {"metrics.jsonl", "agent.log", "worker-1.log", "outputs.jsonl",
                                    "worker-1.out", "run.json", "workers.series"};

/* ---- in place of http.c ---- */

#define PAIRS 8

static struct {
    char *key, *value;
} pair[PAIRS];

const char *http_value(const struct http_request *r, const char *key) {
    (void)r;
    for (int i = 0; i < PAIRS && pair[i].key; i++)
        if (!strcmp(pair[i].key, key)) return pair[i].value;
    return strcmp(key, "run") ? NULL : "0"; /* chance finds it too seldom */
}

/* No two are the same, so that each is answered anew. */
void http_add_address(const struct http_request *r, struct text *out) {
    static int n;
    text_add(out, "%s%d", r->path, n++);
}

/* "run=0&from=3"; the text is changed. */
static void take_query(char *text) {
    memset(pair, 0, sizeof pair);
    for (int i = 0; i < PAIRS && text; i++) {
        pair[i].key = strsep(&text, "&");
        pair[i].value = pair[i].key;
        strsep(&pair[i].value, "=");
    }
}

/* ---- the run ---- */

static char directory[] = "/dev/shm/trireme-fuzz-XXXXXX"; /* a disk would take most of the time */

static void clean(void) {
    char command[128];
    base_format(command, sizeof command, "rm -r %s", directory);
    if (system(command)) abort();
}

static void begin(void) {
    char command[512];
    static bool begun;
    if (begun) return;
    begun = true;
    CHECK(mkdtemp(directory));
    atexit(clean);
    base_format(command, sizeof command, "cp -r %s %s/run", RECORDED, directory);
    CHECK(!system(command) && !runs_find(directory) && runs_path(0));
}

static char *path_of(const char *name) {
    static char path[128];
    base_format(path, sizeof path, "%s/run/%s", directory, name);
    return path;
}

static void put(const char *name, const void *data, size_t size, const char *mode) {
    FILE *f = fopen(path_of(name), mode);
    CHECK(f && fwrite(data, 1, size, f) == size && !fclose(f));
}

/* ---- answers ---- */

/* Of a log, as a terminal shows them, too. */
static void check_lines(const json_t *lines) {
    size_t i, k;
    json_t *line, *field;
    json_array_foreach(lines, i, line)
        json_array_foreach(line, k, field)
            for (const char *p = json_string_value(field); p && *p; p++)
                CHECK((unsigned char)*p >= ' ' && *p != 127);
}

static void ask(const char *path) {
    struct http_answer a = {.code = 200, .type = "application/json"};
    const int64_t version = runs_version(0);
    CHECK(routes_answer(&(struct http_request){.path = path}, &a, true) && !a.body.failed);
    CHECK(runs_version(0) >= version && (a.code == 200 || a.code == 404 || a.code == 500));
    if (a.code != 200) {
        for (size_t i = 0; i < a.body.size; i++) CHECK((unsigned char)a.body.data[i] >= ' ');
    } else if (!strcmp(a.type, "application/json")) {
        json_t *found = json_loadb(a.body.data, a.body.size, JSON_DECODE_ANY, NULL);
        CHECK(found);
        check_lines(json_object_get(found, "lines"));
        json_decref(found);
    }
    text_free(&a.body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    begin();
    const char *path = paths[data[0] % COUNT(paths)], *name = files[data[1] % COUNT(files)];
    data += 2, size -= 2;
    const uint8_t *end = memchr(data, 255, size);
    const size_t n = end ? (size_t)(end - data) : size;
    char *query = strndup((const char *)data, n), *kept = NULL;
    size_t n_kept = 0;
    CHECK(query);
    take_query(query);
    ask(path);
    if (end) {
        data += n + 1, size -= n + 1;
        const bool had = !base_read_file(path_of(name), &kept, &n_kept);
        put(name, data, size, "ab");
        ask(path);
        put(name, data, size, "wb");
        ask(path);
        if (had) put(name, kept, n_kept, "wb");
        else CHECK(!unlink(path_of(name)));
    }
    kept_free();
    free(kept);
    free(query);
    return 0;
}
