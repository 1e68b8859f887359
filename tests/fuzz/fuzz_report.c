/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as the files of a run, of which `trireme report` makes text and JSON. A byte of 255
 * ends a file. Texts of users reach no terminal with control characters. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void print(const struct report *r) {
    struct text text = {0}, json = {0};
    report_text(r, &text);
    report_json(r, &json);
    CHECK(!text.failed && !json.failed);
    for (const char *p = text.data; *p; p++) CHECK((unsigned char)*p >= ' ' || *p == '\n');
    text_free(&text);
    text_free(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[] = {"run.json", "metrics.jsonl", "agent.log", "workers.series",
                                        "worker-0.log"};
    static char folder[64], path[128];
    if (!*folder) {
        snprintf(folder, sizeof folder, "/tmp/fuzz-report-%d", (int)getpid());
        CHECK(!mkdir(folder, 0700));
    }
    for (size_t i = 0; i < COUNT(names); i++) {
        const uint8_t *end = memchr(data, 255, size);
        const size_t bytes = end ? (size_t)(end - data) : size;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        unlink(path);
        FILE *f = bytes ? fopen(path, "w") : NULL;
        if (f) fwrite(data, 1, bytes, f), fclose(f);
        data += bytes + (end != NULL), size -= bytes + (end != NULL);
    }
    struct figures f;
    struct report r;
    if (!figures_read(folder, &f)) {
        report_make(&f, &r);
        print(&r);
        report_free(&r);
    }
    figures_free(&f);
    return 0;
}
