/* SPDX-License-Identifier: Apache-2.0
 * What the row tcp and control connections have in common: the sockets of peers, a listener and a
 * timer in one epoll descriptor, which is readable if there is work. A socket is ready as long as
 * it has something and moves at most SOCKETS_TURN bytes in a turn, so none starves the others. */
#ifndef LINK_SOCKETS_H
#define LINK_SOCKETS_H

#include "link/link.h"

#define SOCKETS_TURN (1 << 20)
/* Strangers at a time. The next replaces the oldest, once that has had 100 ms; until then, or until
 * one of them has greeted, it waits. So many hosts can join at once, whoever says nothing. */
#define SOCKETS_STRANGERS 32
#define SOCKETS_PATIENCE INT64_C(5000000000) /* for a greeting, unless the user says otherwise */

/* The begin of each connection. */
struct sock {
    int fd;
    uint32_t events;  /* that epoll waits for */
    bool rests;       /* epoll does not know it */
    bool is_stranger; /* it has connected, and not said yet who it is */
    int64_t since;    /* of base_now */
    int64_t deadline; /* the same; 0: none */
    char from[LINK_ADDRESS];
    struct sock *next;
};

struct sockets_user {
    /* A stranger has connected. The callee closes fd if it fails. */
    tri_status (*accepted)(void *user, int fd, const char *from);
    void (*ready)(void *user, struct sock *s, uint32_t events);
    /* Ends and removes s. why: null if its deadline has passed. */
    void (*end)(void *user, struct sock *s, const char *why);
    bool (*has_told)(const void *user); /* there is an event for the user */
};

struct sockets {
    int fd, listener, timer; /* -1: none */
    struct sock *first;      /* of all, the newest first */
    char address[LINK_ADDRESS]; /* of the listener; else "" */
    const struct sockets_user *row;
    void *user;
    int64_t listen_at; /* no descriptors, or no room for strangers: when to accept again; else 0 */
    bool for_room;     /* the latter */
    bool awake;        /* the descriptor is readable until the next work */
    long refused;      /* and not told */
    int64_t told;      /* when a line was told last; 0: never */
};

tri_status sockets_open(struct sockets *s, const struct sockets_user *row, void *user);
/* Listens at the first of the ports that is free. */
tri_status sockets_listen(struct sockets *s, const char *address, const int port[2]);
void sockets_close(struct sockets *s); /* has no socks any more */
/* One pass over what is ready, without waiting, until the user has something to tell. */
tri_status sockets_work(struct sockets *s);
/* Makes the descriptor readable: something is to be told that no socket will report. */
void sockets_wake(struct sockets *s);
/* A line for strangers, at most one a minute whatever they do. False: none is due. */
bool sockets_refuse(struct sockets *s, const char *from, const char *why, char line[LINK_WHY]);

/* fd belongs to x, or is closed if this fails. -1: x has a deadline alone. */
tri_status sockets_add(struct sockets *s, struct sock *x, int fd, uint32_t events);
void sockets_remove(struct sockets *s, struct sock *x); /* and closes it */
void sockets_watch(struct sockets *s, struct sock *x, uint32_t events);
/* Reports no event of it, not even its end, until sockets_watch. */
void sockets_rest(struct sockets *s, struct sock *x);
void sockets_set_deadline(struct sockets *s, struct sock *x, int64_t deadline);

/* A socket that begins to connect. TRI_OK with *error if the address cannot be reached. */
struct addrinfo;
tri_status socket_connect(const struct addrinfo *to, int *fd, int *error);
/* What has become of that: an errno, or 0. */
int socket_error(int fd);
/* "10.0.0.1:4000", "[fe80::1]:4000"; names: or "host:4000", which asks the resolver and waits for
 * it. */
tri_status socket_find(const char *address, bool names, struct addrinfo **found);
/* The numeric address of a host, null for any, and a port; and its text. */
tri_status socket_find_port(const char *host, int port, char address[LINK_ADDRESS],
                            struct addrinfo **found);
struct sockaddr_storage;
void socket_text(const struct sockaddr_storage *of, bool port, char to[LINK_ADDRESS]);
/* "host:port", "[fe80::1]:port" */
void socket_put_port(char *to, size_t room, const char *host, int port);
/* The numeric address of either end, with the port or without; "?" if it has none any more. */
void socket_name(int fd, bool peer, bool port, char to[LINK_ADDRESS]);

#endif
