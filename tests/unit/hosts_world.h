/* SPDX-License-Identifier: Apache-2.0
 * A coordinator, members and ferries that are made up, in virtual time. Connections keep the order
 * of messages; who gets one next, and when, is drawn. Hosts have clocks of their own. */
#ifndef UNIT_HOSTS_WORLD_H
#define UNIT_HOSTS_WORLD_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>

#include <cmocka.h>

#include "launch/coordinator.h"
#include "launch/member.h"

#define MOST 4
#define SECOND INT64_C(1000000000)
#define LEASE SECOND
#define STEPS 4096
#define WAITING 1024
#define STRANGER (MOST * 10000) /* the first connection of strangers */

struct queue {
    struct text *message[WAITING]; /* null: the connection ends */
    int first, n;
};

struct node {
    int conn, pid;
    bool lives, gone; /* gone: its agent's part is over: `end` or `lost` */
    bool broken;      /* its connection has ended, at either end */
    bool closed;      /* by the coordinator: nothing of it is read any more */
    bool other;       /* its digest is another one */
    bool mute;        /* its death closes no connection */
    int code, closing; /* of `end`; of its own run, -1: it runs */
    int64_t offset, stopped, cut; /* of its clock; until when its agent, its network stand */
    struct member *member;
    struct crew_hosts head;
    struct queue up, down, to_ferry, of_ferry;
    uint64_t opened;
    int asked[HOST_KILL + 1], workers; /* of ASK, by kind; of SCALE */
    uint64_t done;                     /* of DONE */
    unsigned changed;                  /* hosts that were said to have gone */
    int64_t ready_at;
    struct {
        bool lives, hangs, told[MOST];
        uint32_t held, begun;
        int64_t start;
        bool peer[MOST];
        uint64_t first; /* the epoch's step */
    } ferry;
};

static struct world {
    int n;
    int64_t now;
    uint64_t drawn;
    struct coordinator *c;
    struct node node[MOST];
    int cut[MOST][MOST]; /* sessions that break: 1 once, 2 whenever they begin */
    uint32_t epoch;      /* the latest that the coordinator has begun */
    bool alive[MOST], joins[MOST]; /* in that one */
    int teller;
    struct text bytes;   /* of the latest EPOCH */
    uint64_t offered;
    int32_t lanes[STEPS][MOST]; /* weights with which a step was offered */
    struct text said;
    enum host_kind to_stranger;
    bool evicted_for_silence;
    bool coordinator_gone;
} w;

static const char *const node_names[] = {"h0", "h1", "h2", "h3"};

static uint32_t draw(uint32_t n) {
    w.drawn ^= w.drawn << 13;
    w.drawn ^= w.drawn >> 7;
    w.drawn ^= w.drawn << 17;
    return (uint32_t)((w.drawn >> 16) % n);
}

static int64_t local(const struct node *h) { return w.now + h->offset; }
static bool has_lease(struct node *h) { return atomic_load(&h->head.lease) > local(h); }

/* ---- queues ---- */

static void push(struct queue *q, const struct host_message *m) {
    struct text *t = NULL;
    assert_true(q->n < WAITING);
    if (m) {
        t = calloc(1, sizeof *t);
        assert_non_null(t);
        assert_int_equal(host_message_put(m, t), TRI_OK);
    }
    q->message[(q->first + q->n++) % WAITING] = t;
}

/* False: the connection ends. *m must be freed. */
static bool pop(struct queue *q, struct host_message *m) {
    struct text *t = q->message[q->first];
    q->first = (q->first + 1) % WAITING;
    q->n--;
    *m = (struct host_message){0};
    if (!t) return false;
    assert_int_equal(host_message_get(t->data, t->size, m), TRI_OK);
    text_free(t);
    free(t);
    return true;
}

static void clear(struct queue *q) {
    struct host_message m;
    for (; q->n; host_message_free(&m)) pop(q, &m);
}

/* ---- the coordinator's side, and what must hold of it ---- */

static void check_epoch(const struct host_message *m) {
    struct text t = {0};
    host_message_put(m, &t);
    if (m->epoch == w.epoch) { /* the same to all */
        assert_int_equal(t.size, w.bytes.size);
        assert_memory_equal(t.data, w.bytes.data, t.size);
        text_free(&t);
        return;
    }
    assert_true(m->epoch > w.epoch);
    assert_int_equal(m->n_members, w.n);
    int lowest = -1, weight = 0;
    for (int i = 0; i < w.n; i++) {
        const struct host_member *is = &m->member[i];
        assert_true(w.alive[i] || !is->alive || is->report.joins); /* else nobody comes back */
        w.alive[i] = is->alive;
        w.joins[i] = is->alive && is->report.joins;
        if (is->alive && !is->report.joins && lowest < 0) lowest = i;
        if (is->alive) weight += is->weight;
    }
    assert_true(weight > 0 && lowest >= 0);
    const bool stays = w.teller >= 0 && w.alive[w.teller] && !w.joins[w.teller];
    assert_int_equal(m->teller, stays ? w.teller : lowest);
    if (m->teller != w.teller) { /* what the old one has offered, and nobody has begun */
        w.offered = 0;
        for (int i = 0; i < w.n; i++)
            if (w.alive[i] && w.node[i].opened > w.offered) w.offered = w.node[i].opened;
    }
    w.teller = m->teller;
    w.epoch = m->epoch;
    text_free(&w.bytes);
    w.bytes = t;
}

/* A host may leave when no step that is not over has lanes of it. */
static void check_leaves(int host) {
    uint64_t most = 0;
    for (int i = 0; i < w.n; i++)
        if (w.alive[i] && w.node[i].opened > most) most = w.node[i].opened;
    for (uint64_t s = most; s <= w.offered && s < STEPS; s++)
        assert_int_equal(w.lanes[s][host], 0);
}

static void c_send(void *user, int conn, const struct host_message *m) {
    (void)user;
    int code;
    if (conn >= STRANGER) {
        w.to_stranger = m->kind;
        return;
    }
    struct node *h = &w.node[conn % MOST];
    if (m->kind == HOST_EPOCH) check_epoch(m);
    if (conn != h->conn) return; /* the host has another one now */
    if (m->kind == HOST_END && !coordinator_is_over(w.c, &code) && w.epoch && !m->code && !m->text)
        check_leaves(conn % MOST);
    w.evicted_for_silence = m->kind == HOST_EVICTED && strstr(m->text, "no sign");
    assert_false(h->closed);
    push(&h->down, m);
}

static void c_close(void *user, int conn) {
    (void)user;
    if (conn >= STRANGER) return;
    struct node *h = &w.node[conn % MOST];
    if (conn != h->conn) return;
    assert_false(h->closed);
    if (w.evicted_for_silence) assert_true(!h->lives || !has_lease(h));
    h->closed = h->broken = true;
    push(&h->down, NULL);
}

static void c_say(void *user, const char *line) {
    (void)user;
    text_add(&w.said, "%s\n", line);
}

/* ---- the member's side ---- */

static void m_up(void *user, const struct host_message *m) {
    struct node *h = user;
    push(&h->up, m);
}
static void m_ferry(void *user, const struct host_message *m) {
    struct node *h = user;
    if (h->ferry.lives) push(&h->to_ferry, m); /* else the agent does not know yet */
}
static void m_welcome(void *user, const struct host_message *m) {
    struct node *h = user;
    assert_int_equal(m->host, h - w.node);
    assert_true(m->launch.number[1].value == 2 + m->host);
    member_attach(h->member, &h->head);
    h->ready_at = w.now + draw(200) * (SECOND / 1000);
    h->ferry.start = w.now;
}
static void m_wake(void *user) { (void)user; }
static void m_steer(void *user, const struct host_message *m) {
    struct node *h = user;
    if (m->kind == HOST_ASK && m->ask == HOST_STOP) h->closing = 3;
    if (m->kind == HOST_ASK) h->asked[m->ask]++;
    if (m->kind == HOST_DONE) h->done = m->step;
    if (m->kind == HOST_SCALE) h->workers = m->workers;
}
static void m_changed(void *user, int host, const struct host_message *epoch) {
    struct node *h = user;
    if (!epoch->member[host].alive) h->changed |= 1u << host;
}
static void m_fail(void *user, const char *text) {
    struct node *h = user;
    assert_non_null(strstr(text, "host h"));
    h->closing = 1;
}
static void m_end(void *user, int code, const char *text) {
    struct node *h = user;
    (void)text;
    assert_false(h->gone);
    h->gone = true;
    h->code = code;
}
static void m_lost(void *user, const char *text) { m_end(user, 3, text); }
static void m_told(void *user, const char *line) { (void)user, (void)line; }

static void kill_ferry(void *user) {
    struct node *h = user;
    memset(&h->ferry, 0, sizeof h->ferry);
    clear(&h->to_ferry);
    clear(&h->of_ferry);
    if (h->lives) h->ferry.start = w.now + draw(300) * (SECOND / 1000);
}

static void kill_node(struct node *h) {
    if (!h->lives) return;
    h->lives = false;
    kill_ferry(h);
    member_close(h->member);
    h->member = NULL;
    if (!h->broken && !h->mute) push(&h->up, NULL);
    h->broken = true;
}

static const uint8_t a_key[HOST_BYTES] = "a key of thirty-two bytes, or so";

static void connect_node(int i, const char *name, const char *version) {
    struct node *h = &w.node[i];
    *h = (struct node){.lives = true, .closing = -1, .offset = draw(1000000) * (SECOND / 100),
                       .conn = h->conn ? h->conn + MOST : MOST + i, .pid = h->pid};
    struct member_options o = {
        .name = name, .version = version, .pid = h->pid ? h->pid : 7, .key = a_key, .address = "",
        .user = h, .to_coordinator = m_up, .to_ferry = m_ferry, .welcome = m_welcome,
        .wake = m_wake, .steer = m_steer, .changed = m_changed, .fail = m_fail, .end = m_end,
        .lost = m_lost, .stuck = kill_ferry, .told = m_told};
    assert_int_equal(member_open(&o, local(h), &h->member), TRI_OK);
}

/* The host joins again, with the same process or another. */
static void connect_again(int i) {
    struct node *h = &w.node[i];
    const bool same = h->lives;
    kill_node(h);
    if (!h->closed && (!same || draw(2)))
        coordinator_ended(w.c, h->conn, "its connection closed", w.now);
    clear(&h->up);
    clear(&h->down);
    h->pid = same ? h->pid : 1000 + h->conn;
    connect_node(i, node_names[i], "1");
}

static void begin_world(int n, uint64_t seed) {
    static const struct coordinator_host host[] = {{"h0", 2}, {"h1", 3}, {"h2", 4}, {"h3", 5}};
    static struct host_number number[] = {{"threads", 2}};
    static const char *argv[] = {"train"};
    static const struct host_launch launch = {
        .program = "train", .cwd = "/", .argv = {1, argv}, .n_numbers = 1, .number = number};
    const struct coordinator_options o = {
        .n = n, .host = host, .version = "1", .run = 5, .launch = &launch, .lease = LEASE,
        .connect_timeout = 2 * SECOND, .start_timeout = 4 * SECOND, .send = c_send,
        .close = c_close, .say = c_say};
    memset(&w, 0, sizeof w);
    w.n = n;
    w.now = 5 * SECOND;
    w.drawn = seed * 0x9e3779b97f4a7c15u + 1;
    w.teller = -1;
    memset(w.alive, 1, sizeof w.alive);
    assert_int_equal(coordinator_open(&o, w.now, &w.c), TRI_OK);
}

static void end_world(void) {
    for (int i = 0; i < w.n; i++) {
        struct node *h = &w.node[i];
        kill_node(h);
        clear(&h->up);
        clear(&h->down);
    }
    coordinator_close(w.c);
    text_free(&w.said);
    text_free(&w.bytes);
}

/* ---- a ferry ---- */

static void ferry_takes(struct node *h) {
    struct host_message m;
    uint8_t has[1] = {0};
    pop(&h->to_ferry, &m);
    if (m.kind == HOST_START) {
        assert_int_equal(m.host, h - w.node);
        assert_int_equal(m.hosts, w.n);
        assert_memory_equal(m.key, a_key, HOST_BYTES);
        push(&h->of_ferry, &(struct host_message){.kind = HOST_ADDRESS, .address = "10.0.0.1:1"});
    } else if (m.kind == HOST_PING) {
        push(&h->of_ferry, &m);
    } else if (m.kind == HOST_HOLD) {
        assert_true(m.epoch > h->ferry.held);
        h->ferry.held = m.epoch;
        push(&h->of_ferry,
             &(struct host_message){
                 .kind = HOST_REPORT, .epoch = m.epoch,
                 .report = {.step = h->opened, .joins = atomic_load(&h->head.lacks),
                            .opening.step = h->opened, .n = 8, .has = has}});
    } else {
        assert_int_equal(m.kind, HOST_EPOCH);
        assert_int_equal(m.epoch, h->ferry.held);
        assert_true(m.epoch > h->ferry.begun);
        h->ferry.begun = m.epoch;
        h->ferry.first = 0;
        for (int i = 0; i < w.n; i++) {
            h->ferry.peer[i] = m.member[i].alive && i != h - w.node;
            h->ferry.told[i] = false;
            atomic_store(&h->head.weight[i], m.member[i].alive ? m.member[i].weight : 0);
            if (m.member[i].alive && m.member[i].report.step > h->ferry.first)
                h->ferry.first = m.member[i].report.step;
        }
        atomic_store(&h->head.epoch, m.epoch);
        atomic_store(&h->head.teller, m.teller);
    }
    host_message_free(&m);
}

static bool is_cut(const struct node *h) { return w.now < h->cut; }

/* Sessions of an epoch end with a ferry, and when it holds for a later one. */
static void ferry_looks(struct node *h) {
    const uint32_t e = h->ferry.begun;
    const int i = (int)(h - w.node), peer = (int)draw((uint32_t)w.n);
    struct node *p = &w.node[peer];
    if (!e || e != h->ferry.held || !h->ferry.peer[peer] || h->ferry.told[peer]) return;
    if (is_cut(h) || is_cut(p) || (p->mute && !p->lives)) return;
    const bool ended = !p->ferry.lives || p->ferry.held > e;
    if (!ended && !w.cut[i][peer]) return;
    if (w.cut[i][peer] == 1) w.cut[i][peer] = w.cut[peer][i] = 0;
    h->ferry.told[peer] = true;
    push(&h->of_ferry, &(struct host_message){.kind = HOST_LOST, .epoch = e, .host = peer,
                                              .text = "reset by peer"});
}

/* ---- steps: a host that has opened one has all of the step before, and so have all others ---- */

static bool lacks(const struct node *h) { return atomic_load(&h->head.lacks); }

static void offer(struct node *h) {
    const int i = (int)(h - w.node);
    for (int k = 0; k < w.n; k++)
        if (h->ferry.peer[k] && lacks(&w.node[k])) return; /* the step before is not over */
    if (atomic_load(&h->head.teller) != i || atomic_load(&h->head.epoch) != w.epoch) return;
    if (w.offered != h->opened || w.offered + 1 >= STEPS) return;
    w.offered++;
    for (int k = 0; k < w.n; k++)
        w.lanes[w.offered][k] = atomic_load(&h->head.weight[k]);
}

static void act(struct node *h) {
    const uint32_t e = h->ferry.begun;
    if (!has_lease(h) || !e || h->ferry.held != e || is_cut(h) || h->closing >= 0) return;
    if (e != w.epoch) return;
    offer(h);
    if (!lacks(h) && h->opened >= w.offered) return;
    for (int i = 0; i < w.n; i++) {
        struct node *p = &w.node[i];
        if (!h->ferry.peer[i]) continue;
        if (p->ferry.begun != e || p->ferry.held != e || is_cut(p)) return;
        if (w.cut[h - w.node][i]) return;
        if (lacks(p) ? h->opened >= h->ferry.first && !lacks(h)
                     : p->opened < (lacks(h) ? h->ferry.first : h->opened))
            return;
    }
    if (lacks(h)) {
        assert_true(h->ferry.first);
        h->opened = h->ferry.first;
        atomic_store(&h->head.lacks, 0);
    } else {
        h->opened++;
    }
}

/* ---- time ---- */

static bool is_stopped(const struct node *h) { return w.now < h->stopped; }

static void become_ready(struct node *h, uint8_t digest, uint64_t resumed) {
    memset(h->head.digest, digest, HOST_BYTES);
    atomic_store(&h->head.agrees, 1);
    member_ready(h->member, 4 << 20, 2 + (int)(h - w.node), resumed);
    h->ready_at = 0;
}

static void tick_node(struct node *h) {
    if (!h->lives || is_stopped(h)) return;
    if (h->ferry.start && w.now >= h->ferry.start && !h->ferry.lives) {
        member_ferry_died(h->member);
        h->ferry.lives = true;
        member_ferry_started(h->member, &(struct host_wire){0}, local(h));
    }
    if (h->ready_at && w.now >= h->ready_at) become_ready(h, 1 + h->other, 0);
    if (h->closing >= 0 && !draw(4)) {
        member_closed(h->member, h->closing, "");
        h->closing = h->closing ? 0 : h->closing;
    }
    member_tick(h->member, h->opened, local(h));
    if (h->gone) kill_node(h);
    if (h->lives && !is_cut(h) && !w.coordinator_gone && member_is_cut(h->member, local(h)) &&
        !draw(8))
        connect_again((int)(h - w.node));
}

static void advance(int64_t by) {
    w.now += by;
    coordinator_tick(w.c, w.now);
    for (int i = 0; i < w.n; i++) tick_node(&w.node[i]);
}

static void take_up(struct node *h) {
    struct host_message m;
    const int conn = h->conn;
    if (h->closed) {
        clear(&h->up);
        return;
    }
    if (pop(&h->up, &m))
        coordinator_arrived(w.c, conn, &m, w.now);
    else
        coordinator_ended(w.c, conn, "its connection closed", w.now);
    host_message_free(&m);
}

static void take_down(struct node *h) {
    struct host_message m;
    if (pop(&h->down, &m))
        member_from_coordinator(h->member, &m, local(h));
    else
        member_coordinator_ended(h->member, "the coordinator has gone");
    host_message_free(&m);
    if (h->gone) kill_node(h);
}

static void take_of_ferry(struct node *h) {
    struct host_message m;
    pop(&h->of_ferry, &m);
    member_from_ferry(h->member, &m);
    host_message_free(&m);
}

/* One thing that may happen, or nothing. */
static void happen(void) {
    struct node *h = &w.node[draw((uint32_t)w.n)];
    const uint32_t what = draw(6);
    const bool agent = h->lives && !is_stopped(h);
    if (what == 0 && h->up.n && !is_cut(h)) take_up(h);
    if (what == 1 && h->down.n && !is_cut(h) && agent) take_down(h);
    if (what == 2 && h->ferry.lives && !h->ferry.hangs && h->to_ferry.n) ferry_takes(h);
    if (what == 3 && agent && h->of_ferry.n) take_of_ferry(h);
    if (what == 4 && h->ferry.lives) ferry_looks(h);
    if (what == 5 && h->lives) act(h);
    int tellers = 0;
    for (int i = 0; i < w.n && what == 1; i++) {
        struct node *p = &w.node[i];
        tellers += p->lives && !p->broken && has_lease(p) && atomic_load(&p->head.teller) == i;
    }
    assert_true(tellers <= 1);
}

static void run_for(int64_t time) {
    for (const int64_t until = w.now + time; w.now < until;) {
        for (int i = 0; i < 8 * w.n; i++) happen();
        advance((1 + draw(40)) * (SECOND / 1000));
    }
}

#endif
