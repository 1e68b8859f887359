/* SPDX-License-Identifier: Apache-2.0
 * For LD_PRELOAD: counts the calls that change files in the directory CUT_UNDER, an absolute path.
 * At call number CUT_AT the process is killed, in the middle of a write; or, with CUT_ERROR, the
 * call fails with that error number. CUT_ROOM: the directory is on a disk of so many bytes, which
 * counts files two levels below it. */
#undef _FILE_OFFSET_BITS /* so that open and open64 are two functions */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool below(const char *path) {
    const char *directory = getenv("CUT_UNDER");
    size_t n = directory ? strlen(directory) : 0;
    return n && !strncmp(path, directory, n) && (!path[n] || path[n] == '/');
}

static bool is_below(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) return false;
    path[n] = 0;
    return below(path);
}

/* Counts a call; whether it is call number CUT_AT. */
static bool counts(void) {
    static atomic_long calls;
    const char *at = getenv("CUT_AT");
    return at && atomic_fetch_add(&calls, 1) + 1 == atol(at);
}

/* Kills the process, or returns whether the call fails. */
static bool cut(bool concerned) {
    const char *error = getenv("CUT_ERROR");
    if (!concerned || !counts()) return false;
    if (!error) kill(getpid(), SIGKILL);
    errno = error ? atoi(error) : 0;
    return true;
}

/* The free bytes of that disk; unlimited without CUT_ROOM. */
static long long room_left(void) {
    const char *directory = getenv("CUT_UNDER"), *room = getenv("CUT_ROOM");
    DIR *d = directory && room ? opendir(directory) : NULL;
    long long left = d ? atoll(room) : INT64_MAX;
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", directory, e->d_name);
        DIR *within = *e->d_name != '.' || e->d_name[1] == 'p' ? opendir(path) : NULL;
        struct stat st;
        for (struct dirent *f; within && (f = readdir(within));)
            if (!fstatat(dirfd(within), f->d_name, &st, 0) && S_ISREG(st.st_mode))
                left -= st.st_size;
        if (within) closedir(within);
    }
    if (d) closedir(d);
    return left;
}

static int tell_room(const char *path, struct statvfs *out) {
    struct statvfs mine = {.f_bsize = 1, .f_frsize = 1};
    long long left = below(path) ? room_left() : INT64_MAX;
    mine.f_bavail = left < 0 ? 0 : (fsblkcnt_t)left;
    *out = mine;
    return 0;
}
int statvfs(const char *path, struct statvfs *out) { return tell_room(path, out); }
int statvfs64(const char *path, struct statvfs64 *out) {
    return tell_room(path, (struct statvfs *)out);
}

ssize_t write(int fd, const void *data, size_t bytes) {
    if (is_below(fd) && room_left() < (long long)bytes) {
        errno = ENOSPC;
        return -1;
    }
    if (is_below(fd) && counts()) {
        if (!getenv("CUT_ERROR")) {
            syscall(SYS_write, fd, data, bytes / 2);
            kill(getpid(), SIGKILL);
        }
        errno = atoi(getenv("CUT_ERROR"));
        return -1;
    }
    return syscall(SYS_write, fd, data, bytes);
}

int fsync(int fd) { return cut(is_below(fd)) ? -1 : (int)syscall(SYS_fsync, fd); }
int fdatasync(int fd) { return cut(is_below(fd)) ? -1 : (int)syscall(SYS_fdatasync, fd); }
int ftruncate(int fd, off_t n) {
    return cut(is_below(fd)) ? -1 : (int)syscall(SYS_ftruncate, fd, n);
}

int renameat2(int at, const char *from, int to_at, const char *to, unsigned flags) {
    return cut(below(from) || below(to)) ? -1
                                         : (int)syscall(SYS_renameat2, at, from, to_at, to, flags);
}
int rename(const char *from, const char *to) { return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0); }
int mkdir(const char *path, mode_t mode) {
    return cut(below(path)) ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}
int unlink(const char *path) {
    return cut(below(path)) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}
int rmdir(const char *path) {
    return cut(below(path)) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

static int open_it(const char *path, int flags, mode_t mode) {
    bool writes = (flags & O_ACCMODE) != O_RDONLY;
    return cut(writes && below(path)) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

#define OPEN(name)                                      \
    int name(const char *path, int flags, ...) {        \
        va_list arg;                                    \
        va_start(arg, flags);                           \
        mode_t mode = va_arg(arg, mode_t);              \
        va_end(arg);                                    \
        return open_it(path, flags, mode);              \
    }
OPEN(open)
OPEN(open64)
