/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as the file of a machine's prices, after its first line or without it. What is read
 * must be written and read again as the same; a refusal must be one line of text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "price/prices.h"

/* What has lines is not refused for its hash. */
static void seal(const char *path) {
    struct text t = {0};
    char *text;
    size_t bytes;
    CHECK(!base_read_file(path, &text, &bytes));
    text_add(&t, "%s", text);
    prices_seal(&t);
    FILE *f = fopen(path, "a");
    CHECK(f && fputs(t.data + (strlen(text) < t.size ? strlen(text) : 0), f) >= 0 && !fclose(f));
    free(text);
    text_free(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_file(const char *path, const char *head, const uint8_t *data, size_t size) {
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(head, f) >= 0 && fwrite(data, 1, size, f) == size && !fclose(f));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char path[64];
    struct prices p, again;
    struct text head = {0};
    if (!*path) base_format(path, sizeof path, "/tmp/fuzz_prices.%d", (int)getpid());
    CHECK(!prices_make(&p, 0) && !prices_make(&again, 0));
    if (size && data[0] != '#') text_add(&head, "machine %s\n", p.machine);
    write_file(path, head.data ? head.data : "", data, size);
    if (head.data) seal(path);
    if (prices_read(&p, path)) {
        const char *m = tri_message();
        CHECK(m[0] && !strchr(m, '\n'));
    } else {
        CHECK(!prices_write(&p, path) && !prices_read(&again, path) && again.n == p.n);
        for (size_t i = 0; i < p.n; i++)
            CHECK(!strcmp(p.price[i].unit, again.price[i].unit) &&
                  p.price[i].busy == again.price[i].busy &&
                  p.price[i].calls == again.price[i].calls);
    }
    unlink(path);
    text_free(&head);
    prices_free(&p);
    prices_free(&again);
    return 0;
}
