/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a tar archive from a pipe, which is read on after each failure. The headers'
 * checksums are corrected, because random bytes never match them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/tar_pipe.h"

#define BLOCK 512
#define SAMPLES 6

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void put_sum(unsigned char *h) {
    unsigned sum = 0;
    memset(h + 148, ' ', 8);
    for (int i = 0; i < BLOCK; i++) sum += h[i];
    if (sum != 8 * ' ') snprintf((char *)h + 148, 8, "%06o", sum & 0777777);
    else memset(h + 148, 0, 8);
}

/* The input's bytes as a file, which is read like a pipe: from beginning to end. */
static int make_file(const uint8_t *data, size_t size) {
    unsigned char *bytes = malloc(size + 1);
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    CHECK(bytes && fd >= 0);
    memcpy(bytes, data, size);
    for (size_t at = 0; at + BLOCK <= size; at += BLOCK) put_sum(bytes + at);
    CHECK(write(fd, bytes, size) == (ssize_t)size);
    free(bytes);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static float image[3 * 8 * 8];
    int64_t label;
    char path[64], options[] = "samples=6,size=8,window=2,max-bad=0";
    int fd = make_file(data, size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    tri_data *d =
        tar_open_pipe(&(struct data_spec){.spec = "fuzz", .rest = path, .options = options});
    CHECK(d);
    for (int64_t i = 0; i < SAMPLES; i++)
        if (!tri_data_get(d, i, 0, 1, (void *const[]){image, &label})) CHECK(label >= 0);
    tri_data_free(d);
    close(fd);
    return 0;
}
