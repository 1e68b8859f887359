/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/meeting.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "link/sockets.h"
#include "observe/files.h"

#define PAUSE 50     /* milliseconds between two looks: other hosts' files make no event here */
#define ANSWER 2000  /* milliseconds for a coordinator to answer */
#define FILE_MOST 512 /* bytes */

#define SAID INT64_C(5000000000) /* nanoseconds after which it is said what is waited for */

static void folder_of(const struct given *g, const char *directory, char to[4096]) {
    base_format(to, 4096, "%s/launch-%s", directory, *g->job ? g->job : g->by);
}

/* Whether nobody else can have written it, or can read it. */
static bool is_own(const struct stat *is) {
    return is->st_uid == geteuid() && !(is->st_mode & 077);
}

static tri_status make_folder(const struct given *g, const char *directory, char folder[4096]) {
    struct stat is;
    folder_of(g, directory, folder);
    tri_status status = files_make_directory(directory);
    if (status) return status;
    if (mkdir(folder, 0700) && errno != EEXIST)
        return base_fail(TRI_FAILED, "cannot make %s: %s", folder, strerror(errno));
    if (lstat(folder, &is) || !S_ISDIR(is.st_mode) || !is_own(&is))
        return base_fail(TRI_USAGE, "%s is no directory of yours alone; remove it", folder);
    return TRI_OK;
}

/* Once, if it lasts. */
static void say(int64_t since, bool *said, const char *fmt, ...) TRI_PRINTF(3, 4);
static void say(int64_t since, bool *said, const char *fmt, ...) {
    va_list args;
    if (*said || base_now() - since < SAID) return;
    *said = true;
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
}

void meeting_name(char to[HOSTS_NAME]) {
    if (gethostname(to, HOSTS_NAME - 1)) *to = 0;
    to[HOSTS_NAME - 1] = 0;
    to[strcspn(to, ".")] = 0;
}

static tri_status write_file(const char *folder, const char *name, const char *text) {
    char path[4110], part[PART_PATH];
    base_format(path, sizeof path, "%s/%s", folder, name);
    const int fd = part_open(path, 0600, part);
    if (fd < 0) return TRI_FAILED;
    tri_status status = TRI_OK;
    if (!base_write_all(fd, text, strlen(text)))
        status = base_fail(TRI_FAILED, "cannot write %s: %s", path, strerror(errno));
    close(fd);
    return part_end(path, part, status);
}

/* Its lines, of this job; false: there is none yet. The first line is the job. */
static bool read_file(const char *folder, const char *name, const char *job, char text[FILE_MOST],
                      char *line[3]) {
    char path[4400], *rest = text;
    base_format(path, sizeof path, "%s/%s", folder, name);
    struct stat is;
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const bool good = fd >= 0 && !fstat(fd, &is) && S_ISREG(is.st_mode) && is_own(&is);
    const ssize_t n = good ? read(fd, text, FILE_MOST - 1) : -1;
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = 0;
    const char *first = strsep(&rest, "\n");
    for (int i = 0; i < 3; i++) line[i] = rest ? strsep(&rest, "\n") : NULL;
    return n > 0 && line[1] && !strcmp(first, job);
}

/* Whether somebody listens there. */
static bool answers(const char *address) {
    struct addrinfo *to = NULL;
    int fd = -1, error = 1;
    if (socket_find(address, true, &to)) return false;
    if (!socket_connect(to, &fd, &error) && !error) {
        struct pollfd wait = {fd, POLLOUT, 0};
        error = poll(&wait, 1, ANSWER) == 1 ? socket_error(fd) : ETIMEDOUT;
    }
    if (fd >= 0) close(fd);
    freeaddrinfo(to);
    return !error;
}

/* ---- in the process of rank 0 ---- */

struct came {
    int rank, size;
    char name[HOSTS_NAME];
};

static int by_rank(const void *a, const void *b) {
    const struct came *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* Returns the number of processes. */
static int look(const struct given *g, const char *folder, struct came *came, int *n) {
    int all = g->local_size;
    DIR *d = opendir(folder);
    *n = 1;
    for (struct dirent *e; d && *n < HOSTS_MOST && (e = readdir(d));) {
        char text[FILE_MOST], *line[3];
        struct came *c = &came[*n];
        if (e->d_name[strspn(e->d_name, "0123456789")] || !read_file(folder, e->d_name, g->job,
                                                                     text, line))
            continue;
        *c = (struct came){atoi(e->d_name), atoi(line[1]), ""};
        base_format(c->name, sizeof c->name, "%s", line[0]);
        if (c->rank < 1 || c->rank >= g->size || c->size < 1) continue;
        all += c->size;
        ++*n;
    }
    if (d) closedir(d);
    return all;
}

static tri_status list_hosts(const struct given *g, struct came *came, int n,
                             struct host_list *out) {
    *out = (struct host_list){.n = n};
    came[0] = (struct came){0, g->local_size, ""};
    meeting_name(came[0].name);
    qsort(came, (size_t)n, sizeof *came, by_rank);
    for (int i = 0; i < n; i++) {
        base_format(out->host[i].name, HOSTS_NAME, "%s", came[i].name);
        out->host[i].workers = came[i].size > 1 || g->workers ? came[i].size : 0;
        for (int k = 0; k < i; k++)
            if (!strcmp(came[k].name, came[i].name))
                return base_fail(TRI_USAGE, "the processes %d and %d of %s are on two hosts that "
                                 "are both named %s", came[k].rank, came[i].rank, g->by,
                                 came[i].name);
    }
    return TRI_OK;
}

tri_status meeting_collect(const struct given *g, const char *directory, double seconds,
                           struct host_list *out) {
    struct came *came = calloc(HOSTS_MOST + 1, sizeof *came);
    char folder[4096];
    int n = 1, all = 0;
    const int64_t begin = base_now(), end = begin + (int64_t)(1e9 * seconds);
    bool said = false;
    tri_status status = came ? make_folder(g, directory, folder) : base_no_memory("the hosts");
    while (!status && (all = look(g, folder, came, &n)) < g->size && base_now() < end) {
        say(begin, &said, "trireme: %d of %d processes of %s have come to %s; the others have %g "
            "s\n", all, g->size, g->by, folder, seconds);
        poll(NULL, 0, PAUSE);
    }
    if (!status && all != g->size)
        status = base_fail(TRI_USAGE, "%s starts %d processes, but %d came to %s within %g s; all "
                           "hosts must share this directory (--out), else start `trireme join "
                           "ADDRESS --key FILE` on them", g->by, g->size, all, folder, seconds);
    if (!status) status = list_hosts(g, came, n, out);
    free(came);
    return status;
}

tri_status meeting_announce(const struct given *g, const char *directory, const char *address,
                            const char *digits) {
    char folder[4096], text[FILE_MOST], *line[3];
    tri_status status = make_folder(g, directory, folder);
    if (status) return status;
    const bool other = read_file(folder, "address", g->job, text, line) && answers(line[0]);
    sodium_memzero(text + (line[1] ? line[1] - text : 0), line[1] ? strlen(line[1]) : 0);
    if (other)
        return base_fail(TRI_USAGE, "two processes of %s are rank 0, by their variables: this one, "
                         "and the one that listens at %s", g->by, line[0]);
    base_format(text, sizeof text, "%s\n%s\n%s\n", g->job, address, digits ? digits : "-");
    status = write_file(folder, "address", text);
    sodium_memzero(text, sizeof text);
    return status;
}

void meeting_end(const struct given *g, const char *directory) {
    char folder[4096];
    struct stat is;
    folder_of(g, directory, folder);
    DIR *d = lstat(folder, &is) || !S_ISDIR(is.st_mode) ? NULL : opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        if (strspn(e->d_name, "0123456789") || !strncmp(e->d_name, "address", 7))
            unlinkat(dirfd(d), e->d_name, 0);
    if (d) closedir(d);
    rmdir(folder);
}

/* ---- in another process ---- */

tri_status meeting_find(const struct given *g, const char *directory, double seconds,
                        char address[LINK_ADDRESS], uint8_t key[LINK_KEY], bool *has_key) {
    char folder[4096], name[16], own[HOSTS_NAME], text[FILE_MOST], *line[3];
    const int64_t begin = base_now(), end = begin + (int64_t)(1e9 * seconds);
    size_t bytes = 0;
    bool said = false;
    meeting_name(own);
    tri_status status = make_folder(g, directory, folder);
    base_format(name, sizeof name, "%d", g->rank);
    base_format(text, sizeof text, "%s\n%s\n%d\n", g->job, own, g->local_size);
    if (!status) status = write_file(folder, name, text);
    if (status) return status;
    /* Without the name of a job, the file may be an earlier one's. */
    while (!read_file(folder, "address", g->job, text, line) ||
           (!*g->job && !answers(line[0]))) {
        if (base_now() > end)
            return base_fail(TRI_USAGE, "process %d of %d by %s: no address of rank 0 came to "
                             "%s/address within %g s; all hosts must share this directory (--out), "
                             "else start `trireme join ADDRESS --key FILE` on them", g->rank,
                             g->size, g->by, folder, seconds);
        say(begin, &said, "trireme: process %d of %d by %s waits for that of rank 0, which has "
            "%g s to write %s/address\n", g->rank, g->size, g->by, seconds, folder);
        poll(NULL, 0, PAUSE);
    }
    base_format(address, LINK_ADDRESS, "%s", line[0]);
    *has_key = !sodium_hex2bin(key, LINK_KEY, line[1], strlen(line[1]), NULL, &bytes, NULL) &&
               bytes == LINK_KEY;
    sodium_memzero(text, sizeof text);
    return TRI_OK;
}
