/* SPDX-License-Identifier: Apache-2.0
 * The row ucx: sessions over the streams of a shared object (ucx/ucx.h), which is loaded when the
 * first link is opened. */
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "link/session.h"
#include "ucx/ucx.h"

#define OBJECT "libtrireme-ucx.so"
#define TICK INT64_C(250000000) /* nanoseconds */
#define PASSES 16

static const struct ucx_functions *ucx; /* null: not loaded */

struct row {
    struct sessions s;
    struct ucx *u;
    struct sock worker; /* UCX's descriptor; its deadline wakes UCX if it has missed something */
    bool due, inside;   /* of pump */
    unsigned pass;
};

/* ---- the object ---- */

/* Where the program is, as it was built; or where it is installed. */
tri_status link_ucx_find(char path[], size_t bytes) {
    static const char *const places[] = {"", LINK_MODULES "/"};
    char self[2048];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n < 0 ? 0 : n] = 0;
    char *end = strrchr(self, '/');
    if (end) end[1] = 0;
    for (size_t i = 0; end && i < COUNT(places); i++)
        if (snprintf(path, bytes, "%s%s" OBJECT, self, places[i]) < (int)bytes &&
            !access(path, R_OK))
            return TRI_OK;
    return base_fail(TRI_USAGE, "--link ucx needs " OBJECT ", which is not beside the program and "
                     "not in %s" LINK_MODULES "; install libucx (Debian: libucx-dev) and build "
                     "again, `meson setup --reconfigure -Ducx=enabled`", self);
}

/* What UCX takes from the environment alone. Ends of peers are for the link to tell; a crash is one
 * like any other. */
static const char *const variables[][2] = {{"UCX_LOG_LEVEL", "fatal"},
                                           {"UCX_HANDLE_ERRORS", "none"},
                                           {"UCX_TCP_TX_SEG_SIZE", "256k"},
                                           {"UCX_TCP_RX_SEG_SIZE", "256k"}};

static tri_status load(void) {
    char path[4096];
    if (ucx) return TRI_OK;
    tri_status status = link_ucx_find(path, sizeof path);
    if (status) return status;
    for (size_t i = 0; i < COUNT(variables); i++) setenv(variables[i][0], variables[i][1], 0);
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object) return base_fail(TRI_FAILED, "--link ucx: %s", dlerror());
    ucx = dlsym(object, UCX_FUNCTIONS);
    return ucx ? TRI_OK : base_fail(TRI_FAILED, "%s is of another version of trireme", path);
}

/* ---- streams ---- */

static ssize_t moved(size_t bytes) {
    errno = EAGAIN;
    return bytes ? (ssize_t)bytes : -1;
}

static ssize_t ucx_read(struct session *c, const struct iovec *to, int n) {
    return moved(ucx->read(c->stream, to, n));
}

static ssize_t ucx_write(struct session *c, const struct iovec *from, int n) {
    return moved(ucx->write(c->stream, from, n));
}

static void ucx_shut(struct session *c) {
    if (c->stream) ucx->shut(c->stream);
}

/* What of that which the session waits for is there. */
static uint32_t events_of(const struct session *c) {
    return (c->sock.events & EPOLLIN && ucx->is_readable(c->stream) ? (uint32_t)EPOLLIN : 0) |
           (c->sock.events & EPOLLOUT && ucx->is_writable(c->stream) ? (uint32_t)EPOLLOUT : 0);
}

static void ucx_watched(struct sessions *s, struct session *c) {
    struct row *r = (struct row *)s;
    if (!c->stream || (!ucx->broken(c->stream) && !events_of(c))) return;
    c->due = r->due = true;
    if (!r->inside) sockets_wake(&s->sockets);
}

static void begin(struct sessions *s, struct session *c, struct ucx_stream *stream) {
    struct row *r = (struct row *)s;
    c->stream = stream;
    if (!r->worker.deadline) sockets_set_deadline(&s->sockets, &r->worker, base_now() + TICK);
}

static tri_status ucx_connect(struct sessions *s, int host, uint32_t epoch, const char *address) {
    char why[UCX_WHY] = "";
    struct addrinfo *a;
    struct session *c;
    tri_status status = socket_find(address, false, &a);
    if (status) return status;
    if (!(status = session_new(s, -1, SESSION_CONNECTING, host, epoch, &c))) {
        snprintf(c->sock.from, sizeof c->sock.from, "%s", address);
        c->mine = true;
        s->peer[host] = c;
        begin(s, c, ucx->connect(((struct row *)s)->u, a->ai_addr, a->ai_addrlen, c, why));
        if (c->stream) session_connected(s, c);
        else session_end(s, c, why);
    }
    freeaddrinfo(a);
    return status;
}

static const struct session_carrier carrier = {
    .read = ucx_read, .write = ucx_write, .connect = ucx_connect, .close = ucx_shut,
    .watched = ucx_watched};

/* However many there are: UCX has given each memory already. */
static void *accepted(void *user, struct ucx_stream *stream, const struct sockaddr *from) {
    struct sessions *s = user;
    struct session *c;
    if (session_new(s, -1, SESSION_GREETING, -1, 0, &c)) return NULL;
    socket_text((const struct sockaddr_storage *)from, true, c->sock.from);
    c->sock.is_stranger = true;
    begin(s, c, stream);
    return c;
}

static void look(struct sessions *s, struct session *c) {
    const char *why = ucx->broken(c->stream);
    const uint32_t events = events_of(c);
    if (!why && events) session_ready(s, c, events);
    else if (why) session_end(s, c, why);
}

static void stream_ready(void *user, void *owner) { look(user, owner); }

static const struct ucx_user stream_row = {accepted, stream_ready};

/* ---- work ---- */

static struct session *find_due(const struct row *r) {
    struct session *c = r->s.first;
    while (c && !(c->due && c->looked != r->pass)) c = c->next;
    return c;
}

/* Lets sessions and UCX work until neither has more to do, or the user is to be told something. */
static void pump(struct row *r) {
    r->inside = true;
    for (int i = 0; i < PASSES; i++) {
        struct session *c;
        r->due = false;
        r->pass++;
        while ((c = find_due(r))) {
            c->due = false;
            c->looked = r->pass;
            look(&r->s, c);
        }
        r->due |= ucx->work(r->u) > 0;
        if (!r->due || sessions_have_told(r)) break;
    }
    r->inside = false;
    if (r->due) sockets_wake(&r->s.sockets);
}

static void ready(void *user, struct sock *sock, uint32_t events) {
    struct row *r = user;
    (void)events;
    CHECK(sock == &r->worker); /* only it has a descriptor */
    pump(r);
}

static void passed(void *user, struct sock *sock, const char *why) {
    struct row *r = user;
    if (sock != &r->worker) return session_end(user, (struct session *)sock, why);
    r->due = true;
    sock->deadline = r->s.first ? base_now() + TICK : 0;
}

static const struct sockets_user user_row = {NULL, ready, passed, sessions_have_told};

static tri_status ucx_work(struct link *l) {
    struct row *r = (struct row *)l;
    tri_status status = sockets_work(&r->s.sockets);
    if (!status && r->due && !sessions_have_told(r)) pump(r);
    return status;
}

/* ---- making ---- */

static tri_status open_at(struct row *r, const char *host, int port) {
    char address[LINK_ADDRESS], why[UCX_WHY];
    struct sockaddr_storage own;
    struct addrinfo *a;
    tri_status status = socket_find_port(host, port, address, &a);
    if (status) return status;
    r->u = ucx->open(a->ai_addr, a->ai_addrlen, &stream_row, r, why);
    freeaddrinfo(a);
    if (!r->u) return base_fail(TRI_FAILED, "UCX cannot listen at %s: %s", address, why);
    ucx->address(r->u, &own);
    socket_text(&own, true, r->s.base.address);
    return TRI_OK;
}

static tri_status start(struct row *r, const struct link_options *o) {
    tri_status status = sessions_open(&r->s, &carrier, &user_row, o);
    if (!status) status = load();
    if (status) return status;
    status = TRI_FAILED;
    for (int port = o->port[0]; status && port <= o->port[1]; port++)
        status = open_at(r, o->address, port);
    if (status) return status;
    const int fd = dup(ucx->fd(r->u));
    if (fd < 0) return base_fail(TRI_FAILED, "UCX's descriptor: %s", strerror(errno));
    r->due = true;
    status = sockets_add(&r->s.sockets, &r->worker, fd, EPOLLIN);
    if (!status) sockets_wake(&r->s.sockets);
    return status;
}

static void ucx_close(struct link *l) {
    struct row *r = (struct row *)l;
    sessions_close(&r->s);
    if (r->u) ucx->close(r->u);
    if (r->worker.fd > 0) close(r->worker.fd);
    free(r);
}

static tri_status ucx_open(const struct link_options *o, struct link **l) {
    struct row *r = calloc(1, sizeof *r);
    if (!r) return base_no_memory("a link");
    tri_status status = start(r, o);
    if (status) ucx_close(&r->s.base);
    else *l = &r->s.base;
    return status;
}

const struct link_row link_ucx = {ucx_open, ucx_close, session_peer, session_send,
                                  session_drop, session_resume, ucx_work};
