/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a tar archive: its entries are within it, in order. The headers' checksums are
 * corrected, because random bytes never match them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/tar_scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct archive {
    const uint8_t *data;
    size_t size;
};

static void put_sum(unsigned char *h) {
    unsigned sum = 0;
    memset(h + 148, ' ', 8);
    for (int i = 0; i < 512; i++) sum += h[i];
    if (sum != 8 * ' ') snprintf((char *)h + 148, 8, "%06o", sum);
    else memset(h + 148, 0, 8);
}

static int64_t read_bytes(void *user, uint64_t offset, void *to, size_t n) {
    const struct archive *a = user;
    if (offset >= a->size) return 0;
    size_t have = a->size - (size_t)offset < n ? a->size - (size_t)offset : n;
    memcpy(to, a->data + offset, have);
    if (n == 512 && have == 512) put_sum(to);
    return (int64_t)have;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct archive a = {data, size};
    struct tar_scan s = {read_bytes, &a, size, "fuzz", 0};
    struct tar_entry e;
    tri_status status;
    uint64_t last = 0;
    while (tar_next(&s, &e, &status)) {
        CHECK(e.offset >= last + 512 && e.size <= size && e.offset <= size - e.size);
        CHECK(e.name[0] && strlen(e.name) < TAR_NAME);
        last = e.offset + e.size;
    }
    return 0;
}
