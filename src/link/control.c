/* SPDX-License-Identifier: Apache-2.0 */
#include "link/control.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/secret.h"
#include "link/sockets.h"

#define FINISH INT64_C(1000000000)
#define EVENTS 64 /* that one turn may add, so that small messages take little memory */

enum state { CONNECTING, GREETING, JOINED };

struct conn {
    struct sock sock; /* its fd is -1 between two addresses */
    int id;           /* -1: a stranger */
    enum state state;
    bool leaving;     /* the end of this side's stream is queued */
    bool peer_left;   /* that of the peer's has come */
    bool finished;    /* control_finish was called: messages are dropped */
    struct secret secret;
    struct addrinfo *found, *untried; /* where to connect to; null */
    uint8_t *out;                     /* [from, n): to be sent */
    size_t from, n, capacity;
};

struct control {
    struct sockets sockets;
    uint8_t *key;
    int64_t patience;
    struct conn *conn[CONTROL_CONNECTIONS]; /* at its id modulo their number; null */
    int n_conns, next_id;
    struct control_event *event; /* from `first` on: not yet told */
    size_t first, n_events, capacity;
    bool failed; /* an event found no memory, and went here: */
    struct control_event lost;
    void *given; /* the memory of the event that was told last */
};

/* ---- events ---- */

static bool has_told(const void *user) {
    const struct control *c = user;
    return c->first < c->n_events || c->failed;
}

static struct control_event *tell(struct control *c, enum control_what what, int conn) {
    if (c->first == c->n_events) c->first = c->n_events = 0;
    if (!ARRAY_GROW(c->event, c->n_events, c->capacity)) {
        c->failed = true;
        return &c->lost;
    }
    c->event[c->n_events] = (struct control_event){.what = what, .conn = conn};
    return &c->event[c->n_events++];
}

static void untell(struct control *c, int conn) {
    size_t n = c->first;
    for (size_t i = c->first; i < c->n_events; i++) {
        if (c->event[i].conn != conn) c->event[n++] = c->event[i];
        else free(c->event[i].memory);
    }
    c->n_events = n;
}

/* ---- the table ---- */

static struct conn *find(const struct control *c, int id) {
    struct conn *k = id < 0 ? NULL : c->conn[id % CONTROL_CONNECTIONS];
    return k && k->id == id ? k : NULL;
}

static bool enter(struct control *c, struct conn *k) {
    if (c->n_conns == CONTROL_CONNECTIONS) return false;
    while (c->conn[c->next_id % CONTROL_CONNECTIONS]) c->next_id = (c->next_id + 1) & INT_MAX;
    k->id = c->next_id;
    c->next_id = (c->next_id + 1) & INT_MAX;
    c->conn[k->id % CONTROL_CONNECTIONS] = k;
    c->n_conns++;
    return true;
}

static void leave_socket(struct control *c, struct conn *k) {
    if (k->sock.fd >= 0) sockets_remove(&c->sockets, &k->sock);
    k->sock.fd = -1;
}

static void drop(struct control *c, struct conn *k) {
    leave_socket(c, k);
    if (k->id >= 0) {
        c->conn[k->id % CONTROL_CONNECTIONS] = NULL;
        c->n_conns--;
    }
    if (k->found) freeaddrinfo(k->found);
    secret_free(&k->secret);
    free(k->out);
    free(k);
}

static void end(struct control *c, struct conn *k, const char *why) {
    char line[LINK_WHY];
    if (k->id >= 0) {
        struct control_event *e = tell(c, CONTROL_ENDED, k->id);
        e->left = k->peer_left && k->leaving && k->from == k->n;
        snprintf(e->why, sizeof e->why, "%s", why);
    } else if (sockets_refuse(&c->sockets, k->sock.from, why, line)) {
        strcpy(tell(c, CONTROL_REFUSED, -1)->why, line);
    }
    drop(c, k);
}

static const char *why_closed(const struct conn *k) {
    if (k->state != JOINED) return "it closed the connection before it had shown its key";
    if (secret_is_inside(&k->secret)) return "it closed the connection inside a message";
    return "it closed the connection, as when a process dies";
}

/* ---- sending ---- */

/* Where n more bytes are to be written, which are then queued; null if memory is out. */
static uint8_t *queue(struct conn *k, size_t n) {
    if (k->from > k->n / 2) { /* also if all is sent */
        k->n -= k->from;
        memmove(k->out, k->out + k->from, k->n);
        k->from = 0;
    }
    if (k->capacity - k->n < n) {
        size_t capacity = k->n + n > 2 * k->capacity ? k->n + n : 2 * k->capacity;
        uint8_t *out = realloc(k->out, capacity);
        if (!out) return NULL;
        k->out = out;
        k->capacity = capacity;
    }
    k->n += n;
    return k->out + k->n - n;
}

static void watch_again(struct control *c, struct conn *k) {
    const uint32_t in = k->peer_left ? 0 : EPOLLIN;
    sockets_watch(&c->sockets, &k->sock, in | (k->from < k->n ? (uint32_t)EPOLLOUT : 0));
}

/* False: the connection is gone. */
static bool transmit(struct control *c, struct conn *k) {
    for (size_t n = 0; n < SOCKETS_TURN && k->from < k->n;) {
        ssize_t sent = send(k->sock.fd, k->out + k->from, k->n - k->from, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && errno == EAGAIN) break;
        if (sent < 0) {
            end(c, k, strerror(errno));
            return false;
        }
        n += (size_t)sent;
        k->from += (size_t)sent;
    }
    if (k->from == k->n && k->capacity > SOCKETS_TURN) {
        free(k->out);
        k->out = NULL;
        k->from = k->n = k->capacity = 0;
    }
    if (k->from == k->n && k->leaving && k->peer_left) {
        end(c, k, "it has left");
        return false;
    }
    watch_again(c, k);
    return true;
}

/* bytes null: the end of the stream. */
static tri_status put(struct conn *k, const void *bytes, size_t n) {
    uint8_t *to = queue(k, secret_size(n));
    if (!to) return base_no_memory("messages to send");
    secret_put(&k->secret, bytes, n, to);
    return TRI_OK;
}

static tri_status leave(struct control *c, struct conn *k) {
    if (k->leaving) return TRI_OK;
    k->leaving = true;
    sockets_set_deadline(&c->sockets, &k->sock, base_now() + FINISH);
    return put(k, NULL, 0);
}

static tri_status send_greeting(struct conn *k) {
    uint8_t *to = k->secret.n_greeting ? queue(k, k->secret.n_greeting) : NULL;
    if (to) memcpy(to, k->secret.greeting, k->secret.n_greeting);
    return to || !k->secret.n_greeting ? TRI_OK : base_no_memory("a greeting");
}

/* ---- receiving ---- */

static tri_status join(struct control *c, struct conn *k) {
    if (k->id < 0 && !enter(c, k))
        return base_fail(TRI_FAILED, "there are %d connections already", CONTROL_CONNECTIONS);
    k->state = JOINED;
    k->sock.is_stranger = false;
    sockets_set_deadline(&c->sockets, &k->sock, 0);
    socket_name(k->sock.fd, true, false, tell(c, CONTROL_JOINED, k->id)->address);
    return TRI_OK;
}

static void arrived(struct control *c, struct conn *k) {
    void *memory;
    const uint8_t *bytes = secret_take(&k->secret, &memory);
    if (k->finished) return free(memory);
    struct control_event *e = tell(c, CONTROL_ARRIVED, k->id);
    e->bytes = bytes;
    e->n = k->secret.n;
    e->memory = memory;
}

static tri_status came(struct control *c, struct conn *k, enum secret_event event) {
    tri_status status = TRI_OK;
    if (event == SECRET_ANSWER || event == SECRET_JOINED) status = send_greeting(k);
    if (status) return status;
    if (event == SECRET_JOINED) return join(c, k);
    if (event == SECRET_WHOLE) arrived(c, k);
    if (event != SECRET_OVER) return TRI_OK;
    k->peer_left = true;
    return leave(c, k);
}

/* False: the connection is gone. */
static bool receive(struct control *c, struct conn *k) {
    for (size_t n = 0; n < SOCKETS_TURN && !k->peer_left && c->n_events - c->first < EVENTS;) {
        uint8_t *to;
        enum secret_event event;
        const size_t want = secret_want(&k->secret, &to), most = SOCKETS_TURN - n;
        ssize_t got = recv(k->sock.fd, to, want < most ? want : most, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) break;
        if (got <= 0) {
            end(c, k, got < 0 ? strerror(errno) : why_closed(k));
            return false;
        }
        n += (size_t)got;
        tri_status status = secret_got(&k->secret, (size_t)got, &event);
        if (!status) status = came(c, k, event);
        if (status) {
            end(c, k, tri_message());
            return false;
        }
    }
    return true;
}

/* ---- connecting ---- */

static tri_status accepted(void *user, int fd, const char *from) {
    struct control *c = user;
    struct conn *k = calloc(1, sizeof *k);
    tri_status status = k ? secret_begin(&k->secret, c->key, CONTROL_MOST, false)
                          : base_no_memory("a connection");
    if (status) {
        close(fd);
        free(k);
        return status;
    }
    k->id = -1;
    k->state = GREETING;
    k->sock.is_stranger = true;
    k->sock.deadline = base_now() + c->patience;
    strcpy(k->sock.from, from);
    status = sockets_add(&c->sockets, &k->sock, fd, EPOLLIN);
    if (status) free(k);
    return status;
}

/* Begins to connect to the next address, after the last has failed; or ends. */
static void try_next(struct control *c, struct conn *k, const char *failed) {
    char why[LINK_WHY];
    snprintf(why, sizeof why, "cannot connect to %s: %s", k->sock.from, failed);
    while (k->untried) {
        int fd, error;
        const struct addrinfo *a = k->untried;
        k->untried = a->ai_next;
        leave_socket(c, k);
        k->sock.deadline = base_now() + c->patience;
        tri_status status = socket_connect(a, &fd, &error);
        if (!status && error) close(fd);
        else if (!status) status = sockets_add(&c->sockets, &k->sock, fd, EPOLLOUT);
        if (!status && !error) return;
        snprintf(why, sizeof why, "cannot connect to %s: %s", k->sock.from,
                 status ? tri_message() : strerror(error));
    }
    end(c, k, why);
}

static void connected(struct control *c, struct conn *k) {
    int error = socket_error(k->sock.fd);
    if (error) return try_next(c, k, strerror(error));
    k->state = GREETING;
    sockets_set_deadline(&c->sockets, &k->sock, base_now() + c->patience);
    if (send_greeting(k)) return end(c, k, tri_message());
    transmit(c, k);
}

tri_status control_connect(struct control *c, const char *address, int *conn) {
    struct conn *k = calloc(1, sizeof *k);
    if (!k) return base_no_memory("a connection");
    k->id = k->sock.fd = -1;
    tri_status status = socket_find(address, true, &k->found);
    if (!status) status = secret_begin(&k->secret, c->key, CONTROL_MOST, true);
    if (!status && !enter(c, k))
        status = base_fail(TRI_FAILED, "there are %d connections already", CONTROL_CONNECTIONS);
    if (status) {
        drop(c, k);
        return status;
    }
    snprintf(k->sock.from, sizeof k->sock.from, "%s", address);
    k->untried = k->found;
    *conn = k->id;
    try_next(c, k, "it has no address");
    if (has_told(c)) sockets_wake(&c->sockets);
    return TRI_OK;
}

/* ---- work ---- */

static void ready(void *user, struct sock *s, uint32_t events) {
    struct control *c = user;
    struct conn *k = (struct conn *)s;
    if (k->state == CONNECTING) return connected(c, k);
    if (k->peer_left && events & (EPOLLHUP | EPOLLERR)) return end(c, k, why_closed(k));
    if (events & ~(uint32_t)EPOLLOUT && !receive(c, k)) return;
    transmit(c, k);
}

static void end_sock(void *user, struct sock *s, const char *why) {
    struct control *c = user;
    struct conn *k = (struct conn *)s;
    if (k->state == CONNECTING && !why) return try_next(c, k, "it does not answer");
    if (!why)
        why = k->state == JOINED ? "it did not end in time" : "it did not finish its greeting";
    end(c, k, why);
}

static const struct sockets_user row = {accepted, ready, end_sock, has_told};

tri_status control_next(struct control *c, struct control_event *event) {
    *event = (struct control_event){.what = CONTROL_NOTHING, .conn = -1};
    free(c->given);
    c->given = NULL;
    tri_status status = has_told(c) ? TRI_OK : sockets_work(&c->sockets);
    if (status) return status;
    if (c->failed) return base_no_memory("events of control connections");
    if (c->first == c->n_events) return TRI_OK;
    *event = c->event[c->first++];
    c->given = event->memory;
    return TRI_OK;
}

/* ---- what the user calls ---- */

tri_status control_send(struct control *c, int conn, const void *bytes, size_t n) {
    struct conn *k = find(c, conn);
    CHECK(n <= CONTROL_MOST && (bytes || !n));
    if (!k || k->leaving) return TRI_OK;
    CHECK(k->state == JOINED);
    tri_status status = put(k, n ? bytes : "", n);
    if (status) return status;
    if (transmit(c, k) && k->n - k->from > CONTROL_QUEUED) {
        char why[LINK_WHY];
        snprintf(why, sizeof why, "it does not read: %zu bytes wait for it", k->n - k->from);
        end(c, k, why);
    }
    if (has_told(c)) sockets_wake(&c->sockets);
    return TRI_OK;
}

void control_finish(struct control *c, int conn) {
    struct conn *k = find(c, conn);
    if (!k || k->finished) return;
    k->finished = true;
    if (k->state != JOINED) end(c, k, "it had not joined yet");
    else if (leave(c, k)) end(c, k, tri_message());
    else transmit(c, k);
    if (has_told(c)) sockets_wake(&c->sockets);
}

void control_end(struct control *c, int conn) {
    struct conn *k = find(c, conn);
    if (k) drop(c, k);
    untell(c, conn);
}

void control_own_address(const struct control *c, int conn, char to[LINK_ADDRESS]) {
    const struct conn *k = find(c, conn);
    strcpy(to, "?");
    if (k) socket_name(k->sock.fd, false, false, to);
}

bool control_is_loopback(const char *address) {
    uint8_t four[4], six[16];
    if (inet_pton(AF_INET, address, four) == 1) return four[0] == 127;
    return inet_pton(AF_INET6, address, six) == 1 && !memcmp(six, &in6addr_loopback, sizeof six);
}

int control_fd(const struct control *c) { return c->sockets.fd; }

int control_port(const struct control *c) {
    const char *colon = strrchr(c->sockets.address, ':');
    return colon ? atoi(colon + 1) : 0;
}

void control_close(struct control *c) {
    if (!c) return;
    while (c->sockets.first) drop(c, (struct conn *)c->sockets.first);
    sockets_close(&c->sockets);
    for (size_t i = c->first; i < c->n_events; i++) free(c->event[i].memory);
    free(c->event);
    free(c->given);
    sodium_free(c->key);
    free(c);
}

tri_status control_open(const struct control_options *o, struct control **out) {
    struct control *c = calloc(1, sizeof *c);
    *out = NULL;
    if (!c) return base_no_memory("control connections");
    tri_status status = sockets_open(&c->sockets, &row, c);
    if (!status && sodium_init() < 0)
        status = base_fail(TRI_FAILED, "libsodium cannot be initialised");
    if (!status && !(c->key = sodium_malloc(LINK_KEY))) status = base_no_memory("a key");
    if (!status) memcpy(c->key, o->key, LINK_KEY);
    if (!status && o->listens) status = sockets_listen(&c->sockets, o->address, o->port);
    c->patience = o->patience ? o->patience : SOCKETS_PATIENCE;
    if (status) control_close(c);
    else *out = c;
    return status;
}
