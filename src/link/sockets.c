/* SPDX-License-Identifier: Apache-2.0 */
#include "link/sockets.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define TURNS 16 /* of one call */
#define A_MINUTE INT64_C(60000000000)
#define A_SECOND INT64_C(1000000000)
#define GRACE INT64_C(100000000)

static tri_status fail_errno(const char *what) {
    return base_fail(TRI_FAILED, "%s: %s", what, strerror(errno));
}

/* ---- addresses ---- */

static bool is_port(const char *text) {
    const size_t n = strlen(text);
    return n && n < 6 && strspn(text, "0123456789") == n && atoi(text) < 65536;
}

tri_status socket_find(const char *address, bool names, struct addrinfo **found) {
    char host[256];
    const char *colon = strrchr(address, ':');
    const bool bracket = address[0] == '[';
    const struct addrinfo like = {.ai_socktype = SOCK_STREAM,
                                  .ai_flags = AI_NUMERICSERV | (names ? 0 : AI_NUMERICHOST)};
    const size_t n = colon ? (size_t)(colon - address) : 0;
    if (n && n < sizeof host && is_port(colon + 1) &&
        (!bracket || (n > 2 && address[n - 1] == ']'))) {
        memcpy(host, address + bracket, n - 2 * bracket);
        host[n - 2 * bracket] = 0;
        int error = getaddrinfo(host, colon + 1, &like, found);
        if (!error) return TRI_OK;
        if (names && (bracket || !strchr(host, ':')))
            return base_fail(TRI_FAILED, "cannot find \"%s\": %s", host,
                             error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error));
    }
    return base_fail(TRI_USAGE, "\"%s\" is no address; \"10.0.0.1:4000\" is one", address);
}

/* An IPv4 peer of an IPv6 listener has its IPv4 address. */
static void unmap(struct sockaddr_storage *a) {
    const struct sockaddr_in6 *six = (struct sockaddr_in6 *)a;
    struct sockaddr_in four = {.sin_family = AF_INET};
    if (a->ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) return;
    four.sin_port = six->sin6_port;
    memcpy(&four.sin_addr, six->sin6_addr.s6_addr + 12, 4);
    memcpy(a, &four, sizeof four);
}

void socket_text(const struct sockaddr_storage *of, bool port, char to[LINK_ADDRESS]) {
    char host[LINK_ADDRESS - 10], service[8];
    struct sockaddr_storage a = *of;
    strcpy(to, "?");
    unmap(&a);
    const bool six = a.ss_family == AF_INET6;
    const socklen_t n = six ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (getnameinfo((struct sockaddr *)&a, n, host, sizeof host, service, sizeof service,
                    NI_NUMERICHOST | NI_NUMERICSERV))
        return;
    if (port) snprintf(to, LINK_ADDRESS, six ? "[%s]:%s" : "%s:%s", host, service);
    else snprintf(to, LINK_ADDRESS, "%s", host);
}

void socket_name(int fd, bool peer, bool port, char to[LINK_ADDRESS]) {
    struct sockaddr_storage a = {.ss_family = AF_UNSPEC};
    socklen_t n = sizeof a;
    (void)!(peer ? getpeername : getsockname)(fd, (struct sockaddr *)&a, &n);
    socket_text(&a, port, to);
}

tri_status socket_connect(const struct addrinfo *to, int *fd, int *error) {
    *fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    *error = 0;
    if (*fd < 0) return fail_errno("a socket");
    if (connect(*fd, to->ai_addr, to->ai_addrlen) && errno != EINPROGRESS) *error = errno;
    return TRI_OK;
}

int socket_error(int fd) {
    int error = 0;
    socklen_t n = sizeof error;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) ? errno : error;
}

/* ---- epoll and the timer ---- */

static tri_status watch(struct sockets *s, int fd, void *who, uint32_t events, bool is_new) {
    struct epoll_event e = {.events = events, .data.ptr = who};
    int op = is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    return epoll_ctl(s->fd, op, fd, &e) ? fail_errno("epoll") : TRI_OK;
}

void sockets_watch(struct sockets *s, struct sock *x, uint32_t events) {
    if (events == x->events) return;
    CHECK(x->fd < 0 || !watch(s, x->fd, x, events, x->rests));
    x->events = events;
    x->rests = false;
}

void sockets_rest(struct sockets *s, struct sock *x) {
    x->events = 0;
    x->rests = true;
    CHECK(!epoll_ctl(s->fd, EPOLL_CTL_DEL, x->fd, NULL));
}

/* The oldest stranger, or null if there is room for another. */
static struct sock *is_full(const struct sockets *s) {
    struct sock *oldest = NULL;
    int strangers = 0;
    for (struct sock *x = s->first; x; x = x->next)
        if (x->is_stranger) strangers++, oldest = x;
    return strangers < SOCKETS_STRANGERS ? NULL : oldest;
}

/* Accepts nothing until then. */
static void pause_until(struct sockets *s, int64_t when, bool for_room) {
    const uint32_t events = when ? 0 : EPOLLIN;
    s->listen_at = when;
    s->for_room = for_room;
    CHECK(!watch(s, s->listener, &s->listener, events, false));
}

static void set_timer(struct sockets *s) {
    if (s->for_room && !is_full(s)) pause_until(s, 0, false);
    int64_t first = s->listen_at ? s->listen_at : INT64_MAX;
    for (struct sock *x = s->first; x; x = x->next)
        if (x->deadline && x->deadline < first) first = x->deadline;
    if (s->awake) first = 1;
    struct itimerspec at = {0};
    if (first < INT64_MAX) at.it_value = (struct timespec){first / A_SECOND, first % A_SECOND};
    CHECK(!timerfd_settime(s->timer, TFD_TIMER_ABSTIME, &at, NULL));
}

void sockets_set_deadline(struct sockets *s, struct sock *x, int64_t deadline) {
    x->deadline = deadline;
    set_timer(s);
}

void sockets_wake(struct sockets *s) {
    if (s->awake) return;
    s->awake = true;
    set_timer(s);
}

static tri_status expire(struct sockets *s) {
    uint64_t times;
    const int64_t now = base_now();
    if (read(s->timer, &times, sizeof times) < 0 && errno != EAGAIN) return fail_errno("a timer");
    s->awake = false;
    for (struct sock *x = s->first, *next; x; x = next) {
        next = x->next;
        if (x->deadline && x->deadline <= now) s->row->end(s->user, x, NULL);
    }
    if (s->listen_at && s->listen_at <= now) pause_until(s, 0, false);
    set_timer(s);
    return TRI_OK;
}

/* ---- sockets ---- */

tri_status sockets_add(struct sockets *s, struct sock *x, int fd, uint32_t events) {
    int one = 1;
    tri_status status = fd < 0 ? TRI_OK : watch(s, fd, x, events, true);
    if (status) {
        close(fd);
        return status;
    }
    if (fd >= 0) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    x->fd = fd;
    x->events = events;
    x->since = base_now();
    x->next = s->first;
    s->first = x;
    set_timer(s);
    return TRI_OK;
}

void sockets_remove(struct sockets *s, struct sock *x) {
    struct sock **at = &s->first;
    while (*at != x) at = &(*at)->next;
    *at = x->next;
    if (x->fd >= 0) close(x->fd);
    set_timer(s);
}

static tri_status accept_one(struct sockets *s) {
    char from[LINK_ADDRESS];
    const int64_t now = base_now();
    struct sock *oldest = is_full(s);
    if (oldest && now < oldest->since + GRACE) {
        pause_until(s, oldest->since + GRACE, true);
        set_timer(s);
        return TRI_OK;
    }
    if (oldest) s->row->end(s->user, oldest, "it said nothing");
    int fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        socket_name(fd, true, true, from);
        return s->row->accepted(s->user, fd, from);
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        pause_until(s, now + A_SECOND, false);
        set_timer(s);
    }
    return TRI_OK; /* else the connection is gone already */
}

bool sockets_refuse(struct sockets *s, const char *from, const char *why, char line[LINK_WHY]) {
    const int64_t now = base_now();
    s->refused++;
    if (s->told && now - s->told < A_MINUTE) return false;
    snprintf(line, LINK_WHY, "refused %ld connection%s; the last from %s: %s", s->refused,
             s->refused == 1 ? "" : "s", from, why);
    s->told = now;
    s->refused = 0;
    return true;
}

/* ---- all ---- */

tri_status sockets_work(struct sockets *s) {
    for (int i = 0; i < TURNS && !s->row->has_told(s->user); i++) {
        struct epoll_event e;
        tri_status status = TRI_OK;
        int n = epoll_wait(s->fd, &e, 1, 0);
        if (n < 0 && errno != EINTR) return fail_errno("epoll");
        if (!n) break;
        if (n < 0) continue;
        if (e.data.ptr == &s->listener) status = accept_one(s);
        else if (e.data.ptr == &s->timer) status = expire(s);
        else s->row->ready(s->user, e.data.ptr, e.events);
        if (status) return status;
    }
    return TRI_OK;
}

void socket_put_port(char *to, size_t room, const char *host, int port) {
    base_format(to, room, strchr(host, ':') ? "[%s]:%d" : "%s:%d", host, port);
}

tri_status socket_find_port(const char *host, int port, char address[LINK_ADDRESS],
                            struct addrinfo **found) {
    if (!host) host = "0.0.0.0";
    socket_put_port(address, LINK_ADDRESS, host, port);
    return socket_find(address, false, found);
}

static tri_status listen_at(struct sockets *s, const char *host, int port) {
    char address[LINK_ADDRESS];
    struct addrinfo *a;
    int one = 1;
    tri_status status = socket_find_port(host, port, address, &a);
    if (status) return status;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd < 0 || bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, 1024)) {
        status = base_fail(TRI_FAILED, "cannot listen at %s: %s", address, strerror(errno));
        if (fd >= 0) close(fd);
    } else {
        s->listener = fd;
        socket_name(fd, false, true, s->address);
    }
    freeaddrinfo(a);
    return status;
}

tri_status sockets_listen(struct sockets *s, const char *address, const int port[2]) {
    tri_status status = TRI_FAILED;
    for (int at = port[0]; status && at <= port[1]; at++)
        status = listen_at(s, address, at);
    return status ? status : watch(s, s->listener, &s->listener, EPOLLIN, true);
}

void sockets_close(struct sockets *s) {
    const int fds[] = {s->listener, s->timer, s->fd};
    for (size_t i = 0; i < COUNT(fds); i++)
        if (fds[i] >= 0) close(fds[i]);
}

tri_status sockets_open(struct sockets *s, const struct sockets_user *row, void *user) {
    *s = (struct sockets){.listener = -1, .row = row, .user = user};
    s->fd = epoll_create1(EPOLL_CLOEXEC);
    s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (s->fd < 0 || s->timer < 0) return fail_errno("sockets");
    return watch(s, s->timer, &s->timer, EPOLLIN, true);
}
