/* SPDX-License-Identifier: Apache-2.0
 * Records which functions of a build with -finstrument-functions run: for scripts/walk.py, which
 * loads it with LD_PRELOAD. Each thread writes its own file, WALK.PID.TID, of 64-bit words: an
 * address shifted left by one, plus 1 at the end of the function. The first word is the address at
 * which the program lies. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WORDS 1024

static _Thread_local struct {
    int fd, n;
    uint64_t word[WORDS];
} file = {.fd = -2};

void __cyg_profile_func_enter(void *function, void *site);
void __cyg_profile_func_exit(void *function, void *site);

static void flush(void) {
    ssize_t bytes = (ssize_t)sizeof *file.word * file.n;
    if (file.fd >= 0 && write(file.fd, file.word, (size_t)bytes) != bytes) abort();
    file.n = 0;
}

static void put(void *function, uint64_t end) {
    if (file.fd == -2) {
        char name[4096];
        Dl_info program;
        const char *walk = getenv("WALK");
        if (!walk || !dladdr(function, &program)) abort();
        snprintf(name, sizeof name, "%s.%d.%d", walk, (int)getpid(), (int)gettid());
        file.fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        file.word[file.n++] = (uint64_t)(uintptr_t)program.dli_fbase;
    }
    file.word[file.n++] = (uint64_t)(uintptr_t)function << 1 | end;
    if (file.n == WORDS) flush();
}

void __cyg_profile_func_enter(void *function, void *site) {
    (void)site;
    put(function, 0);
}

void __cyg_profile_func_exit(void *function, void *site) {
    (void)site;
    put(function, 1);
}

__attribute__((destructor)) static void last(void) { flush(); }
