/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as chunks of spans, with any items: what is read is sound, and all that is derived of
 * it can be written; rules and the critical path get along with it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/against.h"
#include "profile/derive.h"
#include "profile/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char directory[] = "/dev/shm/trireme-fuzz-XXXXXX"; /* a disk would take most of the time */

static void clean(void) {
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", directory);
    if (system(command)) abort();
}

static void begin(void) {
    char path[64];
    static bool begun;
    if (begun) return;
    begun = true;
    CHECK(mkdtemp(directory));
    atexit(clean);
    snprintf(path, sizeof path, "%s/profile", directory);
    CHECK(!mkdir(path, 0700));
    snprintf(path, sizeof path, "%s/profile/1", directory);
    CHECK(!mkdir(path, 0700));
}

static void put(const char *name, const void *head, size_t n, const uint8_t *data, size_t size) {
    char path[128];
    snprintf(path, sizeof path, "%s/profile/1/%s", directory, name);
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(head, 1, n, f) == n && fwrite(data, 1, size, f) == size);
    fclose(f);
}

/* Spans whose header and check are right, so that their numbers are looked at. */
static void put_spans(const char *name, int thread, const uint8_t *data, size_t size) {
    const size_t n = size / sizeof(struct span);
    struct {
        struct span_header header;
        struct span_chunk chunk;
    } head = {{.magic = SPAN_MAGIC, .version = SPAN_VERSION, .bytes = sizeof(struct span),
               .thread = (uint16_t)thread, .threads = 2, .first = 1, .last = 300,
               .what = thread ? SPAN_FERRIES : SPAN_COMPUTES},
              {.spans = (uint32_t)n}};
    struct span *span = malloc(n * sizeof *span + 1);
    CHECK(span);
    memcpy(span, data, n * sizeof *span);
    for (size_t i = 0; i < n; i++) { /* most bytes would be no span */
        span[i].begin &= 0xffff;
        span[i].end &= 0xffff;
        span[i].kind = (uint8_t)(span[i].kind & 0x80 ? SPAN_OPERATOR + span[i].kind % 8
                                                     : span[i].kind % (SPENTS + 1));
        span[i].item &= 7;
        span[i].step &= 0x1ff;
        span[i].whom &= 3;
    }
    head.chunk.check = span_check(span, n);
    put(name, &head, sizeof head, (uint8_t *)span, n * sizeof *span);
    free(span);
}

static void judge(struct profile *p) {
    const struct run_read run = {.batch = 64};
    const struct figures f = {.profile = p, .run = &run};
    struct text out = {0};
    int64_t sum = 0;
    CHECK(!study_make(p) && !against_print(p, p, &out));
    text_free(&out);
    for (int i = 0; i < SPENTS; i++) sum += p->study->path.time[i];
    CHECK(sum == p->study->path.all);
    for (const struct rule *r = rules; r->name; r++) {
        struct finding found = {.rule = r};
        if (r->needs_profile) CHECK(r->judge(&f, &found) == (found.evidence.size > 0));
        text_free(&found.evidence);
        text_free(&found.remedy);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct profile p;
    const size_t half = size / 2;
    begin();
    put("items.jsonl", "", 0, data, half);
    put_spans("spans-0-0.bin", 0, data, size);
    put_spans("spans-0-1.bin", 1, data + half, size - half);
    put("spans-0-2.bin", "", 0, data, size);
    if (size > 2) put("clocks.json", "", 0, data, size - 2);
    if (!profile_read(directory, NULL, &p)) {
        CHECK(!profile_derive(&p));
        judge(&p);
    } else CHECK(tri_message()[0] && !strchr(tri_message(), '\n'));
    profile_free(&p);
    put("spans-0-2.bin", "", 0, data, 0);
    const bool good = !profile_read(directory, NULL, &p);
    CHECK(good || strstr(tri_message(), "version"));
    for (int i = 0; i < p.n_threads; i++)
        for (size_t k = 0; k < p.thread[i].n; k++) {
            const struct span *s = &p.thread[i].span[k];
            CHECK(s->begin <= s->end && (!k || s[-1].end <= s->end));
            CHECK(s->item < p.host[0].n_items);
        }
    if (p.n_threads) CHECK(!profile_derive(&p) || strstr(tri_message(), "version"));
    if (good) judge(&p);
    profile_free(&p);
    return 0;
}
