/* SPDX-License-Identifier: Apache-2.0 */
#include "link/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* ---- the end of a connection ---- */

static void drop(struct sessions *s, struct session *c) {
    if (c->wire.host >= 0 && s->peer[c->wire.host] == c) s->peer[c->wire.host] = NULL;
    struct session **at = &s->first;
    while (*at != c) at = &(*at)->next;
    *at = c->next;
    s->carrier->close(c);
    sockets_remove(&s->sockets, &c->sock);
    wire_free(&c->wire);
    outgoing_free(&c->out);
    free(c);
}

static void refuse(struct sessions *s, const struct session *c, const char *why) {
    char line[LINK_WHY];
    if (sockets_refuse(&s->sockets, c->sock.from, why, line))
        strcpy(link_tell(&s->base, LINK_REFUSED, -1)->why, line);
}

static const char *why_late(const struct session *c) {
    if (c->state == SESSION_HELD) return "it is not expected";
    if (c->state >= SESSION_ASKS) return "nothing gets through to it";
    return c->state == SESSION_CONNECTING ? "it does not answer at its address"
                                          : "it did not finish its greeting";
}

void session_end(struct sessions *s, struct session *c, const char *why) {
    if (!why) why = why_late(c);
    if (c->mine || c->state == SESSION_JOINED) {
        struct link_event *e = link_tell(&s->base, LINK_ENDED, c->wire.host);
        snprintf(e->why, sizeof e->why, "%s", why);
    } else {
        refuse(s, c, why);
    }
    drop(s, c);
}

static const char *why_closed(const struct session *c) {
    if (c->state == SESSION_CONNECTING || c->state == SESSION_GREETING)
        return "it closed the connection at once";
    if (wire_is_inside(&c->wire)) return "it closed the connection inside a message";
    return "it closed the connection, as when a process dies";
}

/* ---- new connections ---- */

tri_status session_new(struct sessions *s, int fd, enum session_state state, int host,
                       uint32_t epoch, struct session **out) {
    struct session *c = calloc(1, sizeof *c);
    tri_status status = c ? wire_begin(&c->wire, &s->side, host, epoch, s->spare)
                          : base_no_memory("a connection");
    if (status) {
        if (fd >= 0) close(fd);
        free(c);
        return status;
    }
    c->state = state;
    c->sock.deadline = base_now() + s->patience;
    status = sockets_add(&s->sockets, &c->sock, fd,
                         state == SESSION_CONNECTING ? EPOLLOUT : EPOLLIN);
    if (status) {
        wire_free(&c->wire);
        free(c);
        return status;
    }
    c->next = s->first;
    s->first = c;
    *out = c;
    return TRI_OK;
}

/* ---- silence ---- */

static void look_later(struct sessions *s, struct session *c) {
    const bool looks = s->silence && s->carrier->answers;
    sockets_set_deadline(&s->sockets, &c->sock, looks ? base_now() + s->silence / 4 : 0);
}

void session_late(struct sessions *s, struct session *c) {
    if (c->state < SESSION_ASKS || !s->carrier->answers(c, s->silence)) session_end(s, c, NULL);
    else look_later(s, c);
}

/* ---- joining ---- */

static bool is_reading(const struct session *c) {
    return c->state != SESSION_HELD && !c->waits;
}

static bool has_outgoing(const struct session *c) {
    return c->out.first < c->out.n || c->out.from < c->out.ranges;
}

/* Makes epoll wait for what the connection can do now. */
static void watch_again(struct sessions *s, struct session *c) {
    const bool out = has_outgoing(c);
    const uint32_t in = is_reading(c) ? EPOLLIN : c->state == SESSION_HELD ? EPOLLRDHUP : 0;
    if (c->state == SESSION_CONNECTING) return;
    sockets_watch(&s->sockets, &c->sock, in | (out ? (uint32_t)EPOLLOUT : 0));
    if (s->carrier->watched) s->carrier->watched(s, c);
}

static tri_status join(struct sessions *s, struct session *c) {
    const int host = c->wire.host;
    const struct link_header h = {.run = s->side.run, .kind = WIRE_BEGINS};
    if (!c->mine) {
        tri_status status = outgoing_add(&c->out, &h, NULL, NULL);
        if (status) return status;
    }
    c->mine = true;
    c->state = SESSION_JOINED;
    s->awaited[host].on = false;
    s->peer[host] = c;
    look_later(s, c);
    watch_again(s, c);
    link_tell(&s->base, LINK_JOINED, host);
    return TRI_OK;
}

/* Ends the host's connections that are held; but one of this epoch or a later one only if it is
 * not the last. */
static void drop_held(struct sessions *s, int host, uint32_t epoch, const struct session *last) {
    for (struct session *c = s->first, *next; c; c = next) {
        next = c->next;
        if (c->state == SESSION_HELD && c->wire.host == host && c != last &&
            (last || (int32_t)(c->wire.epoch - epoch) < 0))
            session_end(s, c, "it has connected again");
    }
}

/* The peer is who it says. */
static tri_status greeted(struct sessions *s, struct session *c) {
    const struct awaited *a = &s->awaited[c->wire.host];
    if (!c->mine && (int32_t)(c->wire.epoch - a->epoch) < 0)
        return base_fail(TRI_FAILED, "it is host %d of epoch %u, which is over", c->wire.host,
                         c->wire.epoch);
    c->sock.is_stranger = false;
    if (c->mine) {
        c->state = SESSION_ASKS;
        look_later(s, c);
        return TRI_OK;
    }
    if (a->on && a->epoch == c->wire.epoch) return join(s, c);
    c->state = SESSION_HELD;
    drop_held(s, c->wire.host, 0, c);
    if (s->side.key) sockets_set_deadline(&s->sockets, &c->sock, 0);
    return TRI_OK;
}

/* ---- receiving ---- */

static void arrived(struct sessions *s, struct session *c, void *at) {
    struct link_event *e = link_tell(&s->base, LINK_ARRIVED, c->wire.host);
    e->header = c->wire.header;
    e->at = at;
}

static tri_status began(struct sessions *s, struct session *c) {
    const struct link_header *h = &c->wire.header;
    if ((h->kind == WIRE_BEGINS) != (c->state == SESSION_ASKS))
        return base_fail(TRI_FAILED, "it sent a message out of turn");
    if (h->kind == WIRE_BEGINS) return join(s, c);
    void *at = s->base.o.where(s->base.o.user, c->wire.host, h);
    c->waits = at == LINK_LATER;
    if (c->waits) return TRI_OK;
    if (h->length) c->wire.at = at;
    else if (at) arrived(s, c, at);
    return TRI_OK;
}

static tri_status came(struct sessions *s, struct session *c, enum wire_event event) {
    if ((event == WIRE_ANSWER || event == WIRE_JOINED) && c->wire.n_greeting)
        outgoing_add_bytes(&c->out, c->wire.greeting, c->wire.n_greeting);
    if (event == WIRE_JOINED) return greeted(s, c);
    if (event == WIRE_BEGUN) return began(s, c);
    if (event == WIRE_WHOLE && c->wire.at) arrived(s, c, c->wire.at);
    return TRI_OK;
}

/* False: the connection is gone. */
static bool receive(struct sessions *s, struct session *c) {
    for (size_t n = 0; n < SOCKETS_TURN && is_reading(c);) {
        struct iovec to[2];
        enum wire_event event;
        ssize_t got = s->carrier->read(c, to, wire_want(&c->wire, to));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) break;
        if (got <= 0) {
            session_end(s, c, got < 0 ? strerror(errno) : why_closed(c));
            return false;
        }
        n += (size_t)got;
        tri_status status = wire_got(&c->wire, (size_t)got, &event);
        if (!status) status = came(s, c, event);
        if (status) {
            session_end(s, c, tri_message());
            return false;
        }
    }
    watch_again(s, c);
    return true;
}

/* ---- sending ---- */

static void window_is_sent(struct sessions *s, struct session *c) {
    for (int i = 0; i < c->out.tokens; i++)
        link_tell(&s->base, LINK_SENT, c->wire.host)->token = c->out.token[i];
    c->out.tokens = 0;
}

static void transmit(struct sessions *s, struct session *c) {
    for (size_t n = 0; n < SOCKETS_TURN;) {
        if (!outgoing_fill(&c->out, &c->wire)) break;
        ssize_t sent = s->carrier->write(c, c->out.range + c->out.from,
                                         c->out.ranges - c->out.from);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && errno == EAGAIN) break;
        if (sent < 0) return session_end(s, c, strerror(errno));
        n += (size_t)sent;
        if (outgoing_sent(&c->out, (size_t)sent)) window_is_sent(s, c);
    }
    watch_again(s, c);
}

/* ---- work ---- */

void session_connected(struct sessions *s, struct session *c) {
    c->state = SESSION_GREETING;
    outgoing_add_bytes(&c->out, c->wire.greeting, c->wire.n_greeting);
    watch_again(s, c);
}

void session_ready(struct sessions *s, struct session *c, uint32_t events) {
    const bool closed = events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP);
    /* What it had sent before is read when there is a place for it, and then the end. */
    if (closed && c->waits && !has_outgoing(c) && c->sock.fd >= 0)
        return sockets_rest(&s->sockets, &c->sock);
    if (closed && !is_reading(c)) return session_end(s, c, why_closed(c));
    if (events & ~(uint32_t)EPOLLOUT && !receive(s, c)) return;
    if (events & EPOLLOUT) transmit(s, c);
}

bool sessions_have_told(const void *sessions) {
    const struct link *l = sessions;
    return l->first < l->n_events || l->failed;
}

/* ---- what the user calls ---- */

tri_status session_send(struct link *l, int host, const struct link_header *h,
                        const void *payload, void *token) {
    struct sessions *s = (struct sessions *)l;
    struct session *c = s->peer[host];
    if (!c || c->state != SESSION_JOINED) return TRI_OK;
    tri_status status = outgoing_add(&c->out, h, payload, token);
    watch_again(s, c);
    return status;
}

void session_drop(struct link *l, int host) {
    struct sessions *s = (struct sessions *)l;
    s->awaited[host].on = false;
    if (s->peer[host]) drop(s, s->peer[host]);
}

void session_resume(struct link *l, int host) {
    struct sessions *s = (struct sessions *)l;
    struct session *c = s->peer[host];
    if (!c || !c->waits) return;
    if (began(s, c)) session_end(s, c, tri_message());
    else watch_again(s, c);
    if (sessions_have_told(s)) sockets_wake(&s->sockets);
}

static tri_status await(struct sessions *s, int host, uint32_t epoch) {
    s->awaited[host] = (struct awaited){true, epoch};
    drop_held(s, host, epoch, NULL);
    for (struct session *c = s->first; c; c = c->next)
        if (c->state == SESSION_HELD && c->wire.host == host && c->wire.epoch == epoch)
            return join(s, c);
    return TRI_OK;
}

tri_status session_peer(struct link *l, int host, uint32_t epoch, const char *address) {
    struct sessions *s = (struct sessions *)l;
    CHECK(!s->peer[host] && !s->awaited[host].on);
    tri_status status = l->o.self > host ? s->carrier->connect(s, host, epoch, address)
                                         : await(s, host, epoch);
    if (sessions_have_told(s)) sockets_wake(&s->sockets);
    return status;
}

/* ---- making ---- */

tri_status sessions_open(struct sessions *s, const struct session_carrier *carrier,
                         const struct sockets_user *row, const struct link_options *o) {
    s->carrier = carrier;
    s->side = (struct wire_side){o->self, o->hosts, o->run, o->most, o->key};
    s->patience = o->patience ? o->patience : SOCKETS_PATIENCE;
    s->silence = o->silence;
    s->sockets.fd = s->sockets.listener = s->sockets.timer = -1;
    s->peer = calloc((size_t)o->hosts, sizeof *s->peer);
    s->awaited = calloc((size_t)o->hosts, sizeof *s->awaited);
    s->spare = malloc(WIRE_PIECE);
    if (!s->peer || !s->awaited || !s->spare) return base_no_memory("a link");
    tri_status status = sockets_open(&s->sockets, row, s);
    s->base.fd = s->sockets.fd;
    return status;
}

void sessions_close(struct sessions *s) {
    while (s->first) drop(s, s->first);
    sockets_close(&s->sockets);
    free(s->peer);
    free(s->awaited);
    free(s->spare);
}
