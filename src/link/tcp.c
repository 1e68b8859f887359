/* SPDX-License-Identifier: Apache-2.0
 * The row tcp: a socket for each session. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "link/session.h"

static ssize_t tcp_read(struct session *c, const struct iovec *to, int n) {
    return readv(c->sock.fd, to, n);
}

static ssize_t tcp_write(struct session *c, const struct iovec *from, int n) {
    struct msghdr m = {.msg_iov = (struct iovec *)(uintptr_t)from, .msg_iovlen = (size_t)n};
    return sendmsg(c->sock.fd, &m, MSG_NOSIGNAL);
}

static void tcp_close_stream(struct session *c) { (void)c; /* sockets_remove does */ }

/* Probes for a peer that has nothing to say. The kernel of one that reads nothing answers, too. */
static void probe(const struct sessions *s, int fd) {
    const int64_t quarter = s->silence / INT64_C(4000000000);
    const int on = s->silence > 0, every = quarter < 1 ? 1 : quarter > 3600 ? 3600 : (int)quarter;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &every, sizeof every);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof every);
}

static void cannot_connect(struct sessions *s, struct session *c, int error) {
    char why[LINK_WHY];
    snprintf(why, sizeof why, "cannot connect to %s: %s", c->sock.from, strerror(error));
    session_end(s, c, why);
}

static tri_status tcp_connect(struct sessions *s, int host, uint32_t epoch, const char *address) {
    struct addrinfo *a;
    struct session *c;
    int fd, error;
    tri_status status = socket_find(address, false, &a);
    if (status) return status;
    status = socket_connect(a, &fd, &error);
    freeaddrinfo(a);
    if (!status) status = session_new(s, fd, SESSION_CONNECTING, host, epoch, &c);
    if (status) return status;
    probe(s, fd);
    snprintf(c->sock.from, sizeof c->sock.from, "%s", address);
    c->mine = true;
    s->peer[host] = c;
    if (error) cannot_connect(s, c, error);
    return TRI_OK;
}

/* While the peer's window is full, one probe at a time is under way, ever more rarely: two without
 * an answer count. */
static bool tcp_answers(const struct session *c, int64_t within) {
    struct tcp_info i = {0};
    socklen_t n = sizeof i;
    if (getsockopt(c->sock.fd, IPPROTO_TCP, TCP_INFO, &i, &n)) return true;
    return (!i.tcpi_unacked && i.tcpi_probes < 2) ||
           (int64_t)i.tcpi_last_ack_recv * 1000000 < within;
}

static const struct session_carrier carrier = {
    .read = tcp_read, .write = tcp_write, .connect = tcp_connect, .close = tcp_close_stream,
    .answers = tcp_answers};

static tri_status accepted(void *user, int fd, const char *from) {
    struct session *c;
    tri_status status = session_new(user, fd, SESSION_GREETING, -1, 0, &c);
    if (status) return status;
    probe(user, fd);
    strcpy(c->sock.from, from);
    c->sock.is_stranger = true;
    return TRI_OK;
}

static void ready(void *user, struct sock *sock, uint32_t events) {
    struct session *c = (struct session *)sock;
    if (c->state != SESSION_CONNECTING) return session_ready(user, c, events);
    int error = socket_error(sock->fd);
    if (error) cannot_connect(user, c, error);
    else session_connected(user, c);
}

static void end(void *user, struct sock *sock, const char *why) {
    if (why) session_end(user, (struct session *)sock, why);
    else session_late(user, (struct session *)sock);
}

static const struct sockets_user user_row = {accepted, ready, end, sessions_have_told};

static tri_status tcp_work(struct link *l) {
    return sockets_work(&((struct sessions *)l)->sockets);
}

static void tcp_close(struct link *l) {
    sessions_close((struct sessions *)l);
    free(l);
}

static tri_status tcp_open(const struct link_options *o, struct link **l) {
    struct sessions *s = calloc(1, sizeof *s);
    if (!s) return base_no_memory("a link");
    tri_status status = sessions_open(s, &carrier, &user_row, o);
    if (!status) status = sockets_listen(&s->sockets, o->address, o->port);
    strcpy(s->base.address, s->sockets.address);
    if (status) tcp_close(&s->base);
    else *l = &s->base;
    return status;
}

const struct link_row link_tcp = {tcp_open, tcp_close, session_peer, session_send,
                                  session_drop, session_resume, tcp_work};
