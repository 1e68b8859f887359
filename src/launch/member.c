/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/member.h"

#include <stdlib.h>
#include <string.h>

struct member {
    struct member_options o;
    enum { GREETED, WELCOMED, ALONE, OVER } phase; /* ALONE: the connection or membership is lost */
    struct crew_hosts *hosts;                      /* null: not attached */
    int n, self;
    bool joins;
    uint64_t run;
    char name[HOSTS_MOST][HOSTS_NAME];
    int64_t lease, next_beat;
    int64_t now;             /* the coordinator's latest message came */
    int64_t renewed, ticked; /* the lease was; member_tick was called */
    char why[HOST_TEXT];
    uint64_t opened;
    int workers;
    bool alive[HOSTS_MOST]; /* in the epoch `begun` */
    uint32_t held, begun; /* epochs: the latest HOLD; the latest EPOCH */
    struct {
        bool runs;
        uint32_t reported, begun;       /* epochs, of this very process; 0: none */
        /* Since when an ADDRESS, a REPORT, a PING is missing; 0: none is. */
        int64_t starts, holds, pings;
        int64_t next_ping;
        char address[HOSTS_ADDRESS];    /* "": it has not said it */
    } ferry;
    bool is_ready;
    int64_t bytes;
    int weight;
    uint64_t resumed;
};

static void tell(struct member *m, struct host_message message) {
    if (m->phase <= WELCOMED) m->o.to_coordinator(m->o.user, &message);
}

static void end(struct member *m, int code, const char *text) {
    m->phase = OVER;
    if (m->hosts) atomic_store(&m->hosts->lease, 0);
    m->o.end(m->o.user, code, text);
}

static void tell_ready(struct member *m) {
    if (!m->is_ready || !atomic_load(&m->hosts->agrees) || !*m->ferry.address) return;
    struct host_message r = {.kind = HOST_READY, .weight = m->weight, .bytes = m->bytes,
                             .step = m->resumed, .address = m->ferry.address};
    memcpy(r.digest, m->hosts->digest, HOST_BYTES);
    memcpy(r.state, m->hosts->state, HOST_BYTES);
    tell(m, r);
}

/* ---- of the coordinator ---- */

static void take_welcome(struct member *m, const struct host_message *w) {
    m->phase = WELCOMED;
    m->renewed = m->ticked = m->now;
    m->joins = w->joins;
    m->n = w->names.n;
    m->self = w->host;
    m->run = w->run;
    m->lease = w->lease;
    for (int i = 0; i < m->n; i++) base_format(m->name[i], HOSTS_NAME, "%s", w->names.text[i]);
    m->o.welcome(m->o.user, w);
}

/* Of two beats, the one that came back sooner tells the coordinator's clock better. */
static void learn_clock(struct member *m, const struct host_message *b) {
    const int64_t half = (m->now - b->time) / 2 + 1, had = hosts_unsure(m->hosts, m->now);
    if (had && half >= had) return;
    atomic_store(&m->hosts->clock_at, m->now);
    atomic_store(&m->hosts->clock, (int64_t)b->step - b->time - half);
    atomic_store(&m->hosts->unsure, half);
}

static void take_beat(struct member *m, const struct host_message *b) {
    if (!m->hosts || b->time > m->now) return;
    learn_clock(m, b);
    const int64_t had = atomic_load(&m->hosts->lease), has = b->time + m->lease;
    if (has > had) atomic_store(&m->hosts->lease, has);
    if (b->time > m->renewed) m->renewed = b->time;
    if (had <= m->now && has > m->now) m->o.wake(m->o.user);
}

static void take_hold(struct member *m, const struct host_message *h) {
    if (h->epoch <= m->held) {
        end(m, TRI_FAILED, "the coordinator has begun an earlier epoch");
        return;
    }
    m->held = h->epoch;
    if (!m->ferry.runs) return; /* READY begins another */
    m->ferry.holds = m->now;
    m->o.to_ferry(m->o.user, h);
}

static void take_epoch(struct member *m, const struct host_message *e) {
    if (!m->hosts || e->epoch != m->held || e->epoch == m->begun || e->n_members != m->n ||
        !e->member[m->self].alive) {
        end(m, TRI_FAILED, "the coordinator has begun an epoch that is none of this host's");
        return;
    }
    for (int i = 0; i < m->n; i++) {
        if (m->begun && m->alive[i] != e->member[i].alive) m->o.changed(m->o.user, i, e);
        m->alive[i] = e->member[i].alive;
    }
    m->begun = e->epoch;
    if (m->ferry.runs && m->ferry.reported == e->epoch) {
        m->ferry.begun = e->epoch;
        m->o.to_ferry(m->o.user, e); /* which writes to the head who takes part, and who tells */
    }
}

static void take_fail(struct member *m, const struct host_message *f) {
    m->o.fail(m->o.user, f->text);
}

static void take_steer(struct member *m, const struct host_message *a) {
    m->o.steer(m->o.user, a);
}

static void take_end(struct member *m, const struct host_message *e) {
    end(m, e->kind == HOST_END ? e->code : TRI_FAILED, e->text);
}

static void be_alone(struct member *m, const char *why) {
    base_format(m->why, sizeof m->why, "%s", why);
    m->phase = ALONE;
    if (m->hosts) atomic_store(&m->hosts->lease, 0);
}

static void take_evicted(struct member *m, const struct host_message *e) {
    char text[HOST_TEXT];
    base_format(text, sizeof text, "this host is out of the run: %s", e->text);
    m->o.told(m->o.user, text);
    be_alone(m, e->text);
}

/* ---- of the ferry ---- */

void member_ferry_started(struct member *m, const struct host_wire *wire, int64_t now) {
    CHECK(m->hosts && !m->ferry.runs);
    struct host_message s = {.kind = HOST_START, .host = m->self, .hosts = m->n, .run = m->run,
                             .lease = m->lease, .address = m->o.address,
                             .port = {m->o.port[0], m->o.port[1]},
                             .wire = *wire};
    memcpy(s.key, m->o.key, HOST_BYTES);
    memset(&m->ferry, 0, sizeof m->ferry);
    m->ferry.runs = true;
    m->ferry.starts = now;
    m->o.to_ferry(m->o.user, &s);
    explicit_bzero(s.key, sizeof s.key);
}

/* The store may be made anew. */
void member_ferry_died(struct member *m) {
    memset(&m->ferry, 0, sizeof m->ferry);
    m->opened = 0;
}

static void take_address(struct member *m, const struct host_message *f) {
    base_format(m->ferry.address, sizeof m->ferry.address, "%s", f->address);
    m->ferry.starts = 0;
    tell_ready(m);
}

static void take_report(struct member *m, const struct host_message *f) {
    if (f->epoch != m->held) return;
    m->ferry.holds = 0;
    m->ferry.reported = f->epoch;
    tell(m, *f);
}

static void take_ping(struct member *m, const struct host_message *f) {
    (void)f;
    m->ferry.pings = 0;
}

static void take_lost(struct member *m, const struct host_message *f) {
    if (f->epoch == m->ferry.begun && f->epoch == m->held) tell(m, *f);
}

static void take_told(struct member *m, const struct host_message *f) {
    m->o.told(m->o.user, f->text);
}

/* ---- messages ---- */

/* Who sends a message of a kind, and when: bits of phases for the coordinator, or FERRY. */
enum { FERRY = 1 << 8 };
static const struct {
    void (*take)(struct member *m, const struct host_message *message);
    unsigned from;
} rows[HOST_KIND_COUNT] = {
    [HOST_WELCOME] = {take_welcome, 1 << GREETED},
    [HOST_REFUSED] = {take_end, 1 << GREETED | 1 << WELCOMED},
    [HOST_EVICTED] = {take_evicted, 1 << WELCOMED},
    [HOST_END] = {take_end, 1 << GREETED | 1 << WELCOMED},
    [HOST_BEAT] = {take_beat, 1 << WELCOMED},
    [HOST_HOLD] = {take_hold, 1 << WELCOMED},
    [HOST_EPOCH] = {take_epoch, 1 << WELCOMED},
    [HOST_FAIL] = {take_fail, 1 << WELCOMED},
    [HOST_ASK] = {take_steer, 1 << WELCOMED}, [HOST_DONE] = {take_steer, 1 << WELCOMED},
    [HOST_ANSWER] = {take_steer, 1 << WELCOMED}, [HOST_SCALE] = {take_steer, 1 << WELCOMED},
    [HOST_ADDRESS] = {take_address, FERRY}, [HOST_REPORT] = {take_report, FERRY},
    [HOST_LOST] = {take_lost, FERRY}, [HOST_TOLD] = {take_told, FERRY},
    [HOST_PING] = {take_ping, FERRY},
};

void member_from_coordinator(struct member *m, const struct host_message *message, int64_t now) {
    char text[HOST_TEXT];
    if (m->phase >= ALONE) return;
    m->now = now;
    if (rows[message->kind].from >> m->phase & 1) {
        rows[message->kind].take(m, message);
        return;
    }
    base_format(text, sizeof text, "the coordinator has sent %s at a time when that has no meaning",
                host_kind_name(message->kind));
    end(m, TRI_FAILED, text);
}

void member_coordinator_ended(struct member *m, const char *why) {
    if (m->phase == GREETED || (m->phase == WELCOMED && !m->begun)) end(m, TRI_FAILED, why);
    else if (m->phase == WELCOMED) be_alone(m, why);
}

void member_from_ferry(struct member *m, const struct host_message *message) {
    if (!m->ferry.runs || m->phase == OVER) return;
    if (rows[message->kind].from & FERRY) rows[message->kind].take(m, message);
    else m->o.stuck(m->o.user);
}

/* ---- of the host ---- */

bool member_is_cut(const struct member *m, int64_t now) {
    return m->phase == ALONE || (m->phase == WELCOMED && now - m->renewed > 2 * m->lease);
}

void member_tick(struct member *m, uint64_t opened, int64_t now) {
    const int64_t patience = 2 * m->lease;
    if (opened > m->opened) m->opened = opened;
    if (now - m->ticked > m->lease) m->renewed += now - m->ticked; /* this process was stopped */
    m->ticked = now;
    if ((m->phase == WELCOMED || m->phase == ALONE) &&
        now - m->renewed > (1 + MEMBER_PATIENCE) * m->lease) {
        const bool silent = m->phase == WELCOMED;
        m->phase = OVER;
        m->o.lost(m->o.user, silent ? "the coordinator does not answer" : m->why);
    }
    if (m->phase != WELCOMED) return;
    if (now >= m->next_beat) {
        tell(m, (struct host_message){.kind = HOST_BEAT, .time = now, .step = m->opened,
                                      .workers = m->workers});
        m->next_beat = now + MEMBER_BEAT;
    }
    if (*m->ferry.address && !m->ferry.pings && now >= m->ferry.next_ping) {
        m->o.to_ferry(m->o.user, &(struct host_message){.kind = HOST_PING, .time = now});
        m->ferry.pings = now;
        m->ferry.next_ping = now + MEMBER_PING;
    }
    const int64_t since[] = {m->ferry.starts, m->ferry.holds, m->ferry.pings};
    bool late = false;
    for (size_t i = 0; i < COUNT(since); i++) late |= since[i] && now - since[i] > patience;
    if (!late) return;
    m->ferry.starts = m->ferry.holds = m->ferry.pings = 0;
    m->o.stuck(m->o.user);
}

void member_attach(struct member *m, struct crew_hosts *hosts) {
    CHECK(m->n && !m->hosts);
    m->hosts = hosts;
    memcpy(hosts->name, m->name, sizeof hosts->name);
    hosts->self = m->self;
    hosts->run = m->run;
    hosts->n = m->n;
    hosts->joins = m->joins;
    atomic_store(&hosts->teller, m->joins ? -1 : 0);
    hosts_begin(hosts);
}

void member_ready(struct member *m, int64_t bytes, int weight, uint64_t resumed) {
    m->bytes = bytes;
    m->weight = weight;
    m->resumed = resumed;
    m->is_ready = true;
    tell_ready(m);
}

void member_failed(struct member *m, const char *text) {
    tell(m, (struct host_message){.kind = HOST_FAILED, .text = text});
}

void member_closed(struct member *m, int code, const char *text) {
    tell(m, (struct host_message){.kind = HOST_CLOSED, .code = code, .text = text});
}

void member_workers(struct member *m, int workers) { m->workers = workers; }

void member_pass(struct member *m, const struct host_message *message) { tell(m, *message); }

void member_leave(struct member *m) { tell(m, (struct host_message){.kind = HOST_LEAVE}); }

tri_status member_open(const struct member_options *o, int64_t now, struct member **m) {
    *m = calloc(1, sizeof **m);
    if (!*m) return base_no_memory("a member of the run");
    (*m)->o = *o;
    (*m)->next_beat = now;
    tell(*m, (struct host_message){.kind = HOST_HELLO, .name = o->name, .version = o->version,
                                   .pid = o->pid});
    return TRI_OK;
}

void member_close(struct member *m) { free(m); }
