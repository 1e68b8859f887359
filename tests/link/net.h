/* SPDX-License-Identifier: Apache-2.0
 * A network that can do harm, for tests of what goes over TCP; include it after cmocka.h. It stands
 * between one side, which connects to net.address, and the other, which listens at net.to. */
#ifndef NET_H
#define NET_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/link.h"

static struct net {
    int listener, side[2]; /* side: of who connects, of who listens */
    char address[LINK_ADDRESS], to[LINK_ADDRESS];
    bool (*work)(void); /* lets the other side take bytes */
    bool busy;
    size_t passed[2]; /* bytes, by who sent them */
    /* Harm to the bytes of the side that connects; 0: none */
    size_t flip;      /* after so many, a bit is changed */
    size_t cut;       /* after so many, the connection ends, */
    bool reset;       /* hard */
    size_t slow;      /* after so many, a byte each turn */
    size_t again;     /* the bytes from `again` on, */
    size_t again_n;   /* so many, come twice, */
    bool back;        /* or go back */
    char *old;        /* the record of another session, which takes the place of what follows */
    size_t greeting;  /* this many */
    char record[65536];
} net;

/* A stranger's blocking socket. */
static inline int net_stranger(const char *address) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int one = 1;
    assert_true(fd >= 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    a.sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1));
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static inline void net_accept(void) {
    net.side[0] = accept4(net.listener, NULL, NULL, SOCK_NONBLOCK);
    int one = 1;
    if (net.side[0] < 0) return;
    setsockopt(net.side[0], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    net.side[1] = net_stranger(net.to);
    assert_int_equal(fcntl(net.side[1], F_SETFL, O_NONBLOCK), 0);
}

static inline void net_drop(bool reset) {
    const struct linger hard = {1, 0};
    for (int i = 0; i < 2; i++) {
        if (net.side[i] < 0) continue;
        if (reset) setsockopt(net.side[i], SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        close(net.side[i]);
        net.side[i] = -1;
    }
}

static inline void net_put_all(int fd, const void *data, size_t n) {
    for (size_t i = 0; i < n;) {
        ssize_t some = send(fd, (const char *)data + i, n - i, MSG_NOSIGNAL);
        if (some < 0 && errno != EAGAIN) return; /* the host has ended it */
        if (some > 0) i += (size_t)some;
        else net.work();
    }
}

/* How many bytes may pass in one go: up to the next harm. */
static inline size_t net_share(size_t most) {
    const size_t stops[] = {net.flip, net.cut, net.slow, net.again + net.again_n};
    for (size_t i = 0; i < COUNT(stops); i++)
        if (stops[i] > net.passed[0] && stops[i] - net.passed[0] < most)
            most = stops[i] - net.passed[0];
    return net.slow && net.passed[0] >= net.slow ? 1 : most;
}

static inline void net_pass(int i, char *data, size_t n) {
    const size_t end = net.passed[i] + n;
    if (!i && end <= sizeof net.record) memcpy(net.record + net.passed[0], data, n);
    if (!i && net.flip && end == net.flip) data[n - 1] ^= 4;
    if (!i && net.old && end > net.greeting) {
        size_t from = net.passed[0] > net.greeting ? net.passed[0] : net.greeting;
        memcpy(data + (from - net.passed[0]), net.old + from, end - from);
    }
    net.passed[i] = end;
    net_put_all(net.side[!i], data, n);
    if (!i && net.again_n && end == net.again + net.again_n)
        net_put_all(net.side[!net.back], net.record + net.again, net.again_n);
    if (!i && net.cut && end == net.cut) net_drop(net.reset);
}

static inline void net_turn(void *user) {
    char data[65536];
    (void)user;
    if (net.busy) return;
    if (net.side[0] < 0) net_accept();
    net.busy = true;
    for (int i = 0; i < 2 && net.side[0] >= 0; i++) {
        ssize_t n = recv(net.side[i], data, i ? sizeof data : net_share(sizeof data), 0);
        if (n > 0) net_pass(i, data, (size_t)n);
        else if (!n || errno != EAGAIN) net_drop(n < 0);
    }
    net.busy = false;
}

static inline void net_begin(const char *to, bool (*work)(void)) {
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    net = (struct net){.side = {-1, -1}, .work = work};
    snprintf(net.to, sizeof net.to, "%s", to);
    net.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(net.listener, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(net.listener, 5), 0);
    assert_int_equal(getsockname(net.listener, (struct sockaddr *)&a, &n), 0);
    snprintf(net.address, sizeof net.address, "127.0.0.1:%d", ntohs(a.sin_port));
}

static inline void net_end(void) {
    if (!net.work) return;
    net_drop(false);
    close(net.listener);
    net = (struct net){0};
}

#endif
