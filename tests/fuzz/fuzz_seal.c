/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a sealed file: none opens that was not sealed with this key. And a sealed file with
 * some bytes changed or cut off: it opens as it was, or fails with a reason. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/outfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct seal_key *fuzz_key(void) {
    static struct seal_key *key;
    char path[64];
    int fd = key ? -1 : memfd_create("key", 0);
    if (key) return key;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    CHECK(!fchmod(fd, 0600) && write(fd, "0123456789abcdefghijklmnopqrstuv", 32) == 32);
    CHECK(!seal_key_open(path, &key));
    close(fd);
    return key;
}

static char *seal(const struct seal *s, const uint8_t *data, size_t size, size_t *bytes) {
    char path[64], *file;
    struct outfile f;
    /* links are not followed */
    snprintf(path, sizeof path, "/tmp/trireme-fuzz-seal-%d", (int)getpid());
    tri_status status = outfile_open(&f, path, s);
    if (!status) status = outfile_write(&f, data, size);
    CHECK(!outfile_close(&f, status, NULL) && !base_read_file(path, &file, bytes));
    unlink(path);
    return file;
}

static void one_line_message(void) { CHECK(tri_message()[0] && !strchr(tri_message(), '\n')); }

/* data: the content to seal; its first bytes: the changes. */
static void change(const struct seal *s, const uint8_t *data, size_t size) {
    size_t bytes, n, at = data[0] | (size_t)data[1] << 8;
    char *file = seal(s, data, size, &bytes);
    n = data[2] & 1 ? at % (bytes + 1) : bytes;
    if (n) file[at % n] = (char)(file[at % n] ^ data[3]);
    bool same = n == bytes && !data[3];
    if (seal_open("fuzz", s, file, &n)) {
        CHECK(!same);
        one_line_message();
    } else {
        CHECK(same && n == size && !memcmp(file, data, n));
    }
    free(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct seal s = {fuzz_key(), "fuzz", 1};
    size_t n = size;
    char *copy = malloc(size + 1);
    CHECK(copy);
    memcpy(copy, data, size);
    CHECK(seal_open("fuzz", &s, copy, &n));
    one_line_message();
    free(copy);
    if (size >= 4) change(&s, data, size);
    return 0;
}
