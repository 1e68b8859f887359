/* SPDX-License-Identifier: Apache-2.0
 * Any bytes as a file of hosts: names in lines, or a rank table. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "launch/host_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static int fd = -1;
    char path[64];
    struct host_list l;
    if (fd < 0) fd = memfd_create("hosts", 0);
    base_format(path, sizeof path, "/proc/self/fd/%d", fd);
    CHECK(fd >= 0 && !ftruncate(fd, 0) && pwrite(fd, data, size, 0) == (ssize_t)size);
    if (host_list_read(path, &l)) return 0;
    CHECK(l.n >= 1 && l.n <= HOSTS_MOST);
    for (int i = 0; i < l.n; i++) {
        CHECK(*l.host[i].name && memchr(l.host[i].name, 0, HOSTS_NAME) && l.host[i].workers >= 0);
        for (int k = 0; k < i; k++) CHECK(strcmp(l.host[i].name, l.host[k].name));
    }
    return 0;
}
