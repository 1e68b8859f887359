/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a file of the times of workers. All that is found in it is read; then a writer goes
 * on with it, if it can. The first byte says whether the checks are made right, as few mutations
 * are found by chance that keep them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "observe/series.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void set_check(char *data, size_t bytes, size_t at) {
    uint32_t check = 0;
    memcpy(data + at, &check, sizeof check);
    check = base_check(data, bytes);
    memcpy(data + at, &check, sizeof check);
}

/* The bytes up to `head` are those of the page, the rest of its text is empty. */
static size_t make_right(const uint8_t *data, size_t size, char **file) {
    const size_t head = size < 160 ? size : 160;
    struct series_page page = {0};
    memcpy(&page, data, head);
    page.magic = SERIES_MAGIC;
    page.version = SERIES_VERSION;
    page.period = SERIES_PERIOD + (page.period & 0xffffff);
    page.places = page.places % 5 + 1;
    page.record %= 100;
    page.capacity = page.capacity % SERIES_FRAMES + 2;
    page.frame = (uint32_t)(sizeof(struct series_frame) + page.places * page.record + 7) / 8 * 8;
    set_check((char *)&page, sizeof page, offsetof(struct series_page, check));
    const size_t bytes = sizeof page + size - head;
    *file = malloc(bytes);
    CHECK(*file);
    memcpy(*file, &page, sizeof page);
    memcpy(*file + sizeof page, data + head, size - head);
    for (size_t at = sizeof page; at + page.frame <= bytes; at += page.frame)
        set_check(*file + at, page.frame, offsetof(struct series_frame, check));
    return bytes;
}

static size_t make_copy(const uint8_t *data, size_t size, char **file) {
    *file = malloc(size + 1);
    CHECK(*file);
    memcpy(*file, data, size);
    return size;
}

/* Reads all that is there. */
static void read_all(const char *path) {
    struct series s;
    if (series_open(&s, path)) {
        CHECK(!strchr(tri_message(), '\n'));
        return;
    }
    CHECK(s.n >= 0 && s.n <= s.layout.capacity && s.layout.n <= SERIES_COLUMNS);
    for (int64_t i = 0; i < s.n; i++) {
        CHECK(series_read(&s, i));
        for (int p = -1; p <= s.layout.places; p++)
            for (int c = -1; c <= s.layout.n; c++) CHECK(series_value(&s, p, c) >= 0);
        CHECK(series_find_step(&s, s.frame.step) < s.n);
        CHECK(series_find_time(&s, s.frame.time) <= s.n);
    }
    series_close(&s);
}

static void go_on(const char *path) {
    const struct series_column columns[] = {{"compute", SERIES_SHARE, 0}, {"lanes", SERIES_SUM, 0}};
    const double value[2 * 2] = {0.5, 1};
    struct series_writer w;
    if (series_continue(&w, path, base_now(), 2, columns, 2)) return;
    CHECK(!series_add(&w, base_now(), &(struct series_frame){.step = 1}, value));
    series_writer_close(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char path[64];
    if (!size) return 0;
    if (!*path) base_format(path, sizeof path, "/tmp/trireme-fuzz-series-%d", (int)getpid());
    char *file;
    const size_t bytes = (*data & 1 ? make_right : make_copy)(data + 1, size - 1, &file);
    FILE *f = fopen(path, "w");
    CHECK(f && fwrite(file, 1, bytes, f) == bytes && !fclose(f));
    free(file);
    read_all(path);
    go_on(path);
    read_all(path);
    CHECK(!remove(path));
    return 0;
}
