/* SPDX-License-Identifier: Apache-2.0
 * The row tcp: a socket for each session. All sockets, the listener and a timer for greetings are
 * in one epoll descriptor, which is readable if there is work. Sockets are ready as long as they
 * have something, and one turn moves at most TURN bytes, so none starves the others. */
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

#include "link/link_inside.h"
#include "link/outgoing.h"

#define TURN (1 << 20)
#define TURNS 16 /* of one call */
#define STRANGERS 32 /* connections that have not greeted yet; a new one replaces the oldest */
#define PATIENCE INT64_C(5000000000)
#define A_MINUTE INT64_C(60000000000)
#define A_SECOND INT64_C(1000000000)

enum state {
    CONNECTING,
    GREETING,
    HELD, /* it has greeted; link_peer has not been called for its epoch yet */
    ASKS, /* this host has greeted; the other has not called link_peer yet */
    JOINED,
};

struct conn {
    int fd;
    enum state state;
    bool mine;       /* link_peer made it */
    bool leaving;    /* WIRE_LEAVES is queued, */
    bool has_left;   /* and sent; */
    bool peer_left;  /* has come */
    bool waits;      /* a header has come whose payload has no place yet */
    uint32_t events; /* that epoll waits for */
    int64_t deadline; /* unless joined */
    char from[LINK_ADDRESS];
    struct wire wire;
    struct outgoing out;
    struct conn *next;
};

struct tcp {
    struct link base;
    struct wire_side side;
    int64_t patience;
    int listener, timer;
    int64_t listen_at;  /* when there were no descriptors: when to accept again; else 0 */
    struct conn *first; /* of all, the newest first */
    struct conn **peer; /* by host; null */
    struct awaited {
        bool on;        /* link_peer was called, and the host has not joined */
        uint32_t epoch; /* the latest that it was called for */
    } *awaited;         /* by host */
    long refused;
    int64_t told; /* when LINK_REFUSED was told last; 0: never */
    char *spare;  /* for what is dropped */
};

static tri_status fail_errno(const char *what) {
    return base_fail(TRI_FAILED, "%s: %s", what, strerror(errno));
}

/* ---- the timer and epoll ---- */

static tri_status watch(struct tcp *t, int fd, void *who, uint32_t events, bool is_new) {
    struct epoll_event e = {.events = events, .data.ptr = who};
    int op = is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    return epoll_ctl(t->base.fd, op, fd, &e) ? fail_errno("epoll") : TRI_OK;
}

/* Without a key, a stranger may be held. */
static bool has_deadline(const struct tcp *t, const struct conn *c) {
    return c->state == HELD ? !t->side.key : c->state < HELD;
}

static void set_timer(struct tcp *t) {
    int64_t first = t->listen_at ? t->listen_at : INT64_MAX;
    for (struct conn *c = t->first; c; c = c->next)
        if (has_deadline(t, c) && c->deadline < first) first = c->deadline;
    struct itimerspec at = {0};
    if (first < INT64_MAX) at.it_value = (struct timespec){first / A_SECOND, first % A_SECOND};
    CHECK(!timerfd_settime(t->timer, TFD_TIMER_ABSTIME, &at, NULL));
}

/* ---- the end of a connection ---- */

static void drop(struct tcp *t, struct conn *c) {
    struct conn **at = &t->first;
    while (*at != c) at = &(*at)->next;
    *at = c->next;
    if (c->wire.host >= 0 && t->peer[c->wire.host] == c) t->peer[c->wire.host] = NULL;
    close(c->fd);
    wire_free(&c->wire);
    outgoing_free(&c->out);
    free(c);
    set_timer(t);
}

/* A line a minute, whatever strangers do. */
static void refuse(struct tcp *t, const struct conn *c, const char *why) {
    const int64_t now = base_now();
    t->refused++;
    if (t->told && now - t->told < A_MINUTE) return;
    struct link_event *e = link_tell(&t->base, LINK_REFUSED, -1);
    snprintf(e->why, sizeof e->why, "refused %ld connection%s; the last from %s: %s", t->refused,
             t->refused == 1 ? "" : "s", c->from, why);
    t->told = now;
    t->refused = 0;
}

static void end(struct tcp *t, struct conn *c, const char *why) {
    if (c->mine || c->state == JOINED) {
        struct link_event *e = link_tell(&t->base, LINK_ENDED, c->wire.host);
        e->left = c->peer_left && c->has_left;
        snprintf(e->why, sizeof e->why, "%s", why);
    } else {
        refuse(t, c, why);
    }
    drop(t, c);
}

static const char *why_closed(const struct conn *c) {
    if (c->state == CONNECTING || c->state == GREETING) return "it closed the connection at once";
    if (wire_is_inside(&c->wire)) return "it closed the connection inside a message";
    return "it closed the connection, as when a process dies";
}

/* ---- new connections ---- */

static tri_status add_conn(struct tcp *t, int fd, enum state state, int host, uint32_t epoch,
                           struct conn **out) {
    const uint32_t events = state == CONNECTING ? EPOLLOUT : EPOLLIN;
    struct conn *c = calloc(1, sizeof *c);
    int one = 1;
    tri_status status = c ? wire_begin(&c->wire, &t->side, host, epoch, t->spare)
                          : base_no_memory("a connection");
    if (!status) status = watch(t, fd, c, events, true);
    if (status) {
        close(fd);
        free(c);
        return status;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c->fd = fd;
    c->state = state;
    c->events = events;
    c->deadline = base_now() + t->patience;
    c->next = t->first;
    *out = t->first = c;
    set_timer(t);
    return TRI_OK;
}

static bool is_stranger(const struct conn *c) { return !c->mine && c->state == GREETING; }

static void make_room(struct tcp *t) {
    struct conn *oldest = NULL;
    int strangers = 0;
    for (struct conn *c = t->first; c; c = c->next)
        if (is_stranger(c)) strangers++, oldest = c;
    if (strangers > STRANGERS) end(t, oldest, "it said nothing");
}

static void name_address(const struct sockaddr *a, socklen_t n, char to[LINK_ADDRESS]) {
    char host[LINK_ADDRESS - 10], port[8];
    strcpy(to, "?");
    if (!getnameinfo(a, n, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV))
        snprintf(to, LINK_ADDRESS, a->sa_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

static tri_status accept_one(struct tcp *t) {
    struct sockaddr_storage a;
    socklen_t n = sizeof a;
    struct conn *c;
    int fd = accept4(t->listener, (struct sockaddr *)&a, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM)
            return TRI_OK; /* the connection is gone already */
        t->listen_at = base_now() + A_SECOND;
        set_timer(t);
        return watch(t, t->listener, &t->listener, 0, false);
    }
    tri_status status = add_conn(t, fd, GREETING, -1, 0, &c);
    if (status) return status;
    name_address((struct sockaddr *)&a, n, c->from);
    make_room(t);
    return TRI_OK;
}

/* ---- joining ---- */

static bool is_reading(const struct conn *c) {
    return c->state != HELD && !c->peer_left && !c->waits;
}

/* Makes epoll wait for what the connection can do now. */
static void watch_again(struct tcp *t, struct conn *c) {
    const bool out = c->out.first < c->out.n || c->out.from < c->out.ranges;
    const uint32_t in = is_reading(c) ? EPOLLIN : c->state == HELD ? EPOLLRDHUP : 0;
    const uint32_t events = in | (out ? (uint32_t)EPOLLOUT : 0);
    if (events == c->events || c->state == CONNECTING) return;
    c->events = events;
    CHECK(!watch(t, c->fd, c, events, false));
}

static tri_status join(struct tcp *t, struct conn *c) {
    const int host = c->wire.host;
    const struct link_header h = {.run = t->side.run, .kind = WIRE_BEGINS};
    if (!c->mine) {
        tri_status status = outgoing_add(&c->out, &h, NULL, NULL);
        if (status) return status;
    }
    c->mine = true;
    c->state = JOINED;
    t->awaited[host].on = false;
    t->peer[host] = c;
    set_timer(t);
    watch_again(t, c);
    link_tell(&t->base, LINK_JOINED, host);
    return TRI_OK;
}

/* Ends the host's connections that are held; but one of this epoch or a later one only if it is
 * not the last. */
static void drop_held(struct tcp *t, int host, uint32_t epoch, const struct conn *last) {
    for (struct conn *c = t->first, *next; c; c = next) {
        next = c->next;
        if (c->state == HELD && c->wire.host == host && c != last &&
            (last || (int32_t)(c->wire.epoch - epoch) < 0))
            end(t, c, "it has connected again");
    }
}

/* The peer is who it says. */
static tri_status greeted(struct tcp *t, struct conn *c) {
    const struct awaited *a = &t->awaited[c->wire.host];
    if (!c->mine && (int32_t)(c->wire.epoch - a->epoch) < 0)
        return base_fail(TRI_FAILED, "it is host %d of epoch %u, which is over", c->wire.host,
                         c->wire.epoch);
    if (c->mine) {
        c->state = ASKS;
        set_timer(t);
        return TRI_OK;
    }
    if (a->on && a->epoch == c->wire.epoch) return join(t, c);
    c->state = HELD;
    drop_held(t, c->wire.host, 0, c);
    set_timer(t);
    return TRI_OK;
}

/* ---- receiving ---- */

static void arrived(struct tcp *t, struct conn *c, void *at) {
    struct link_event *e = link_tell(&t->base, LINK_ARRIVED, c->wire.host);
    e->header = c->wire.header;
    e->at = at;
}

static tri_status leave(struct conn *c) {
    const struct link_header h = {.run = c->wire.side->run, .kind = WIRE_LEAVES};
    if (c->leaving) return TRI_OK;
    c->leaving = true;
    return outgoing_add(&c->out, &h, NULL, NULL);
}

/* False: the connection is gone. */
static bool is_over(struct tcp *t, struct conn *c) {
    if (!c->peer_left || !c->has_left) return false;
    end(t, c, "it has left");
    return true;
}

static tri_status began(struct tcp *t, struct conn *c) {
    const struct link_header *h = &c->wire.header;
    if ((h->kind == WIRE_BEGINS) != (c->state == ASKS))
        return base_fail(TRI_FAILED, "it sent a message out of turn");
    if (h->kind == WIRE_BEGINS) return join(t, c);
    if (h->kind == WIRE_LEAVES) {
        c->peer_left = true;
        return leave(c);
    }
    void *at = t->base.o.where(t->base.o.user, c->wire.host, h);
    c->waits = at == LINK_LATER;
    if (c->waits) return TRI_OK;
    if (h->length) c->wire.at = at;
    else if (at) arrived(t, c, at);
    return TRI_OK;
}

static tri_status came(struct tcp *t, struct conn *c, enum wire_event event) {
    if ((event == WIRE_ANSWER || event == WIRE_JOINED) && c->wire.n_greeting)
        outgoing_add_bytes(&c->out, c->wire.greeting, c->wire.n_greeting);
    if (event == WIRE_JOINED) return greeted(t, c);
    if (event == WIRE_BEGUN) return began(t, c);
    if (event == WIRE_WHOLE && c->wire.at) arrived(t, c, c->wire.at);
    return TRI_OK;
}

/* False: the connection is gone. */
static bool receive(struct tcp *t, struct conn *c) {
    for (size_t n = 0; n < TURN && is_reading(c);) {
        struct iovec to[2];
        enum wire_event event;
        ssize_t got = readv(c->fd, to, wire_want(&c->wire, to));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) break;
        if (got <= 0) {
            end(t, c, got < 0 ? strerror(errno) : why_closed(c));
            return false;
        }
        n += (size_t)got;
        tri_status status = wire_got(&c->wire, (size_t)got, &event);
        if (!status) status = came(t, c, event);
        if (status) {
            end(t, c, tri_message());
            return false;
        }
    }
    watch_again(t, c);
    return !is_over(t, c);
}

/* ---- sending ---- */

static void window_is_sent(struct tcp *t, struct conn *c) {
    for (int i = 0; i < c->out.tokens; i++)
        link_tell(&t->base, LINK_SENT, c->wire.host)->token = c->out.token[i];
    c->out.tokens = 0;
    c->has_left = c->out.leaves;
}

static void transmit(struct tcp *t, struct conn *c) {
    for (size_t n = 0; n < TURN;) {
        if (!outgoing_fill(&c->out, &c->wire)) break;
        struct msghdr m = {.msg_iov = c->out.range + c->out.from,
                           .msg_iovlen = (size_t)(c->out.ranges - c->out.from)};
        ssize_t sent = sendmsg(c->fd, &m, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && errno == EAGAIN) break;
        if (sent < 0) return end(t, c, strerror(errno));
        n += (size_t)sent;
        if (outgoing_sent(&c->out, (size_t)sent)) window_is_sent(t, c);
    }
    watch_again(t, c);
    is_over(t, c);
}

/* ---- work ---- */

static void cannot_connect(struct tcp *t, struct conn *c, int error) {
    char why[LINK_WHY];
    snprintf(why, sizeof why, "cannot connect to %s: %s", c->from, strerror(error));
    end(t, c, why);
}

static void connected(struct tcp *t, struct conn *c) {
    int error = 0;
    socklen_t n = sizeof error;
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &n)) error = errno;
    if (error) return cannot_connect(t, c, error);
    c->state = GREETING;
    outgoing_add_bytes(&c->out, c->wire.greeting, c->wire.n_greeting);
    watch_again(t, c);
}

static tri_status expire(struct tcp *t) {
    uint64_t times;
    const int64_t now = base_now();
    if (read(t->timer, &times, sizeof times) < 0 && errno != EAGAIN) return fail_errno("a timer");
    for (struct conn *c = t->first, *next; c; c = next) {
        next = c->next;
        if (!has_deadline(t, c) || c->deadline > now) continue;
        end(t, c, c->state == HELD         ? "it is not expected"
                  : c->state == CONNECTING ? "it does not answer at its address"
                                           : "it did not finish its greeting");
    }
    tri_status status = TRI_OK;
    if (t->listen_at && t->listen_at <= now) {
        t->listen_at = 0;
        status = watch(t, t->listener, &t->listener, EPOLLIN, false);
    }
    set_timer(t);
    return status;
}

static void turn(struct tcp *t, struct conn *c, uint32_t events) {
    if (c->state == CONNECTING) return connected(t, c);
    const bool closed = events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP);
    if (closed && !is_reading(c)) return end(t, c, why_closed(c));
    if (events & ~(uint32_t)EPOLLOUT && !receive(t, c)) return;
    if (events & EPOLLOUT) transmit(t, c);
}

static tri_status tcp_work(struct link *l) {
    struct tcp *t = (struct tcp *)l;
    for (int i = 0; i < TURNS && l->first == l->n_events && !l->failed; i++) {
        struct epoll_event e;
        tri_status status = TRI_OK;
        int n = epoll_wait(l->fd, &e, 1, 0);
        if (n < 0 && errno != EINTR) return fail_errno("epoll");
        if (!n) break;
        if (n < 0) continue;
        if (e.data.ptr == &t->listener) status = accept_one(t);
        else if (e.data.ptr == &t->timer) status = expire(t);
        else turn(t, e.data.ptr, e.events);
        if (status) return status;
    }
    return TRI_OK;
}

/* ---- what the user calls ---- */

static tri_status tcp_send(struct link *l, int host, const struct link_header *h,
                           const void *payload, void *token) {
    struct tcp *t = (struct tcp *)l;
    struct conn *c = t->peer[host];
    if (!c || c->state != JOINED || c->leaving) return TRI_OK;
    tri_status status = outgoing_add(&c->out, h, payload, token);
    watch_again(t, c);
    return status;
}

static void tcp_end(struct link *l, int host) {
    struct tcp *t = (struct tcp *)l;
    t->awaited[host].on = false;
    if (t->peer[host]) drop(t, t->peer[host]);
}

static void tcp_leave(struct link *l, int host) {
    struct tcp *t = (struct tcp *)l;
    struct conn *c = t->peer[host];
    if (!c || c->state != JOINED) return;
    if (leave(c)) l->failed = true;
    watch_again(t, c);
}

static void tcp_resume(struct link *l, int host) {
    struct tcp *t = (struct tcp *)l;
    struct conn *c = t->peer[host];
    if (!c || !c->waits) return;
    if (began(t, c)) end(t, c, tri_message());
    else watch_again(t, c);
}

/* "10.0.0.1:4000", "[fe80::1]:4000" */
static tri_status resolve(const char *address, bool listens, struct addrinfo **found) {
    char host[LINK_ADDRESS];
    const char *colon = strrchr(address, ':');
    const bool bracket = address[0] == '[';
    const struct addrinfo like = {.ai_socktype = SOCK_STREAM,
                                  .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV |
                                              (listens ? AI_PASSIVE : 0)};
    size_t n = colon ? (size_t)(colon - address) : 0;
    if (n < sizeof host && colon && (!bracket || (n > 2 && address[n - 1] == ']'))) {
        memcpy(host, address + bracket, n - 2 * bracket);
        host[n - 2 * bracket] = 0;
        if (!getaddrinfo(host, colon + 1, &like, found)) return TRI_OK;
    }
    return base_fail(TRI_USAGE, "\"%s\" is no address; \"10.0.0.1:4000\" is one", address);
}

static tri_status connect_to(struct tcp *t, int host, uint32_t epoch, const char *address) {
    struct addrinfo *a;
    struct conn *c;
    tri_status status = resolve(address, false, &a);
    if (status) return status;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    status = fd < 0 ? fail_errno("a socket") : TRI_OK;
    int error = !status && connect(fd, a->ai_addr, a->ai_addrlen) ? errno : 0;
    freeaddrinfo(a);
    if (!status) status = add_conn(t, fd, CONNECTING, host, epoch, &c);
    if (status) return status;
    snprintf(c->from, sizeof c->from, "%s", address);
    c->mine = true;
    t->peer[host] = c;
    if (error && error != EINPROGRESS) cannot_connect(t, c, error);
    return TRI_OK;
}

static tri_status tcp_peer(struct link *l, int host, uint32_t epoch, const char *address) {
    struct tcp *t = (struct tcp *)l;
    CHECK(!t->peer[host] && !t->awaited[host].on);
    if (l->o.self > host) return connect_to(t, host, epoch, address);
    t->awaited[host] = (struct awaited){true, epoch};
    drop_held(t, host, epoch, NULL);
    for (struct conn *c = t->first; c; c = c->next)
        if (c->state == HELD && c->wire.host == host && c->wire.epoch == epoch) return join(t, c);
    return TRI_OK;
}

/* ---- making ---- */

static tri_status listen_at(struct tcp *t, const char *host, int port) {
    char address[LINK_ADDRESS];
    struct addrinfo *a;
    int one = 1;
    const char *form = strchr(host, ':') ? "[%s]:%d" : "%s:%d";
    snprintf(address, sizeof address, form, host, port);
    tri_status status = resolve(address, true, &a);
    if (status) return status;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd < 0 || bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, 1024)) {
        status = base_fail(TRI_FAILED, "cannot listen at %s: %s", address, strerror(errno));
        if (fd >= 0) close(fd);
    } else {
        struct sockaddr_storage is;
        socklen_t n = sizeof is;
        t->listener = fd;
        CHECK(!getsockname(fd, (struct sockaddr *)&is, &n));
        name_address((struct sockaddr *)&is, n, t->base.address);
    }
    freeaddrinfo(a);
    return status;
}

static tri_status start(struct tcp *t, const struct link_options *o) {
    tri_status status = TRI_FAILED;
    t->peer = calloc((size_t)o->hosts, sizeof *t->peer);
    t->awaited = calloc((size_t)o->hosts, sizeof *t->awaited);
    t->spare = malloc(WIRE_PIECE);
    if (!t->peer || !t->awaited || !t->spare) return base_no_memory("a link");
    for (int port = o->port[0]; status && port <= o->port[1]; port++)
        status = listen_at(t, o->address ? o->address : "0.0.0.0", port);
    if (status) return status;
    t->base.fd = epoll_create1(EPOLL_CLOEXEC);
    t->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (t->base.fd < 0 || t->timer < 0) return fail_errno("a link");
    status = watch(t, t->listener, &t->listener, EPOLLIN, true);
    return status ? status : watch(t, t->timer, &t->timer, EPOLLIN, true);
}

static void tcp_close(struct link *l) {
    struct tcp *t = (struct tcp *)l;
    while (t->first) drop(t, t->first);
    const int fds[] = {t->listener, t->timer, l->fd};
    for (size_t i = 0; i < COUNT(fds); i++)
        if (fds[i] >= 0) close(fds[i]);
    free(t->peer);
    free(t->awaited);
    free(t->spare);
    free(t);
}

static tri_status tcp_open(const struct link_options *o, struct link **l) {
    struct tcp *t = calloc(1, sizeof *t);
    if (!t) return base_no_memory("a link");
    t->base.fd = t->listener = t->timer = -1;
    t->side = (struct wire_side){o->self, o->hosts, o->run, o->most, o->key};
    t->patience = o->patience ? o->patience : PATIENCE;
    tri_status status = start(t, o);
    if (status) tcp_close(&t->base);
    else *l = &t->base;
    return status;
}

const struct link_row link_tcp = {"tcp", tcp_open, tcp_close, tcp_peer, tcp_send, tcp_end,
                                  tcp_leave, tcp_resume, tcp_work};
