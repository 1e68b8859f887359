/* SPDX-License-Identifier: Apache-2.0 */
#include "link/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/random.h"
#include "link/link_inside.h"

struct between { /* a message on its way */
    bool dies; /* no message: its sender has ended the session */
    struct link_header header;
    const void *payload; /* the sender's, or */
    void *taken;         /* a copy, from malloc */
    void *token;
    bool is_taken;
};

/* From one host to another. */
struct path {
    struct between *queue;
    size_t first, n, capacity;
    size_t untaken; /* index of the first; those before it are taken */
    bool ready;     /* the sender has called link_peer, */
    uint32_t epoch; /* for this */
    bool delayed;
    bool waits;     /* the receiver has no place for the first message yet */
    bool started;   /* half of the first message's payload has arrived, at: */
    void *at;
};

struct local {
    struct link base;
    struct link_world *world;
    bool dead;
};

struct link_world {
    int hosts;
    uint64_t seed, drawn;
    bool manual, failed;
    int fd; /* readable if there is an event or a move, which `shown` says */
    bool shown;
    struct local **host;
    struct path *path; /* [from][to] */
    bool *joined;      /* [a][b], for both orders */
};

static struct link_world *latest; /* that was opened; null: it is closed */

static struct path *path(const struct link_world *w, int from, int to) {
    return &w->path[from * w->hosts + to];
}

static bool *joined(const struct link_world *w, int a, int b) {
    return &w->joined[a * w->hosts + b];
}

/* It is the last that `from` sends. */
static bool dies(const struct link_world *w, int from, int to) {
    const struct path *p = path(w, from, to);
    return p->first < p->n && p->queue[p->n - 1].dies;
}

/* ---- moves ---- */

enum { ARRIVES, IS_TAKEN, STARTS, KINDS };

static bool fits(const struct link_world *w, int to, const struct between *m) {
    return !m->dies && m->header.length <= w->host[to]->base.o.most;
}

static bool can(const struct link_world *w, int from, int to, int kind) {
    const struct path *p = path(w, from, to);
    if (p->delayed || p->first == p->n) return false;
    if (kind == IS_TAKEN) return p->untaken < p->n;
    return !p->waits && (kind == ARRIVES || (!p->started && fits(w, to, &p->queue[p->first])));
}

static int nth_move(const struct link_world *w, int n, int *from, int *to, int *kind) {
    int moves = 0;
    for (*from = 0; *from < w->hosts; ++*from)
        for (*to = 0; *to < w->hosts; ++*to)
            for (*kind = 0; *kind < KINDS; ++*kind)
                if (can(w, *from, *to, *kind) && moves++ == n) return moves;
    return moves;
}

int world_moves(const struct link_world *w) {
    int from, to, kind;
    return nth_move(w, -1, &from, &to, &kind);
}

static void show_work(struct link_world *w) {
    uint64_t value;
    bool work = w->failed || (!w->manual && world_moves(w));
    for (int i = 0; i < w->hosts && !work; i++)
        work = w->host[i] && w->host[i]->base.first < w->host[i]->base.n_events;
    if (work && !w->shown) CHECK(!eventfd_write(w->fd, 1));
    if (!work && w->shown) CHECK(!eventfd_read(w->fd, &value));
    w->shown = work;
}

static struct link_event *tell(struct link_world *w, enum link_what what, int host, int peer) {
    return link_tell(&w->host[host]->base, what, peer);
}

/* Empties a path; its messages are lost. */
static void lose(struct path *p) {
    for (size_t i = p->first; i < p->n; i++) free(p->queue[i].taken);
    p->first = p->n = p->untaken = 0;
    p->waits = p->started = false;
}

static bool lives(const struct link_world *w, int host) {
    return w->host[host] && !w->host[host]->dead;
}

static void finish(struct link_world *w, int host, int peer, const char *why) {
    if (!lives(w, host)) return;
    path(w, host, peer)->ready = false;
    snprintf(tell(w, LINK_ENDED, host, peer)->why, LINK_WHY, "%s", why);
}

/* The session is over, with nothing between the two any more. */
static void separate(struct link_world *w, int a, int b) {
    for (int i = 0; i < 2; i++) {
        int from = i ? b : a, to = i ? a : b;
        lose(path(w, from, to));
        *joined(w, from, to) = false;
    }
}

static tri_status add(struct link_world *w, int from, int to, struct between m) {
    struct path *p = path(w, from, to);
    if (!ARRAY_GROW(p->queue, p->n, p->capacity)) {
        w->failed = true;
        return base_no_memory("messages in process");
    }
    p->queue[p->n++] = m;
    return TRI_OK;
}

static void take(struct link_world *w, int from, int to) {
    struct between *m = &path(w, from, to)->queue[path(w, from, to)->untaken++];
    const size_t bytes = (size_t)m->header.length;
    m->is_taken = true;
    if (m->dies) return;
    m->taken = malloc(bytes + 1);
    if (!m->taken) {
        w->failed = true;
        m->header.length = 0;
    } else if (bytes) {
        memcpy(m->taken, m->payload, bytes);
    }
    tell(w, LINK_SENT, from, to)->token = m->token;
}

static void *place(struct link_world *w, int from, int to, const struct link_header *h) {
    const struct link_options *o = &w->host[to]->base.o;
    return o->where(o->user, from, h);
}

/* The words of wire.c. */
static void too_long(struct link_world *w, int from, int to, uint64_t length) {
    char why[LINK_WHY];
    snprintf(why, sizeof why, "it sent a message of %llu bytes; the most is %llu",
             (unsigned long long)length, (unsigned long long)w->host[to]->base.o.most);
    separate(w, from, to);
    finish(w, to, from, why);
    finish(w, from, to, "it closed the connection");
}

static void copy(void *to, const void *from, size_t begin, size_t end) {
    if (to && begin < end) memcpy((char *)to + begin, (const char *)from + begin, end - begin);
}

/* False: the receiver has no place yet. */
static bool start(struct link_world *w, int from, int to) {
    struct path *p = path(w, from, to);
    const struct between *m = &p->queue[p->first];
    if (p->started) return true;
    p->at = place(w, from, to, &m->header);
    p->waits = p->at == LINK_LATER;
    if (p->waits) return false;
    while (p->untaken <= p->first) take(w, from, to);
    p->started = true;
    copy(p->at, m->taken, 0, (size_t)m->header.length / 2);
    return true;
}

static void deliver(struct link_world *w, int from, int to, const struct between *m) {
    struct path *p = path(w, from, to);
    p->started = false;
    if (!p->at) return;
    copy(p->at, m->taken, (size_t)m->header.length / 2, (size_t)m->header.length);
    struct link_event *e = tell(w, LINK_ARRIVED, to, from);
    e->header = m->header;
    e->at = p->at;
}

static void arrive(struct link_world *w, int from, int to) {
    struct path *p = path(w, from, to);
    if (fits(w, to, &p->queue[p->first]) && !start(w, from, to)) return;
    while (p->untaken <= p->first) take(w, from, to);
    struct between m = p->queue[p->first++];
    if (p->first == p->n) p->first = p->n = p->untaken = 0;
    if (fits(w, to, &m)) deliver(w, from, to, &m);
    else if (!m.dies) too_long(w, from, to, m.header.length);
    free(m.taken);
    if (!m.dies) return;
    separate(w, from, to);
    finish(w, to, from, "it died");
}

void world_move(struct link_world *w, int move) {
    int from, to, kind;
    CHECK(nth_move(w, move, &from, &to, &kind) == move + 1);
    if (kind == ARRIVES) arrive(w, from, to);
    else if (kind == IS_TAKEN) take(w, from, to);
    else start(w, from, to);
    show_work(w);
}

/* ---- what the world does to hosts ---- */

void world_by_itself(struct link_world *w, bool by_itself) {
    w->manual = !by_itself;
    show_work(w);
}

void world_delay(struct link_world *w, int from, int to, bool on) {
    path(w, from, to)->delayed = on;
    show_work(w);
}

/* Half of the payload of the first message arrives. */
static void tear(struct link_world *w, int from, int to) {
    const struct path *p = path(w, from, to);
    if (p->first < p->n && lives(w, to) && fits(w, to, &p->queue[p->first])) start(w, from, to);
}

void world_cut(struct link_world *w, int a, int b) {
    if (!*joined(w, a, b)) return;
    tear(w, a, b);
    tear(w, b, a);
    separate(w, a, b);
    finish(w, a, b, "the connection was cut");
    finish(w, b, a, "the connection was cut");
    show_work(w);
}

/* One host has ended the session: what the world has taken of it may still arrive. */
static void abandon(struct link_world *w, int host, int peer) {
    struct path *p = path(w, host, peer);
    p->ready = false;
    if (!*joined(w, host, peer)) return;
    if (!lives(w, peer) || dies(w, peer, host))
        return separate(w, host, peer); /* the peer has ended it, too */
    lose(path(w, peer, host));
    if (p->n > p->untaken) p->n = p->untaken;
    add(w, host, peer, (struct between){.dies = true});
}

void world_kill(struct link_world *w, int host) {
    for (int i = 0; i < w->hosts; i++)
        if (i != host) abandon(w, host, i);
    w->host[host]->dead = true;
    w->host[host]->base.first = w->host[host]->base.n_events = 0;
    show_work(w);
}

tri_status world_open(int hosts, uint64_t seed, struct link_world **out) {
    struct link_world *w = calloc(1, sizeof *w);
    const size_t n = (size_t)hosts, pairs = n * n;
    *out = latest = w;
    if (!w) return base_no_memory("a world");
    w->hosts = hosts;
    w->seed = random_key(seed, 0);
    w->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    w->host = calloc(n, sizeof *w->host);
    w->path = calloc(pairs, sizeof *w->path);
    w->joined = calloc(pairs, sizeof *w->joined);
    if (w->fd >= 0 && w->host && w->path && w->joined) return TRI_OK;
    world_close(w);
    *out = NULL;
    return base_no_memory("a world");
}

void world_close(struct link_world *w) {
    if (!w) return;
    if (latest == w) latest = NULL;
    for (int i = 0; w->path && i < w->hosts * w->hosts; i++) {
        lose(&w->path[i]);
        free(w->path[i].queue);
    }
    if (w->fd >= 0) close(w->fd);
    free(w->host);
    free(w->path);
    free(w->joined);
    free(w);
}

/* ---- the row ---- */

static struct link_world *world_of(struct link *l) { return ((struct local *)l)->world; }

static tri_status local_open(const struct link_options *o, struct link **l) {
    struct link_world *w = latest;
    CHECK(w && w->hosts == o->hosts && !w->host[o->self]);
    struct local *c = calloc(1, sizeof *c);
    if (!c) return base_no_memory("a link");
    c->base.fd = w->fd;
    c->world = w;
    w->host[o->self] = c;
    *l = &c->base;
    return TRI_OK;
}

static void local_close(struct link *l) {
    struct link_world *w = world_of(l);
    const int self = l->o.self;
    if (!w->host[self]->dead) world_kill(w, self);
    w->host[self] = NULL;
    free(l);
}

static tri_status local_peer(struct link *l, int host, uint32_t epoch, const char *address) {
    (void)address;
    struct link_world *w = world_of(l);
    const int self = l->o.self;
    struct path *there = path(w, self, host), *back = path(w, host, self);
    there->ready = true;
    there->epoch = epoch;
    if (!back->ready || back->epoch != epoch || *joined(w, self, host)) return TRI_OK;
    *joined(w, self, host) = *joined(w, host, self) = true;
    tell(w, LINK_JOINED, self, host);
    tell(w, LINK_JOINED, host, self);
    show_work(w);
    return TRI_OK;
}

static tri_status local_send(struct link *l, int host, const struct link_header *h,
                             const void *payload, void *token) {
    struct link_world *w = world_of(l);
    const int self = l->o.self;
    if (!*joined(w, self, host) || dies(w, self, host) || dies(w, host, self)) return TRI_OK;
    tri_status status = add(w, self, host, (struct between){
        .header = *h, .payload = payload, .token = token});
    show_work(w);
    return status;
}

static void local_end(struct link *l, int host) {
    abandon(world_of(l), l->o.self, host);
    show_work(world_of(l));
}

static void local_resume(struct link *l, int host) {
    path(world_of(l), host, l->o.self)->waits = false;
    show_work(world_of(l));
}

static tri_status local_work(struct link *l) {
    struct link_world *w = world_of(l);
    int moves = w->manual || w->host[l->o.self]->dead ? 0 : world_moves(w);
    if (moves) world_move(w, (int)(random_u32(w->seed, 0, w->drawn++) % (uint32_t)moves));
    show_work(w);
    return w->failed ? base_no_memory("messages in process") : TRI_OK;
}

const struct link_row link_local = {local_open, local_close, local_peer, local_send,
                                    local_end, local_resume, local_work};
