/* SPDX-License-Identifier: Apache-2.0 */
#include "page/port.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NEXT 20 /* ports that are tried in place of one that is taken */

/* The socket's number in /proc of who listens on a port; 0: not found. */
static unsigned long listener(int port) {
    static const char *const tables[] = {"/proc/net/tcp", "/proc/net/tcp6"};
    unsigned long found = 0;
    for (size_t i = 0; i < COUNT(tables) && !found; i++) {
        FILE *f = fopen(tables[i], "re");
        char line[512];
        while (f && !found && fgets(line, sizeof line, f)) {
            unsigned at, state;
            unsigned long inode;
            if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%x %*s %x %*s %*s %*s %*s %*s %lu", &at, &state,
                       &inode) == 3 && (int)at == port && state == 10)
                found = inode;
        }
        if (f) fclose(f);
    }
    return found;
}

static bool has_socket(const char *pid, const char *socket) {
    char folder[300], path[600], link[64];
    bool has = false;
    base_format(folder, sizeof folder, "/proc/%s/fd", pid);
    DIR *d = opendir(folder);
    for (struct dirent *e; d && !has && (e = readdir(d));) {
        base_format(path, sizeof path, "%s/%s", folder, e->d_name);
        const ssize_t n = readlink(path, link, sizeof link - 1);
        link[n > 0 ? n : 0] = 0;
        has = !strcmp(link, socket);
    }
    if (d) closedir(d);
    return has;
}

/* " by python3, pid 4411"; nothing if that cannot be seen. */
static void add_owner(int port, struct text *out) {
    const unsigned long inode = listener(port);
    char socket[64], path[300], name[64] = "";
    DIR *d = inode ? opendir("/proc") : NULL;
    base_format(socket, sizeof socket, "socket:[%lu]", inode);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (!isdigit((unsigned char)*e->d_name) || !has_socket(e->d_name, socket)) continue;
        base_format(path, sizeof path, "/proc/%s/comm", e->d_name);
        FILE *f = fopen(path, "re");
        if (f && fgets(name, sizeof name, f)) name[strcspn(name, "\n")] = 0;
        if (f) fclose(f);
        text_add(out, " by ");
        text_add_escaped(out, name);
        text_add(out, ", pid %s", e->d_name);
        break;
    }
    if (d) closedir(d);
}

static int listen_at(const struct addrinfo *a) {
    const int fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), yes = 1;
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (!bind(fd, a->ai_addr, a->ai_addrlen) && !listen(fd, 1024)) return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

/* -1 with errno, or a reason of getaddrinfo in *why. */
static int try_port(const char *host, int port, int *why) {
    const struct addrinfo hints = {.ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char service[16];
    base_format(service, sizeof service, "%d", port);
    *why = getaddrinfo(host ? host : "127.0.0.1", service, &hints, &found);
    if (*why) return -1;
    const int fd = listen_at(found), error = errno;
    freeaddrinfo(found);
    errno = error;
    return fd;
}

static tri_status taken(const char *host, int port) {
    struct text text = {0};
    int why, free = 0;
    text_add(&text, "port %d is taken", port);
    add_owner(port, &text);
    for (int next = port + 1; next <= port + NEXT && next < 65536 && !free; next++) {
        const int fd = try_port(host, next, &why);
        if (fd >= 0) close(fd), free = next;
    }
    if (free) text_add(&text, "; --port %d is free", free);
    const tri_status status = text.failed ? base_no_memory("a message")
                                          : base_fail(TRI_USAGE, "%s", text.data);
    text_free(&text);
    return status;
}

tri_status port_open(const char *host, int port, int *fd) {
    int why;
    *fd = try_port(host, port, &why);
    if (*fd >= 0) return TRI_OK;
    if (why) return base_fail(TRI_USAGE, "--host %s: %s", host, gai_strerror(why));
    if (errno == EADDRINUSE) return taken(host, port);
    if (errno == EADDRNOTAVAIL)
        return base_fail(TRI_USAGE, "--host %s is no address of this machine", host);
    if (errno == EACCES)
        return base_fail(TRI_USAGE, "port %d is for the administrator alone; take one above 1023",
                         port);
    return base_fail(TRI_FAILED, "cannot listen on port %d: %s", port, strerror(errno));
}
