/* SPDX-License-Identifier: Apache-2.0
 * For LD_PRELOAD: of Trireme's allocations the FAIL_AT-th fails. Their number is written to the
 * file FAIL_COUNT. Those of other libraries do not fail: C++ terminates a program without
 * memory. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

static long asked, fail_at = -1;

static int fails(const void *caller) {
    Dl_info info;
    if (!dladdr(caller, &info) || !info.dli_fname) return 0;
    const char *slash = strrchr(info.dli_fname, '/'), *name = slash ? slash + 1 : info.dli_fname;
    if (strcmp(name, "trireme") && strncmp(name, "libtrireme", 10)) return 0;
    if (fail_at < 0) fail_at = getenv("FAIL_AT") ? atol(getenv("FAIL_AT")) : 0;
    if (++asked != fail_at) return 0;
    errno = ENOMEM;
    return 1;
}

#define FAILS fails(__builtin_return_address(0))

void *malloc(size_t bytes) { return FAILS ? NULL : __libc_malloc(bytes); }
void *calloc(size_t n, size_t bytes) { return FAILS ? NULL : __libc_calloc(n, bytes); }
void *realloc(void *p, size_t bytes) { return FAILS ? NULL : __libc_realloc(p, bytes); }
void *aligned_alloc(size_t align, size_t bytes) {
    return FAILS ? NULL : __libc_memalign(align, bytes);
}
int posix_memalign(void **p, size_t align, size_t bytes) {
    *p = FAILS ? NULL : __libc_memalign(align, bytes);
    return *p ? 0 : ENOMEM;
}

__attribute__((destructor)) static void write_count(void) {
    FILE *f = getenv("FAIL_COUNT") ? fopen(getenv("FAIL_COUNT"), "w") : NULL;
    if (!f) return;
    fprintf(f, "%ld\n", asked);
    fclose(f);
}
